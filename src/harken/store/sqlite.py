"""The store people use: one SQLite file. `blobs.py` and `commits.py` are its reading half, `sqlite_writer.py` changes
it; here is what ties them together: transactions, names and notes, the feed, the cache, maintenance, and when small
frames are gathered.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from harken.errors import BadRequest, Corrupt, HarkenError

from . import feed, packing, sql
from .arguments import STORE, checks_arguments
from .base import Store
from .blobs import readable
from .cache import Cache
from .commits import listed
from .db import FSCK, Database, Row, all_checked, checked
from .opening import Steps, is_writable
from .sqlite_writer import SqliteWriter
from .tombstones import Tombstone
from .upkeep import SqliteUpkeep
from .values import Annotation, Change, Commit, Move, Name, Sighting, text, untext


class _Transaction:
    """The block of `store.write()`."""

    __slots__ = ("_store", "_writer")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> SqliteWriter:
        self._writer = SqliteWriter(self._store)
        return self._writer

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._writer.finish()
        finally:
            self._writer.end()
            self._store.forget_places()
        if kind is None:
            if "bell" in self._store.__dict__:
                self._store.bell.ring()
            if self._writer.loosened or self._writer.ended:
                self._store.packer.after(self._writer)


@checks_arguments(STORE, Store)
class SqliteStore(SqliteUpkeep):
    """Bytes, commits and names in one file."""

    def __init__(
        self, path: str | os.PathLike[str], *, steps: Steps = sql.STEPS, timeout: float = 60.0, damaged: bool = False
    ) -> None:
        super().__init__()
        self.path = Path(path).absolute()
        self.location = str(self.path)
        kind = Database
        if not is_writable(self.path):
            from .read_only import ReadOnlyDatabase as kind  # few ever need it
        try:
            self.db = kind(self.path, steps=steps, timeout=timeout)
        except HarkenError as problem:
            from .damaged import instead

            self.db = instead(self.path, problem, timeout, damaged=damaged)

    @cached_property
    def derived(self) -> Cache:
        """What keeps derived bytes; made by the first who asks for some."""
        return Cache(f"{self.path}-cache")

    @cached_property
    def packer(self) -> Packer:
        """What gathers small frames; made by the first who writes."""
        return Packer(self)

    @cached_property
    def bell(self) -> feed.Bell:
        """What wakes those who wait for a change; made by the first who waits."""
        return feed.Bell()

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self.db.closed

    @property
    def problem(self) -> HarkenError | None:
        """Why this is only what is left of a damaged store, where it is."""
        return self.db.problem

    def _check_open(self) -> None:
        self.db.check_open()

    def write(self) -> _Transaction:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        return _Transaction(self)

    # -- who made commits, and when ----------------------------------------------------------------------------

    def latest(self, principal: str, time: int) -> Commit | None:
        """The principal's newest commit at or before the instant; sightings count."""
        self._see_own_writes()
        best: tuple[int, int] | None = None
        for row in self.db.all(sql.PRINCIPALS_CALLED, (text(principal),)):
            number = checked("principals", row)[0]
            found = all_checked("commits", self.db.all(sql.LATEST_COMMIT, (number, time)))
            seen = all_checked("sightings", self.db.all(sql.LATEST_SIGHTING, (number, time)))
            both = [(row[7], row[0]) for row in found] + [(row[3], row[1]) for row in seen]
            best = max([*both, *([best] if best else [])], default=None)
        if best is None:
            return None
        return self._commits(self.rows_at("commits", sql.COMMITS_AT, [best[1]]))[0]

    def sightings(self, commit: str) -> list[Sighting]:
        """Who made this commit, the first to do so first."""
        return self.sightings_of([commit])[commit]

    def sightings_of(self, commits: Sequence[str]) -> dict[str, list[Sighting]]:
        """`sightings` of many commits, by the names that were asked for."""
        made = dict(zip(commits, self.get_commits(commits), strict=True))
        seen = self._about(commits, "sightings", sql.SIGHTINGS)
        who = self.interned_rows("principals", {row[2] for rows in seen.values() for row in rows})
        return {
            name: [
                Sighting(commit=first.id, principal=first.principal, machine=first.machine, time=first.time),
                *(
                    Sighting(commit=first.id, principal=who[row[2]][0], machine=who[row[2]][1], time=row[3])
                    for row in seen[name]
                ),
            ]
            for name, first in made.items()
        }

    def _about(self, commits: Sequence[str], table: str, statement: str) -> dict[str, list[Row]]:
        """The rows of a table that are about these commits, by the names that were asked for; each row's own name
        of the commit stands in the place of its number."""
        located = self._located(commits)
        found: dict[int, list[Row]] = {number: [] for number, _ in located.values()}
        rows = self.db.all(statement, (listed(found),))
        if not rows:  # of most commits nothing is said
            return {name: [] for name in located}
        for raw in rows:
            row = checked(table, raw)
            found[row[1]].append(row)
        return {name: [(row[0], own, *row[2:]) for row in found[number]] for name, (number, own) in located.items()}

    # -- what is said about them -------------------------------------------------------------------------------

    def annotations(self, commit: str) -> list[Annotation]:
        """Everything said about a commit, oldest first."""
        return self.annotations_of([commit])[commit]

    def annotations_of(self, commits: Sequence[str]) -> dict[str, list[Annotation]]:
        """`annotations` of many commits, by the names that were asked for."""
        found = self._about(commits, "annotations", sql.ANNOTATIONS)
        return {
            name: [
                Annotation(commit=commit, key=untext(key), value=untext(value), time=time, who=untext(who))
                for _, commit, key, value, time, who in rows
            ]
            for name, rows in found.items()
        }

    def names(self, kind: str | None = None) -> list[Name]:
        """Branches and tags."""
        return [name for name in self._names(self.db.all(f"{sql.NAMES} ORDER BY name")) if kind in (None, name.kind)]

    def find_name(self, name: str) -> Name | None:
        """What a branch or tag points at."""
        return next(iter(self._names(self.db.all(sql.NAME, (text(name),)))), None)

    def names_at(self, commits: Sequence[str]) -> dict[str, list[Name]]:
        """The branches and tags that point at each of these commits, by the names that were asked for."""
        located = self._located(commits)
        found: dict[int, list[tuple[str, str]]] = {number: [] for number, _ in located.values()}
        for raw in self.db.all(sql.NAMES_AT, (listed(found),)):
            _, name, kind, target = checked("names", raw)
            found[target].append((name, kind))
        return {
            asked: [Name(name=name, kind=kind, target=own) for name, kind in found[number]]
            for asked, (number, own) in located.items()
        }

    def _names(self, raw: Iterable[Row]) -> list[Name]:
        rows = [checked("names", row) for row in raw]
        targets = self.names_of(row[3] for row in rows)
        return [Name(name=name, kind=kind, target=targets[target]) for _, name, kind, target in rows]

    def moves(self, name: str | None = None, *, limit: int | None = None) -> list[Move]:
        """Deliberate moves, newest first."""
        raw = self.db.all(sql.MOVES, (None if name is None else text(name), -1 if limit is None else limit))
        rows = [checked("moves", row) for row in raw]
        ends = self.names_of(end for row in rows for end in row[3:5])
        return [
            Move(
                number=number,
                name=moved,
                kind=kind,
                before=ends[before],
                after=ends[after],
                time=time,
                who=untext(who),
                why=untext(why),
            )
            for number, moved, kind, before, after, time, who, why in rows
        ]

    # -- the feed ----------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Drawn when the store was made, or repaired; a backup has its own. It is read each time: another process may
        have repaired the store meanwhile."""
        self._check_open()
        row = self.db.one(sql.FACT, ("epoch",))
        if row is None:
            raise Corrupt(f"{self.location} has lost its epoch", hint=FSCK)
        return str(checked("facts", row)[1])

    def last_change(self) -> int:
        """The number of the newest change; 0 in a store that never changed."""
        row = self.db.one(sql.LAST_CHANGE)
        return int(checked("changes", row)[0]) if row else 0

    def since(self, number: int, limit: int = 1000) -> list[Change]:
        """The changes after that number, oldest first, at most `limit` of them."""
        rows = [checked("changes", row) for row in self.db.all(sql.CHANGES_AFTER, (number, max(limit, 0)))]
        with readable():
            return feed.changes_of(self, rows, number, limit)

    def wait(self, number: int, timeout: float) -> bool:
        """Wait until there is a change after that number, made by whatever thread or process, or another epoch."""
        began = self.epoch
        return self.bell.wait(lambda: self.last_change() > number or self.epoch != began, timeout)

    # -- the cache of derived bytes ----------------------------------------------------------------------------

    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        return self.derived.get(f"{self.epoch}/{key}")

    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while, for this epoch of the store."""
        self.derived.put(f"{self.epoch}/{key}", data)

    @property
    def has_forgotten(self) -> bool:
        """Whether anything was ever forgotten."""
        return self._kept_now().watchwords != ()

    def tombstones(self, artifacts: Sequence[str]) -> dict[str, Tombstone]:
        """What was forgotten of these artifacts, by their names."""
        if not self.has_forgotten:
            return {}
        from .erasing import tombstones

        return tombstones(self, artifacts)

    def keep_out(self, value: str) -> str:
        """The text without the secrets that were forgotten."""
        if not self.has_forgotten:
            return value
        from .erasing import kept_out

        return kept_out(self, value)

    # -- maintenance -------------------------------------------------------------------------------------------

    def pack(self, commit: str = "") -> int:
        """Gather small frames into large ones: those of the commit's chain, or all."""
        return self.packer.pack(self.number(commit) >> 32 if commit else None)

    def close(self) -> None:
        """Gather what this store left loose, and let go of the file; closing twice is closing once."""
        try:
            self._check_open()
        except BadRequest:  # closed before, or of the process that this one was forked from
            return
        try:
            if "packer" in self.__dict__:
                with contextlib.suppress(HarkenError):  # nothing is lost if it cannot be gathered now
                    self.packer.at_close()
        finally:  # whatever else goes wrong there: a store that was closed is closed
            self.db.close()
            if "derived" in self.__dict__:
                self.derived.close()


