"""The SQLite file itself: making it, opening it, upgrading it, transactions, and what its errors mean.

Each thread has a connection of its own; writers queue at the fair lock before they ask SQLite. A store is not carried
across `fork`: a child opens its own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harken import clock, ids
from harken.errors import BadRequest, Corrupt, HarkenError, Locked

from . import sql
from .lock import FairLock

Steps = Sequence[tuple[int, str, str]]
Value = str | bytes | int | None

_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


# A damaged file can hold text that is no text, or a number too large to be one.
_ERRORS = (sqlite3.Error, UnicodeDecodeError, OverflowError)


def explain(error: Exception, path: str) -> HarkenError:
    """What an error of SQLite means to whoever called us."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _CORRUPT:
        return Corrupt(f"{path} is damaged: {error}", hint="`harken fsck` says what is left; a backup restores it")
    if code in _BUSY:
        return Locked(f"{path} is held by another program: {error}", hint="try again when it is done")
    if code == sqlite3.SQLITE_FULL:
        return HarkenError(f"no room to write {path}", hint="nothing was half written; make room and try again")
    return HarkenError(f"{path} could not be read or written: {error}", hint="look at the disk and the permissions")


_HEADER = 100
"""Bytes of a SQLite file's header; the mark of the program that owns it stands at 68."""


