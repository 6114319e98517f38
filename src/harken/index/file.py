"""The index file: opened, checked, built again where it is not what it should be; written by one, read by many.

Everything in it can be made again, so whatever is wrong with it (damage, another version, another epoch of the store)
is no error: the file is removed and built anew, and that is said. A store that lies in no file, or where nothing can
be written, has its index in memory, beginning with what its file holds; for a reader so does one whose file cannot be
written any more. What never was an index is somebody else's, and stays.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from harken import clock
from harken.errors import Closed, Conflict, Corrupt, HarkenError, Locked
from harken.formats.base import revision
from harken.store import forking
from harken.store.base import Store
from harken.store.explaining import explain
from harken.store.opening import is_writable

from . import schema, words
from .connecting import HOW, alone, copied, in_memory, is_damage, read_only
from .progress import IndexProgress, IndexStatus, OnProgress, OutdatedIndex
from .step import join_words, last_of, place_of, take

SUFFIX = "-index"
PARTS = ("", "-wal", "-shm", "-journal")
OWN = "claude-code-v1"
"""Any of our own formats: they change together."""
HASHED = 16 << 20
"""Bytes of words that are sorted in memory before they are written: all of a transaction's."""
PAGES = 32 << 20
"""Bytes of pages that the writer holds: keys fall everywhere, and most of a transaction's pages come again."""
MANY = 5000
"""Changes that were taken in, after which it is looked for empty room."""
COPIED = 256 << 20
"""Bytes of an index that are held in memory where its file cannot be written."""
_LACKING = f"""
SELECT count(*), coalesce(sum(damaged), 0) FROM problems WHERE damaged >= 0
UNION ALL SELECT count(*), 0 FROM {schema.UNCOUNTED}
"""
_TABLES = "SELECT count(*) FROM sqlite_master"


def index_files(store: Path) -> list[Path]:
    """The files of a store's index, there or not, by their whole names: what only begins like them is not ours. Behind
    a symbolic link they lie where it leads: else forgotten words would be left there."""
    place = store.with_name(store.name + SUFFIX)
    place = place.resolve() if place.is_symlink() else place
    return [place.with_name(place.name + part) for part in PARTS]


def _ignore(_at: int, _last: int) -> None:
    """Nobody is told."""


