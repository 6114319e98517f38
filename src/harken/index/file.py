"""The index of a store: asked by many, brought up to date by one at a time, built again where it is not what it should
be.

Everything in it can be made again, so whatever is wrong with it (damage, another version, another epoch of the store)
is no error: the file is removed and built anew, and that is said. A store that lies in no file, or where nothing can
be written, has its index in memory, beginning with what its file holds; for a reader so does one whose file cannot be
written any more. What never was an index is somebody else's, and stays.

Many readers at once are served by one of them: who waits for another thread to follow the store is answered as soon as
what was there when it asked is taken in, and nobody follows what came later.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from harken import clock
from harken.errors import Closed, Corrupt, HarkenError, Locked
from harken.store.base import Store
from harken.store.explaining import explain
from harken.store.opening import is_writable

from . import schema
from .connecting import in_memory, is_damage, read_only
from .opened import PARTS, OpenedIndex
from .progress import IndexProgress, IndexStatus, OnProgress, OutdatedIndex
from .step import join_words, last_known, last_of, place_of, take

SUFFIX = "-index"
MANY = 5000
"""Changes that were taken in, after which it is looked for empty room."""
FEW = 5
"""Sessions whose numbers are waited for while another thread makes them; of more it is told that they are stale."""
STEP_SECONDS, TURN_SECONDS = 0.05, 0.25
"""While others wait: how long numbers are made in one transaction, and by one thread."""
REST = 3
"""Where a thread stopped making numbers since others wait, nobody makes those of many for so many times as long."""
COPIED = 256 << 20
"""Bytes of an index that are held in memory where its file cannot be written."""
_LACKING = f"""
SELECT count(*), coalesce(sum(damaged), 0) FROM problems WHERE damaged >= 0
UNION ALL SELECT count(*), 0 FROM {schema.UNCOUNTED}
"""


def index_files(store: Path) -> list[Path]:
    """The files of a store's index, there or not, by their whole names: what only begins like them is not ours. Behind
    a symbolic link they lie where it leads: else forgotten words would be left there."""
    place = store.with_name(store.name + SUFFIX)
    place = place.resolve() if place.is_symlink() else place
    return [place.with_name(place.name + part) for part in PARTS]


def _ignore(_at: int, _last: int) -> None:
    """Nobody is told."""


class StoreIndex(OpenedIndex):
    """Words, rows and numbers of a store."""

    @classmethod
    def open(cls, store: Store) -> StoreIndex:
        """The index of a store; it is made, or made anew, when it is first used."""
        path = Path(store.location)
        if not path.is_file():
            return cls(store, None)
        if not is_writable(path):
            return cls(store, None, readable=index_files(path)[0])
        return cls(store, index_files(path)[0])

    # -- asking ------------------------------------------------------------------------------------------------

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives; nothing can be written with it."""
        asked: list[int] = []
        try:
            return self._query(sql, values, asked)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            with self._turn:
                self._any()
                if self.opened == asked[0]:  # nobody else has met it and built it anew
                    self._begin_anew(f"it was damaged: {error}")
                    self.catch_up(seconds=2.0)
                return self._query(sql, values, asked)

    def _query(self, sql: str, values: Sequence[object], asked: list[int]) -> list[tuple[Any, ...]]:
        with self._held() as reader:
            asked.append(self.opened)
            return reader.execute(sql, values).fetchall()

    def status(self) -> IndexStatus:
        """How far it has come and what it holds."""
        tables = ("sessions", "messages", schema.UNCOUNTED)
        counts = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        self._check_open()
        with self._turn:
            self._writer()  # somebody may have built it anew
            sessions, messages, stale = self.query(counts)[0]
            named = 'SELECT "commit", session, why FROM problems WHERE damaged >= 0 ORDER BY session, "commit"'
            problems = self.query(named)
            return IndexStatus(
                path=str(self.path or ""),
                at=(at := place_of(self._any())),
                last=last_of(self._store, at),
                sessions=sessions,
                messages=messages,
                bytes=self._size(),
                stale=stale,
                problems=tuple(problems),
                damaged=self.query(_LACKING)[0][1],
            )

    def count_stale(self) -> int:
        """Of how many sessions the numbers are not up to date."""
        return int(self.query(_LACKING)[1][0])

    def _size(self) -> int:
        if self.path is None:
            ((pages,),), ((size,),) = self.query("PRAGMA page_count"), self.query("PRAGMA page_size")
            return int(pages * size)
        return sum(found.stat().st_size for found in self._parts() if found.exists())

    def connect(self) -> sqlite3.Connection:
        """A connection of the caller's own, which can only read; of an index in memory, or one that is gone, a copy."""
        with self._held() as reader:
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
        """Take in what is in the store by now: all of it, or what can be done in so many seconds. What comes meanwhile
        may be left to the next who asks. Without `numbers` only words and rows.

        Of threads that want it at once one does it for all. With `seconds` each is answered when the rows of what was
        there are; where the numbers of many sessions are stale all the time, that is told."""
        deadline = None if seconds is None else clock.monotonic() + seconds
        goal = last_known(self._store)
        is_ours, done = self._turn.take_unless(
            lambda taken: self._done(goal, numbers, deadline is not None and (taken or self._rests)), deadline
        )
        if not is_ours:
            return done or self._late(goal)
        try:
            return self._follow(goal, deadline, numbers=numbers, moved=moved)
        finally:
            self._turn.give_back()

    def _done(self, goal: int | None, numbers: bool, others_count: bool) -> IndexProgress | None:
        """What there is to tell where nothing is left to do; None where something is, or where nobody knows. Many
        numbers that others make are not waited for."""
        self._check_open()
        with self._readers.held(self._another) as reader:
            self._check_open()
            if goal is None or reader is None or self._file != self._identity():
                return None
            try:
                state, lacking = self._state_of(reader), reader.execute(_LACKING).fetchall()
            except sqlite3.Error:
                return None
            counted, opened = self._counted, self.opened
        try:
            self._check(state)
        except (OutdatedIndex, HarkenError):
            return None
        done = _progress(goal, state["at"], lacking, opened)
        if numbers and done.stale and goal <= counted < done.at:
            # What came behind it is taken in and not counted yet: it is told of what was.
            done = msgspec.structs.replace(done, at=counted, last=counted, stale=0)
        is_waited_for = numbers and 0 < done.stale <= (FEW if others_count else done.stale)
        return None if done.behind or is_waited_for else done

    def _late(self, goal: int | None) -> IndexProgress:
        """What there is to tell where another thread was waited for in vain."""
        with self._held() as reader:
            at, lacking, opened = place_of(reader), reader.execute(_LACKING).fetchall(), self.opened
        return _progress(last_of(self._store, at) if goal is None else goal, at, lacking, opened)

    def _follow(self, goal: int | None, deadline: float | None, *, numbers: bool, moved: OnProgress) -> IndexProgress:
        self._rebuilt = problem = ""
        taken, began = 0, clock.monotonic()
        while True:
            # Others may have come since, for what was added since: they need not wait for all numbers.
            aim = goal if goal is None or not self._turn.waiting else last_known(self._store)
            try:
                counts = numbers and not (deadline is not None and self._rests and self.count_stale() > FEW)
                before, at, more = self._step(aim, deadline, numbers=counts)
            except (HarkenError, OSError, sqlite3.Error) as error:
                if deadline is None or isinstance(error, Closed):
                    raise
                problem = problem or str(error)
                if not isinstance(error, Corrupt) and self._move_to_memory():
                    continue
                at = place_of(self._any())  # of the store's damage memory knows no more
                break
            taken += max(0, at - before)
            self._turn.tell()
            last = last_of(self._store, at) if goal is None else goal
            moved(at, max(at, last))
            if not more:
                break
            now = clock.monotonic()
            if self._turn.waiting and deadline is not None and at >= last and now >= began + TURN_SECONDS:
                self._rest_until = now + REST * (now - began)
                break
            if deadline is not None and now >= deadline:
                break
        if taken > MANY:
            self._tidy(lambda: deadline is None or clock.monotonic() < deadline)
        lacking = self.query(_LACKING)
        done = _progress(last_of(self._store, at) if goal is None else goal, at, lacking, self.opened)
        if not done.stale:
            self._counted = at
        return msgspec.structs.replace(done, taken=taken, problem=problem, rebuilt=self._rebuilt)

    @property
    def _rests(self) -> bool:
        """Whether the numbers of many sessions are left stale: sessions that grow without a pause are counted without
        one, and whoever asks for anything else would wait for that."""
        return clock.monotonic() < self._rest_until

    def _move_to_memory(self) -> bool:
        """For a reader, who wants an answer though nothing can be written: go on in memory with what there is. Not
        where that is too much, or where it is in memory already."""
        if self.path is None:
            return False
        held = in_memory()
        try:
            held_so_far = self._any()
            if self._size() > COPIED:
                return False
            held_so_far.backup(held)
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
        self._check_open()
        with self._turn:
            self._begin_anew("asked for")
            return msgspec.structs.replace(self.catch_up(moved=moved), rebuilt="asked for")

    def _step(self, goal: int | None, deadline: float | None, *, numbers: bool) -> tuple[int, int, bool]:
        """One transaction: where it began, where it ended, and whether there is more to do."""
        for last_try in (False, True):
            try:
                with self._transaction(deadline) as connection:
                    return take(connection, self._store, goal, numbers=numbers, go_on=self._go_on(STEP_SECONDS))
            except (OutdatedIndex, sqlite3.DatabaseError) as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error, also=sqlite3.SQLITE_ERROR):
                    if not isinstance(explained := explain(error, str(self.path)), Locked):
                        raise explained from error
                    at = place_of(self._any())  # somebody else is at it
                    return at, at, False
                if last_try:
                    raise HarkenError(
                        f"the index {self.path} cannot be built: {error}",
                        hint="delete that file; it comes back by itself",
                    ) from error
                self._begin_anew(str(error) if isinstance(error, OutdatedIndex) else f"it was damaged: {error}")
        raise AssertionError

    def _go_on(self, seconds: float) -> Callable[[], bool]:
        """Whether a step may go on: while others wait, for so long."""
        until = clock.monotonic() + seconds
        return lambda: not self._turn.waiting or clock.monotonic() < until

    def close(self) -> None:
        """Let go of the file; closing twice is closing once."""
        self._closed = True  # who follows the store ends with the step it is at
        if not self.forked:
            with self._turn:
                self._shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _progress(goal: int, at: int, lacking: Sequence[tuple[int, int]], opened: int) -> IndexProgress:
    (missing, damaged), (stale, _) = lacking
    return IndexProgress(at=at, last=max(goal, at), stale=stale, missing=missing, damaged=damaged, opened=opened)