def text(value: str) -> str | bytes:
    """Text as SQLite can keep it: a transcript may hold half a surrogate pair, which is no UTF-8."""
    try:
        value.encode()
        return value
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def untext(value: str | bytes) -> str:
    """The text that `text` kept."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


class Database:
    """One SQLite file with its lock."""

    def __init__(self, path: Path, *, steps: Steps = sql.STEPS, patience: float = 60.0) -> None:
        self.path = str(path)
        self._steps = steps
        self._process = os.getpid()
        self.local = threading.local()
        self._all: list[sqlite3.Connection] = []
        _refuse_strangers(path)
        try:
            _make_private(path)
            self.lock = FairLock(f"{self.path}-lock", patience=patience)
        except OSError as error:
            hint = "look at the path, the disk and the permissions"
            raise HarkenError(f"{path} cannot be opened: {error.strerror}", hint=hint) from error
        try:
            self._upgrade()
        except BaseException:
            self.close()
            raise

    # -- connections -------------------------------------------------------------------------------------------

    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        try:
            found: sqlite3.Connection = self.local.connection
        except AttributeError:
            found = self.local.connection = self._connect()
        return found

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=60.0, cached_statements=256
            )
            new = not Path(self.path).stat().st_size
            for pragma in (*(sql.NEW_FILE if new else ()), *sql.EACH_CONNECTION):
                connection.execute(pragma).fetchall()
        except _ERRORS as error:
            raise explain(error, self.path) from error
        self._all.append(connection)
        return connection

    def close(self) -> None:
        """Close every thread's connection, and the lock."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self.local = threading.local()
        self.lock.close()

    # -- statements --------------------------------------------------------------------------------------------

    def all(self, statement: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer."""
        try:
            return self.connection().execute(statement, tuple(values)).fetchall()
        except _ERRORS as error:
            raise explain(error, self.path) from error

    def one(self, statement: str, values: Iterable[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""
        try:
            found: tuple[Any, ...] | None = self.connection().execute(statement, tuple(values)).fetchone()
        except _ERRORS as error:
            raise explain(error, self.path) from error
        return found

    def cursor(self, statement: str, values: Iterable[Any] = ()) -> sqlite3.Cursor:
        """A cursor to `fetch` from."""
        try:
            return self.connection().execute(statement, tuple(values))
        except _ERRORS as error:
            raise explain(error, self.path) from error

    def fetch(self, cursor: sqlite3.Cursor, count: int) -> list[tuple[Any, ...]]:
        """The next few rows of a cursor."""
        try:
            return cursor.fetchmany(count)
        except _ERRORS as error:
            raise explain(error, self.path) from error

    def do(self, statement: str, values: Iterable[Any] = ()) -> int:
        """Change something; the answer is the number of the row that was added."""
        try:
            return self.connection().execute(statement, tuple(values)).lastrowid or 0
        except _ERRORS as error:
            raise explain(error, self.path) from error

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same change for many rows."""
        try:
            self.connection().executemany(statement, rows)
        except _ERRORS as error:
            raise explain(error, self.path) from error

    # -- transactions ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Queue for the right to write, then take it."""
        if os.getpid() != self._process:
            raise BadRequest("a store does not survive a fork of its process", hint="open it again in the child")
        connection = self.connection()
        if connection.in_transaction:
            raise BadRequest("this thread is already inside a transaction of this store")
        self.lock.acquire()
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self.lock.release()
            if isinstance(error, sqlite3.Error):
                raise explain(error, self.path) from error
            raise

    def commit(self) -> None:
        """Make it all durable. If that fails nothing of it is there, and `rollback` is still to be called."""
        try:
            self.connection().execute("COMMIT")
        except _ERRORS as error:
            raise explain(error, self.path) from error
        self.lock.release()

    def rollback(self) -> None:
        """Take it all back. The connection is thrown away too if it cannot even do that."""
        connection = self.connection()
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            self._all.remove(connection)
            del self.local.connection
        finally:
            self.lock.release()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that is there whole when it ends, or not at all."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block in which this thread reads the store as it is now, whatever others write meanwhile."""
        connection = self.connection()
        if connection.in_transaction:
            raise BadRequest("this thread is inside a transaction of this store")
        self.do("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    def alone(self, statement: str) -> None:
        """Run a statement that is a transaction by itself and takes many steps, with nobody else writing."""
        connection = self.connection()
        self.lock.acquire()
        try:
            connection.executescript(statement)
        except _ERRORS as error:
            raise explain(error, self.path) from error
        finally:
            self.lock.release()

    # -- versions ----------------------------------------------------------------------------------------------

    def _upgrade(self) -> None:
        """Bring the file to our version in one transaction, or refuse one that is newer than we are."""
        missing = self._missing_steps()
        if missing == ():
            return
        with self.transaction():
            missing = self._missing_steps()  # somebody may have been faster
            for version, name, script in self._steps if missing is None else missing:
                for statement in filter(None, map(str.strip, script.split(";\n"))):
                    self.do(statement.removesuffix(";"))
                now = clock.now()
                self.do(sql.ADD_VERSION, (version, name, now, ids.row_sum((version, name, now))))
            self.do(f"PRAGMA application_id = {sql.APPLICATION_ID}")
            self.do(f"PRAGMA user_version = {self._steps[-1][0]}")

    def _missing_steps(self) -> tuple[tuple[int, str, str], ...] | None:
        """The steps this file has not seen; None for a file without any table."""
        tables = {name for (name,) in self.all(sql.TABLES)}
        if not tables:
            return None
        if "migrations" not in tables:
            raise BadRequest(f"{self.path} is a SQLite file, but not a store of Harken's")
        seen = {version for version, _ in self.all(sql.VERSIONS)}
        if not all(isinstance(version, int) for version in seen):
            raise Corrupt(f"{self.path} does not know its version", hint="a backup restores it")
        newest = max(seen, default=0)
        if newest > self._steps[-1][0]:
            raise BadRequest(
                f"{self.path} was written by a newer Harken (schema {newest}, this one knows {self._steps[-1][0]})",
                hint="upgrade Harken; the store has not been touched",
            )
        return tuple(step for step in self._steps if step[0] not in seen)


def _refuse_strangers(path: Path) -> None:
    """Leave another program's SQLite file exactly as it is: even asking for our way of journaling would change it."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except OSError:
        return  # not there yet, or not readable, which opening it will say better
    if len(head) < _HEADER or not head.startswith(b"SQLite format 3\0"):
        return
    if int.from_bytes(head[68:72], "big") == sql.APPLICATION_ID:
        return
    # A store that was never closed may have its mark in the write-ahead log only, so the tables decide.
    with contextlib.suppress(sqlite3.Error):
        stranger = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            tables = {name for (name,) in stranger.execute(sql.TABLES)}
        finally:
            stranger.close()
        if tables and not tables >= {"migrations", "commits", "frames"}:
            raise BadRequest(f"{path} is a SQLite file, but not a store of Harken's", hint="it has not been touched")


def _make_private(path: Path) -> None:
    """The file, and any folder that had to be made for it, are for their owner alone."""
    missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
