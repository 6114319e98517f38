"""A store that can only be looked at: its file, its folder or the whole medium is not ours to write.

SQLite reads a file with a write-ahead log beside it as it does any other. Without one nobody is writing, and the file
is read as it lies there: no lock is taken, and nothing is made beside it. Somebody with other rights may begin to write
later, so before each use the files are compared with what they were, and opened anew where they differ. A log that
cannot be read with the file holds changes that would be missing from every answer, so such a store is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

from harken.errors import BadRequest, HarkenError

from . import sql
from .connections import POOLED, PooledConnection
from .db import Database
from .explaining import explain

_AS_IT_LIES = "mode=ro&immutable=1"
_NOT_FOR_READING = ("PRAGMA journal_mode", "PRAGMA synchronous", "PRAGMA wal_autocheckpoint")


def refuse_unknown(path: Path, newest: int) -> None:
    """Leave alone what is another program's, or a newer Harken's. The header says too little: a store that was never
    closed may have its mark in the write-ahead log only. So the tables decide, read without changing anything."""
    how = "mode=ro" if Path(f"{path}-wal").exists() else _AS_IT_LIES
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as connection:
            tables = {name for (name,) in connection.execute(sql.TABLES)}
            ours = tables >= {"migrations", "commits", "frames"}
            (version,) = connection.execute("SELECT max(version) FROM migrations").fetchone() if ours else (0,)
    except sqlite3.Error:  # damaged; opening it says how
        return
    if tables and not ours:
        raise BadRequest(f"{path} is a SQLite file, but not a store of Harken's", hint="it has not been touched")
    if isinstance(version, int) and version > newest:
        raise newer(str(path), version, newest)


def refuse_without_rows(path: Path) -> None:
    """Leave alone what does not begin like a SQLite file, unless it was a store: then its other pages have our rows."""
    from .salvage import has_rows

    if not has_rows(path):
        raise BadRequest(
            f"{path} is not a store of Harken's", hint="it has not been touched; if it was one, a backup restores it"
        )


def newer(path: str, version: int, newest: int) -> BadRequest:
    """The refusal of a store whose schema we do not know yet."""
    return BadRequest(
        f"{path} was written by a newer Harken (schema {version}, this one knows {newest})",
        hint="upgrade Harken; the store has not been touched",
    )


class ReadOnlyDatabase(Database):
    """Connections that change nothing; whoever wants to write is told why that cannot be."""

    writable = False
    why: HarkenError | None = None
    """Why it cannot be written to, where that is neither the permissions nor the medium."""

    def _take(self) -> PooledConnection:
        """A connection to the files as they are now: one that was made before would not see what came later."""
        connection = super()._take()
        if connection.files == self._stamp():
            return connection
        self._shut(connection)
        try:
            return self._connect()
        except BaseException:
            self.turns.release()
            raise

    def _stamp(self) -> tuple[object, ...]:
        """What changes whenever somebody writes."""
        try:
            facts = Path(self.path).stat()
        except OSError:  # opening it says why
            return ()
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, Path(f"{self.path}-wal").exists()

    def _connect(self) -> PooledConnection:
        log = Path(f"{self.path}-wal")
        self.how_to_read = Database.how_to_read if log.exists() else _AS_IT_LIES
        try:
            return self._reading()
        except sqlite3.Error as error:
            if log.exists() and log.stat().st_size:
                raise HarkenError(
                    f"{self.path} cannot be written to, and what was written last is still in {log.name}: {error}",
                    hint="copy all its files to a place where you may write, and look there",
                ) from error
        self.how_to_read = _AS_IT_LIES  # an empty log, left behind
        try:
            return self._reading()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def _reading(self) -> PooledConnection:
        files = self._stamp()
        connection: PooledConnection = sqlite3.connect(
            f"{Path(self.path).as_uri()}?{self.how_to_read}", uri=True, **POOLED
        )
        connection.files = files
        try:
            for pragma in sql.EACH_CONNECTION:
                if not pragma.startswith(_NOT_FOR_READING):
                    connection.execute(pragma).fetchall()
            self._patiently(connection, sql.TABLES)  # the first look at the file
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def begin(self) -> None:
        """Refuse to write."""
        self.check_open()
        raise self._refusal() from OSError(errno.EROFS, os.strerror(errno.EROFS))

    def alone(self, statement: str) -> None:
        """Refuse to write."""
        self.check_open()
        raise self._refusal() from OSError(errno.EROFS, os.strerror(errno.EROFS))

    def _refusal(self) -> HarkenError:
        if self.why is not None:
            return HarkenError(f"{self.path} can only be read now: {self.why}", hint=self.why.hint)
        return HarkenError(
            f"{self.path} can only be read: the file, its folder or the disk is write-protected",
            hint="copy it to a place where you may write (`harken backup`), or change the permissions",
        )