# -- what is loose: when it is gathered, and the room that leaves ---

_FREE_PAGES = 16
_AT_CLOSE = 4096  # pages moved when a store is closed; gc moves them all


class Packer:
    """Keeps count of what is loose, and has it gathered (`packing.py`) when there is enough."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._loose: dict[int, list[int]] | None = None  # chain -> [bytes, frames]
        self._total = 0
        self._touched: set[int] = set()
        self._touching = threading.Lock()
        self.free: list[int] = []
        """Slots that were free when we last looked; whoever takes one looks again."""
        self.made = 0
        """How many were made here."""

    def after(self, writer: SqliteWriter) -> None:
        """After a transaction: pack what has become enough. The transaction is done, whatever happens here."""
        with contextlib.suppress(HarkenError):
            counts = self._counts()
            chains = set(writer.ended)
            for chain, size in writer.loosened:
                count = counts.setdefault(chain, [0, 0])
                count[0] += size
                count[1] += 1
                self._total += size
                chains.add(chain)
            with self._touching:
                self._touched |= chains
            for chain in chains:
                held, frames = counts.get(chain, (0, 0))
                if held >= packing.FRAME_SIZE or (frames >= packing.FEW and chain in writer.ended):
                    self.pack(chain)
            if self._total >= packing.LOOSE_TOTAL:
                self.pack(None)

    def _counts(self) -> dict[int, list[int]]:
        known = self._loose  # another thread may forget it at any moment
        if known is None:
            rows = self._store.db.all(sql.LOOSE_SUMS, (packing.SMALL,))
            # Called after the transaction, so its own frames are among the rows; they are added again by the caller,
            # which makes the count a little high once, and the packing a little early.
            self._loose = known = {chain: [size, count] for chain, size, count, _ in rows}
            self._total = sum(small for *_, small in rows)
            self.free = [slot for slot, *_ in self._free_slots()]
        return known

    def pack(self, chain: int | None) -> int:
        """Gather a chain's loose frames, or everybody's; the answer is how many small frames went."""
        self._loose = None
        return packing.pack(self._store, chain)

    def settle(self, chain: int) -> None:
        """Inside a transaction: gather a chain's loose frames for good: another frame is going to lean on them."""
        packing.settle(self._store, chain)
        self._loose = None

    def at_close(self) -> None:
        """Gather the chains this store wrote to where it is worth it, and give the room back to the disk."""
        with self._touching:  # other threads may still be writing
            touched = sorted(self._touched)
        counts = self._counts() if touched else {}
        for chain in touched:
            if counts.get(chain, (0, 0))[1] >= packing.FEW:
                self.pack(chain)
                counts = self._counts()
        if touched:
            self.release_room()

    def _free_slots(self) -> list[Row]:
        """The slots whose frames have been packed. One whose row is damaged may hold what it does not say: it stays."""
        found = []
        for row in self._store.db.all(sql.FREE_SLOTS):
            with contextlib.suppress(Corrupt):
                found.append(checked("loose", row))
        return found

    def release_room(self, *, at_least: int = _FREE_PAGES, at_most: int = _AT_CLOSE) -> int:
        """Give pages that packing or gc left empty back to the file system; the answer is how many."""
        if len(self._free_slots()) >= packing.FEW:
            with self._store.db.transaction():
                self._store.db.many(sql.DROP_SLOT, [(slot,) for slot, *_ in self._free_slots()])
            self.free.clear()
        row = self._store.db.one("PRAGMA freelist_count")
        free = int(row[0]) if row else 0
        if free < at_least:
            return 0
        self._store.db.alone(f"PRAGMA incremental_vacuum({at_most})")
        return min(free, at_most)