class StoreIndex:
    """Words, rows and numbers of a store."""

    def __init__(self, store: Store, path: Path | None, readable: Path | None = None) -> None:
        self._store = store
        self._readable = readable  # a file that cannot be written: what it holds is gone on with in memory
        self.path = path
        """Its file; None where it is held in memory."""
        self._lock = threading.RLock()
        self._writing: sqlite3.Connection | None = None
        self._reading: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._rebuilt = ""
        self._closed = False
        self.forked = False
        with forking.OPENING:
            forking.USERS.add(self)

    @classmethod
    def open(cls, store: Store) -> StoreIndex:
        """The index of a store; it is made, or made anew, when it is first used."""
        path = Path(store.location)
        if not path.is_file():
            return cls(store, None)
        if not is_writable(path):
            return cls(store, None, readable=index_files(path)[0])
        return cls(store, index_files(path)[0])

    @property
    def used_by_others(self) -> bool:
        """Whether a thread is inside SQLite."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False

    # -- asking ------------------------------------------------------------------------------------------------

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives; nothing can be written with it."""
        with self._lock:
            try:
                return self._reader().execute(sql, values).fetchall()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._begin_anew(f"it was damaged: {error}")
                self.catch_up(seconds=2.0)
                return self._reader().execute(sql, values).fetchall()

    def status(self) -> IndexStatus:
        """How far it has come and what it holds."""
        tables = ("sessions", "messages", schema.UNCOUNTED)
        counts = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        with self._lock:
            self._writer()  # somebody may have built it anew
            sessions, messages, stale = self.query(counts)[0]
            named = 'SELECT "commit", session, why FROM problems WHERE damaged >= 0 ORDER BY session, "commit"'
            problems = self.query(named)
            return IndexStatus(
                path=str(self.path or ""),
                at=(at := place_of(self._reader())),
                last=last_of(self._store, at),
                sessions=sessions,
                messages=messages,
                bytes=self._size(),
                stale=stale,
                problems=tuple(problems),
                damaged=self.query(_LACKING)[0][1],
            )

    def _size(self) -> int:
        if self.path is None:
            ((pages,),), ((size,),) = self.query("PRAGMA page_count"), self.query("PRAGMA page_size")
            return int(pages * size)
        return sum(found.stat().st_size for found in self._parts() if found.exists())

    def connect(self) -> sqlite3.Connection:
        """A connection of the caller's own, which can only read; of an index in memory, or one that is gone, a copy."""
        with self._lock:
            reader = self._reader()
            if self.path is not None:
                made = read_only(self.path)
                with contextlib.suppress(sqlite3.Error):  # whoever asks is told
                    made.execute("SELECT 1 FROM state").fetchone()  # from now on it is this file, and its log
                if self._file == self._identity():
                    return made
                made.close()  # somebody has built it anew
            copy = in_memory()
            reader.backup(copy)
            return copy

    # -- following ---------------------------------------------------------------------------------------------

    def catch_up(
        self, *, seconds: float | None = None, numbers: bool = True, moved: OnProgress = _ignore
    ) -> IndexProgress:
        """Take in what has changed in the store: all of it, or what can be done in so many seconds. Without `numbers`
        only words and rows."""
        deadline = None if seconds is None else clock.monotonic() + seconds
        with self._lock:
            self._rebuilt = problem = ""
            taken = 0
            while True:
                try:
                    before, at, more = self._step(deadline, numbers=numbers)
                except (HarkenError, OSError, sqlite3.Error) as error:
                    if deadline is None or isinstance(error, Closed):
                        raise
                    problem = problem or str(error)
                    if not isinstance(error, Corrupt) and self._move_to_memory():
                        continue
                    at = place_of(self._reader())  # of the store's damage memory knows no more
                    break
                taken += max(0, at - before)
                moved(at, max(at, last_of(self._store, at)))
                if not more or (deadline is not None and clock.monotonic() >= deadline):
                    break
            if taken > MANY:
                self._tidy(lambda: deadline is None or clock.monotonic() < deadline)
            (missing, damaged), (stale, _) = self.query(_LACKING)
            done = IndexProgress(at=at, last=last_of(self._store, at), taken=taken, stale=stale, problem=problem)
            return msgspec.structs.replace(done, rebuilt=self._rebuilt, missing=missing, damaged=damaged)

    def _move_to_memory(self) -> bool:
        """For a reader, who wants an answer though nothing can be written: go on in memory with what there is. Not
        where that is too much, or where it is in memory already."""
        if self.path is None:
            return False
        held = in_memory()
        try:
            reader = self._reader()
            if self._size() > COPIED:
                return False
            reader.backup(held)
        except (HarkenError, OSError, sqlite3.Error):  # there is none
            held = in_memory()
        self._shut()
        self.path = self._file = None
        self._prepare(held)
        self._writing = held
        return True

    def _tidy(self, go_on: Callable[[], bool]) -> None:
        """Behind much that was taken in: join its words, and give the pages that this left empty back to the disk,
        unless somebody else is writing."""
        with contextlib.suppress(sqlite3.OperationalError):
            self._writer().execute("PRAGMA busy_timeout = 0")
            join_words(self._writer(), go_on)
            self._writer().executescript("PRAGMA incremental_vacuum")  # `execute` stops after the first page

    def rebuild(self, moved: OnProgress = _ignore) -> IndexProgress:
        """Remove everything and build it anew; bytes that were erased from the store leave the index too."""
        with self._lock:
            self._begin_anew("asked for")
            return msgspec.structs.replace(self.catch_up(moved=moved), rebuilt="asked for")

    def _step(self, deadline: float | None, *, numbers: bool) -> tuple[int, int, bool]:
        """One transaction: where it began, where it ended, and whether there is more to do."""
        for last_try in (False, True):
            try:
                with self._transaction(deadline) as connection:
                    return take(connection, self._store, numbers=numbers)
            except (OutdatedIndex, sqlite3.DatabaseError) as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error, also=sqlite3.SQLITE_ERROR):
                    if not isinstance(explained := explain(error, str(self.path)), Locked):
                        raise explained from error
                    at = place_of(self._reader())  # somebody else is at it
                    return at, at, False
                if last_try:
                    raise HarkenError(
                        f"the index {self.path} cannot be built: {error}",
                        hint="delete that file; it comes back by itself",
                    ) from error
                self._begin_anew(str(error) if isinstance(error, OutdatedIndex) else f"it was damaged: {error}")
        raise AssertionError

    # -- the file ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self, deadline: float | None) -> Iterator[sqlite3.Connection]:
        connection = self._writer()
        wait = 60.0 if deadline is None else max(0.05, deadline - clock.monotonic())
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check(connection)
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

    def _reader(self) -> sqlite3.Connection:
        """What caught up is asked, though somebody may have built it anew since: that knows nothing yet."""
        self._check_open()
        writer = self._writing or self._writer()
        return self._reading or writer

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
                    self._file, self._reading = self._identity(), read_only(self.path)
                    self._reading.execute(_TABLES).fetchone()  # it is the same file and log while nobody removes it
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

    def _check(self, connection: sqlite3.Connection) -> None:
        """Whether what is there can be gone on with."""
        state = dict(connection.execute("SELECT key, value FROM state"))
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
        for connection in (self._reading, self._writing):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._reading = self._writing = None

    def close(self) -> None:
        """Let go of the file; closing twice is closing once."""
        with self._lock:
            self._closed = True
            if not self.forked:
                self._shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
