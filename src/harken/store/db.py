"""Connections to the SQLite file, transactions, rows that are what was written, and what errors mean.

Writers queue at the fair lock before they ask SQLite. A store is not carried across `fork`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Closed, Conflict, Corrupt, HarkenError, Locked

from . import sql
from .opening import FairLock, FairTurns, Steps, delist, enlist, upgrade

T = TypeVar("T")
Row = tuple[Any, ...]
FSCK = "`harken fsck` says what is lost"
_UNREADABLE = (TypeError, AttributeError, ValueError, OverflowError, KeyError, IndexError, msgspec.MsgspecError)
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# A damaged file can hold text that is no text; a number too large for SQLite is the caller's.
_ERRORS = (sqlite3.Error, UnicodeDecodeError, OverflowError)


def explain(error: Exception, path: str) -> HarkenError:
    """What an error of SQLite means to whoever called us."""
    if isinstance(error, OverflowError):
        return BadRequest("a number does not fit into 64 bits", hint="leave out what is not known")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _CORRUPT:
        return Corrupt(f"{path} is damaged: {error}", hint=f"`harken fsck` says what is left; {sql.PUT_BACK}")
    if code in _BUSY:
        return Locked(f"{path} is held by another program: {error}", hint="try again when it is done")
    if code == sqlite3.SQLITE_FULL:
        return HarkenError(f"no room to write {path}", hint="nothing was half written; make room and try again")
    return HarkenError(f"{path} could not be read or written: {error}", hint="look at the disk and the permissions")


def text(value: str) -> str | bytes:
    """Text as SQLite can keep it: a transcript may hold half a surrogate pair, which is no UTF-8."""
    return value if value.isascii() or ids.is_text(value) else value.encode("utf-8", "surrogatepass")


def texts(values: tuple[str, ...]) -> tuple[str | bytes, ...]:
    """`text` of several."""
    return values if "".join(values).isascii() else tuple(map(text, values))


def untext(value: str | bytes) -> str:
    """The text that `text` kept."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def checked(table: str, row: Row) -> Row:
    """The row without its sum, which is its last column; `Corrupt` where it is not what was written."""
    facts = row[:-1]
    try:
        total = ids.row_sum(table, facts)
    except (TypeError, ValueError, OverflowError):  # no value that we write
        total = b""
    if total != row[-1]:
        raise Corrupt(f"row {row[0]!r} of the table {table} is not what was written", hint=FSCK)
    return facts


def all_checked(table: str, rows: Sequence[Row], *, beside: int = 0) -> list[Row]:
    """`checked` for many rows at once; so many columns after the sum are another table's, and left out."""
    last = -1 - beside
    facts = [row[:last] for row in rows]
    try:
        if ids.row_sums(table, facts) == [row[last] for row in rows]:
            return facts
    except (TypeError, ValueError, OverflowError):  # no value that we write
        pass
    return [checked(table, row[:last] + row[last : last + 1]) for row in rows]  # which of them is it?


@contextmanager
def readable() -> Iterator[None]:
    """A block that makes values of checked rows; where they hold what cannot be, that is said."""
    try:
        yield
    except _UNREADABLE as error:
        raise Corrupt(f"a row cannot be read: {error!r}", hint=FSCK) from error


_CONNECTIONS = 16  # that one store has at most; who finds none free waits
_IDLE = 4  # connections that stay open while nobody uses them


class _Held(threading.local):
    """What a thread holds while it is inside a transaction or a snapshot."""

    connection: Any = None
    writer: Any = None


