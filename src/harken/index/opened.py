"""The connections of an index, and the file they lead to: made, checked, removed where it cannot be gone on with.

One connection writes, for whoever has the turn; others only read (`readers.py`), so that who asks does not wait for who
writes. An index in memory has one connection for both.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harken import clock
from harken.errors import Closed, Conflict
from harken.formats.base import revision
from harken.store import forking
from harken.store.base import Store

from . import schema, words
from .connecting import HOW, alone, copied, in_memory, is_damage, read_only
from .progress import OutdatedIndex
from .readers import IndexReaders
from .step import last_of
from .turns import WriterTurn

PARTS = ("", "-wal", "-shm", "-journal")
OWN = "claude-code-v1"
"""Any of our own formats: they change together."""
HASHED = 16 << 20
"""Bytes of words that are sorted in memory before they are written: all of a transaction's."""
PAGES = 32 << 20
"""Bytes of pages that the writer holds: keys fall everywhere, and most of a transaction's pages come again."""
_TABLES = "SELECT count(*) FROM sqlite_master"


class OpenedIndex:
    """An index that is open, or will be when it is first used."""

    def __init__(self, store: Store, path: Path | None, readable: Path | None = None) -> None:
        self._store = store
        self._readable = readable  # a file that cannot be written: what it holds is gone on with in memory
        self.path = path
        """Its file; None where it is held in memory."""
        self._turn = WriterTurn()
        """Of whoever writes, or makes and removes files."""
        self._readers = IndexReaders()
        """Who has one of them may not wait for the turn."""
        self._counted = -1
        """The change up to which the numbers of all sessions are known to be made."""
        self._rest_until = 0.0
        """Until when whoever asks leaves the numbers of many sessions as they are."""
        self.opened = 0
        """Goes up whenever the file is let go of: what is opened next may be another, and hold less."""
        self._writing: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._rebuilt = ""
        self._closed = False
        self.forked = False
        with forking.OPENING:
            forking.USERS.add(self)

    @property
    def used_by_others(self) -> bool:
        """Whether a thread is inside SQLite."""
        return self._turn.is_taken or self._readers.users > 0

    @contextlib.contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        """What is asked, for this thread alone: a file at once, whoever writes to it. When it is our turn: memory, or
        a file to which no connection that only reads can be had."""
        self._check_open()  # what a thread held when this process was forked off, nobody lets go
        with self._readers.held(self._another) as reader:
            if reader is not None:
                self._check_open()
                yield reader
                return
        self._check_open()  # whoever closes it has the turn
        with self._turn:
            writer = self._any()
            with self._readers.held(self._another) as reader:
                yield reader or writer

    @contextlib.contextmanager
    def _transaction(self, deadline: float | None) -> Iterator[sqlite3.Connection]:
        connection = self._writer()
        wait = 60.0 if deadline is None else max(0.05, deadline - clock.monotonic())
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check(self._state_of(connection))
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _writer(self) -> sqlite3.Connection:
        self._check_open()
        if self._writing is not None and self._file != self._identity():
            self._shut()  # somebody has built it anew
        if self._writing is None:
            self._writing = self._connect()
        return self._writing

    def _any(self) -> sqlite3.Connection:
        """What caught up is asked, though somebody may have built it anew since: that knows nothing yet."""
        self._check_open()
        return self._writing or self._writer()

    def _another(self) -> sqlite3.Connection | None:
        """One more connection that reads; None where there can be none, or somebody has built the file anew."""
        if self.path is None:
            return None
        made = None
        try:
            made = read_only(self.path)
            made.execute(_TABLES).fetchone()  # from now on it is this file, and its log
            if self._file == self._identity():
                return made
        except (OSError, sqlite3.Error):  # whoever asks one that is there is told
            pass
        if made is not None:
            made.close()
        return None

    def _check_open(self) -> None:
        if self.forked:
            raise Closed("this index was opened in the process that this one was forked from", hint="open it again")
        if self._closed:
            raise Closed("this index has been closed", hint="open the repository again")

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            found = copied(self._readable) if self._readable is not None else None
            held = found if found is not None and schema.has_tables(found) else in_memory()
            self._prepare(held)
            return held
        with alone(self.path.parent):
            self._check_ours()
            for last_try in (False, True):
                with contextlib.suppress(FileExistsError):
                    # Only where it is new: closing a file that is open elsewhere in this process drops SQLite's locks.
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                connection: sqlite3.Connection = sqlite3.connect(self.path, **HOW)
                try:
                    if not self.path.stat().st_size:
                        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # later it would need a lock
                    connection.execute("PRAGMA journal_mode = WAL").fetchall()
                    connection.execute("PRAGMA synchronous = NORMAL")
                    connection.execute(f"PRAGMA cache_size = -{PAGES >> 10}")
                    self._prepare(connection)
                except sqlite3.DatabaseError as error:
                    connection.close()
                    if last_try or not is_damage(error, also=sqlite3.SQLITE_ERROR):
                        raise
                    self._rebuilt = f"it was damaged: {error}"
                    self._remove()
                else:
                    self._file = self._identity()
                    self._readers.open()
                    return connection
        raise AssertionError

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables where there are none; where there are, somebody may be writing, and is not waited for."""
        if connection.execute(_TABLES).fetchone() != (0,):
            return
        # What a power cut leaves of a new file is no index, and is made again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute(_TABLES).fetchone() == (0,):
                for statement in schema.TABLES.split(";\n"):
                    connection.execute(statement)
                settings = {"hashsize": HASHED, "automerge": 0}  # words are joined when much was taken in (`_tidy`)
                connection.executemany("INSERT INTO words (words, rank) VALUES (?, ?)", settings.items())
                facts = {"at": 0, "begun": last_of(self._store, 0), "epoch": self._store.epoch, **self._versions()}
                connection.executemany("INSERT INTO state VALUES (?, ?)", facts.items())
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("PRAGMA synchronous = NORMAL")

    def _versions(self) -> dict[str, object]:
        return {"schema": schema.VERSION, "words": words.VERSION, f"revision {OWN}": revision(OWN)}

    def _state_of(self, connection: sqlite3.Connection) -> dict[str, Any]:
        return dict(connection.execute("SELECT key, value FROM state"))

    def _check(self, state: dict[str, Any]) -> None:
        """Whether what is there can be gone on with."""
        if state.get("epoch") != self._store.epoch:
            raise OutdatedIndex("the store was repaired, restored or replaced, or something was erased from it")
        if any(state.get(key) != value for key, value in self._versions().items()):
            raise OutdatedIndex("another version of Harken made it")
        for key, value in state.items():
            if key.startswith("revision ") and revision(key.removeprefix("revision ")) != value:
                raise OutdatedIndex(f"the format {key.removeprefix('revision ')} is read otherwise now")
        if state["at"] > last_of(self._store, state["at"]):
            raise OutdatedIndex("it is ahead of its store")

    def _begin_anew(self, why: str) -> None:
        self._rebuilt = self._rebuilt or why
        self._readable = None
        self._shut()
        if self.path is not None:
            with alone(self.path.parent):
                if self._file is None or self._file == self._identity():
                    self._check_ours()
                    self._remove()

    def _check_ours(self) -> None:
        if self.path is not None and schema.is_foreign(self.path):
            raise Conflict(f"{self.path} is no index of Harken's", hint="move that file; the store's index lies there")

    def _remove(self) -> None:
        for part in self._parts():  # the file first: SQLite never takes up the log of a file that is not there
            part.unlink(missing_ok=True)

    def _parts(self) -> list[Path]:
        return [] if self.path is None else [self.path.with_name(self.path.name + part) for part in PARTS]

    def _identity(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return None
        return facts.st_dev, facts.st_ino

    def _shut(self) -> None:
        self._readers.shut()
        if self._writing is not None:
            with contextlib.suppress(sqlite3.Error):
                self._writing.close()
        self._writing = None
        self._counted = -1
        self.opened += 1