class Database:
    """One SQLite file with its lock, and a pool of connections.

    A connection is taken for a statement and given back; a transaction or a snapshot holds one for its thread. So a
    thread that ends leaves nothing behind, and `close` knows whom to wait for."""

    writable = True
    how_to_read = "mode=ro"
    """What the URI says of a connection that only reads."""

    def __init__(self, path: Path, *, steps: Steps = sql.STEPS, timeout: float = 60.0) -> None:
        self.path = str(path)
        self.timeout = timeout
        self._process = os.getpid()
        self.local = _Held()
        self.closed = False
        self._users = 0
        self._out = threading.Condition(threading.Lock())
        self.turns = FairTurns(_CONNECTIONS)
        self._free: list[sqlite3.Connection] = []
        self._connections: set[sqlite3.Connection] = set()
        self._file = (0, 0)
        self.newest_change: Row = ()  # of the feed, as it was written here; while it is the same it needs no check
        try:
            self._file = enlist(path, self, make=self.writable, newest=steps[-1][0])
            if self.writable:
                self.lock = FairLock(f"{self.path}-lock", timeout=timeout)
        except OSError as error:
            self._let_go()
            hint = "look at the path, the disk and the permissions"
            raise HarkenError(f"{path} cannot be opened: {error.strerror}", hint=hint) from error
        try:
            upgrade(self, steps)
        except BaseException:
            self.close()
            raise

    # -- the pool ----------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Refuse one who comes too late, or from another process; whoever is inside a transaction is waited for."""
        if os.getpid() != self._process:
            raise BadRequest("a store does not survive a fork of its process", hint="start the child with `spawn`")
        if self.closed and not self.holding:
            raise Closed(f"{self.path} has been closed", hint="open it again")

    def _enter(self) -> None:
        """Be one of those whom `close` waits for."""
        with self._out:
            self.check_open()
            self._users += 1

    def _leave(self) -> None:
        with self._out:
            self._users -= 1
            if self.closed:  # somebody waits for us to go
                self._out.notify_all()

    @property
    def used_by_others(self) -> bool:
        """Whether threads other than this one are inside."""
        return self._users > self.holding

    def _take(self) -> sqlite3.Connection:
        """A connection for one who has entered; who came first goes first, so that readers cannot starve a writer."""
        if not self.turns.acquire(self.timeout):
            raise Locked(f"no connection to {self.path} came free", hint="try again when others are done")
        try:
            with contextlib.suppress(IndexError):
                return self._free.pop()
            return self._connect()
        except BaseException:
            self.turns.release()
            raise

    def _give(self, connection: sqlite3.Connection) -> None:
        if len(self._free) < _IDLE:
            self._free.append(connection)
        else:
            self._shut(connection)
        self.turns.release()

    def _shut(self, connection: sqlite3.Connection) -> None:
        self._connections.discard(connection)
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def acquire(self) -> sqlite3.Connection:
        """The connection this thread holds, or one from the pool; `release` gives it back."""
        held: sqlite3.Connection | None = self.local.connection
        if held is not None and os.getpid() == self._process:
            return held
        self._enter()
        try:
            return self._take()
        except BaseException:
            self._leave()
            raise

    def release(self, connection: sqlite3.Connection) -> None:
        """Give back what `acquire` gave."""
        if connection is not self.local.connection:
            self._give(connection)
            self._leave()

    @property
    def holding(self) -> bool:
        """Whether this thread is inside a transaction or a snapshot."""
        return self.local.connection is not None

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=60.0, cached_statements=256
            )
            new = not Path(self.path).stat().st_size
            self._connections.add(connection)
            for pragma in (*(sql.NEW_FILE if new else ()), *sql.EACH_CONNECTION):
                connection.execute(pragma).fetchall()
        except _ERRORS as error:
            raise explain(error, self.path) from error
        return connection

    def close(self) -> None:
        """Wait for whoever is inside, then close every connection and the lock. `Conflict` if they do not come out
        in time: then the store stays open. In a child of the process that opened it, nothing is touched."""
        if os.getpid() != self._process:
            return
        if self.holding:
            raise BadRequest("this thread is inside a transaction of this store", hint="close it after the block")
        deadline = clock.monotonic() + self.timeout
        with self._out:
            if self.closed:
                return
            self.closed = True  # nobody enters any more
            while self._users:
                if not self._out.wait(max(0.0, deadline - clock.monotonic())):
                    self.closed = False
                    raise Conflict(f"{self.path} is still being used", hint="let the others finish, then close it")
            self._users = 1  # a process that is forked off meanwhile can tell
        self._let_go()
        self._users = 0

    def _let_go(self) -> None:
        while self._free:
            self._shut(self._free.pop())
        if "lock" in self.__dict__:
            self.lock.close()
            del self.lock
        file, self._file = self._file, (0, 0)
        delist(file)

    def __del__(self) -> None:
        """One that nobody closed keeps no descriptor; at the end of the program, and in a fork, it is left as it is."""
        if not sys.is_finalizing() and os.getpid() == self._process and not self.closed:
            with contextlib.suppress(Exception):
                self._let_go()

    # -- statements --------------------------------------------------------------------------------------------

    def _run(self, statement: str, values: Any, answer: Callable[[Any], T], how: Any = sqlite3.Connection.execute) -> T:
        connection = self.acquire()
        try:
            return answer(how(connection, statement, values))
        except _ERRORS as error:
            raise explain(error, self.path) from error
        finally:
            if connection is not self.local.connection:
                self.release(connection)

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Every row of the answer."""
        return self._run(statement, values, sqlite3.Cursor.fetchall)

    def one(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        return next(iter(self._run(statement, values, sqlite3.Cursor.fetchall)), None)

    def do(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Change something."""
        self._run(statement, values, sqlite3.Cursor.close)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same change for many rows."""
        self._run(statement, rows, sqlite3.Cursor.close, sqlite3.Connection.executemany)

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of the answer a few at a time, inside a snapshot or a transaction."""
        try:
            cursor = self.local.connection.execute(statement)
            while rows := cursor.fetchmany(256):
                yield from rows
        except _ERRORS as error:
            raise explain(error, self.path) from error

    # -- transactions ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Queue for the right to write, then take it."""
        if self.holding and os.getpid() == self._process:
            raise BadRequest("this thread is already inside a transaction of this store", hint="use its writer")
        self._enter()
        try:
            self.lock.acquire()
            try:
                self._hold("BEGIN IMMEDIATE")
            except BaseException:
                self.lock.release()
                raise
        except BaseException:
            self._leave()
            raise

    def _hold(self, statement: str) -> None:
        connection = self._take()
        try:
            connection.execute(statement)
        except BaseException as error:
            self._give(connection)
            if isinstance(error, sqlite3.Error):
                raise explain(error, self.path) from error
            raise
        self.local.connection = connection

    def _unhold(self) -> None:
        """Let this thread's connection go back to the pool, or away if it is still inside a transaction."""
        connection: sqlite3.Connection = self.local.connection
        self.local.connection = None
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give(connection)
        except sqlite3.Error:
            self._shut(connection)
            self.turns.release()
        finally:
            self._leave()

    def commit(self) -> None:
        """Make it all durable. If that fails nothing of it is there, and `rollback` is still to be called."""
        try:
            self.local.connection.execute("COMMIT")
        except _ERRORS as error:
            raise explain(error, self.path) from error
        self.lock.release()
        self._unhold()

    def rollback(self) -> None:
        """Take it all back. The connection is thrown away too if it cannot even do that."""
        try:
            self._unhold()
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
        if self.holding:
            raise BadRequest("this thread is inside a transaction of this store", hint="read after the block")
        self._enter()
        try:
            self._hold("BEGIN")
        except BaseException:
            self._leave()
            raise
        try:
            yield
        finally:
            self._unhold()

    def alone(self, statement: str) -> None:
        """Run a statement that is a transaction by itself and takes many steps, with nobody else writing."""

        def run(connection: sqlite3.Connection, script: str, _: object) -> sqlite3.Cursor:
            self.lock.acquire()
            try:
                return connection.executescript(script)
            finally:
                self.lock.release()

        self._run(statement, (), sqlite3.Cursor.close, run)
