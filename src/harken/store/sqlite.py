"""The store people use: one SQLite file. This is its reading half; `sqlite_writer.py` changes it.

Commits lie in *chains*: a commit whose parent is the last of a chain goes on with it, any other begins a new one. The
row number is chain * 2**32 + place, so a walk is one range scan for each chain it passes.

What is kept in memory between calls is committed and never changes; inside a transaction nothing is kept, since it may
be taken back.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harken import ids
from harken.errors import Corrupt, HarkenError, NotFound

from . import feed, naming, sql
from .blobs import SqliteBlobs
from .cache import Cache
from .db import Database, Steps, text, untext
from .packing import Packer
from .rows import (
    FSCK,
    Names,
    Row,
    checked,
    commit_of,
    first_of_chain,
    full_name,
    link_of,
    parent_of,
    ranges,
    readable,
    session_of,
    span,
    words,
)
from .sqlite_writer import SqliteWriter
from .values import Annotation, Change, Commit, GcReport, Link, Move, Name, Report, SessionRow, Sighting

T = TypeVar("T")
_KEPT = 200_000
_STEP = 512  # rows of a walk that are fetched first, so that one that stops early has not read everything
_ASKED = 400  # names in one query


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
            self._store.bell.ring()
            self._store.packer.after(self._writer)


class SqliteStore(SqliteBlobs):
    """Bytes, commits and names in one file."""

    def __init__(self, path: str | os.PathLike[str], *, steps: Steps = sql.STEPS, timeout: float = 60.0) -> None:
        super().__init__()
        self.path = Path(path).absolute()
        self.location = str(self.path)
        self.db = Database(self.path, steps=steps, timeout=timeout)
        self.derived = Cache(f"{self.path}-cache")
        self.packer = Packer(self)
        self.bell = feed.Bell()
        self._epoch = ""
        self._numbers: dict[str, tuple[int, str]] = {}
        self._names_kept: dict[int, str] = {}
        self.interned: dict[tuple[str, ...], int] = {}
        self._origins: dict[int, Row] = {}
        self._principals: dict[int, Row] = {}

    def write(self) -> _Transaction:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        return _Transaction(self)

    # -- commits -----------------------------------------------------------------------------------------------

    def get_commit(self, commit: str) -> Commit:
        """The commit of that full name."""
        return self.get_commits([commit])[0]

    def get_commits(self, commits: Sequence[str]) -> list[Commit]:
        """The commits of these full names, in the order asked."""
        rows = self._rows_of(commits)
        return self._commits([rows[name] for name in commits])

    def _rows_of(self, commits: Sequence[str]) -> dict[str, Row]:
        """The checked rows of commits, by the names they were asked by; `NotFound` says which is not there."""
        self._see_own_writes()
        starts: dict[bytes, set[str]] = {}
        for name in commits:
            if len(name) >= naming.FULL and ids.is_hex(name):
                starts.setdefault(bytes.fromhex(name[:16]), set()).add(name)
        found: dict[str, Row] = {}
        asked = list(starts)
        for at in range(0, len(asked), _ASKED):
            some = asked[at : at + _ASKED]
            for raw in self.db.all(f"{sql.COMMITS_CALLED}({','.join('?' * len(some))})", some):
                row = checked("commits", raw)
                both = row[1].hex() + row[2].hex()
                for name in starts[row[1][:8]]:
                    if name == both or name == full_name(*row[1:4]):
                        found[name] = row
        for name in commits:
            if name not in found:
                raise NotFound(f"no commit {ids.commit_ref(name)}", hint="`harken log --all` lists every commit")
        return found

    def number(self, commit: str) -> int:
        """The row number of a commit."""
        return self.number_and_seal(commit)[0]

    def number_and_seal(self, commit: str) -> tuple[int, str]:
        """The row number of a commit, and its seal."""
        known = self._numbers.get(commit)
        if known is None:
            row = self._rows_of([commit])[commit]
            known = (row[0], row[2].hex())
            self._keep(self._numbers, {full_name(*row[1:4]): known})
        return known

    def _located(self, commits: Sequence[str]) -> dict[str, tuple[int, str]]:
        """The row number and the full name of each commit, by the names they were asked by."""
        found = {name: (known[0], name) for name in commits if (known := self._numbers.get(name))}
        rest = [name for name in commits if name not in found]
        return found | {name: (row[0], full_name(*row[1:4])) for name, row in self._rows_of(rest).items()}

    def names_of(self, numbers: Iterable[int | None]) -> Names:
        """The full names of commits by their row numbers."""
        names: Names = {None: ""}
        asked = set()
        for number in numbers:
            if number is not None:
                name = self._names_kept.get(number)
                if name is None:
                    asked.add(number)
                else:
                    names[number] = name
        fresh = {row[0]: full_name(*row[1:4]) for row in self.rows_at("commits", sql.COMMITS_AT, asked)}
        self._keep(self._names_kept, fresh)
        return names | fresh

    def rows_at(self, table: str, statement: str, numbers: Iterable[int], *, gone: int = 0) -> list[Row]:
        """The rows with these numbers; `Corrupt` where one is not there, unless it may be gone for its number."""
        asked = sorted(set(numbers))
        if not asked:
            return []
        self._see_own_writes()
        rows = [checked(table, row) for row in self.db.all(statement, (_listed(asked),))]
        missing = max(set(asked) - {row[0] for row in rows}, default=0)
        if missing > gone:
            raise Corrupt(f"row {missing} of the table {table} is missing", hint=FSCK)
        return rows

    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first."""
        self._see_own_writes()
        if not prefix:
            rows = self.db.all(sql.COMMITS_NEWEST, (-1 if limit is None else limit,))
            return self._commits([checked("commits", row) for row in rows])
        if not ids.is_hex(prefix):
            return []
        long = len(prefix) > naming.FULL
        found = []
        for raw in self.db.all(sql.COMMITS_BETWEEN, span(prefix)):
            row = checked("commits", raw)
            if (row[1].hex() + row[2].hex() if long else row[1].hex()).startswith(prefix) and (long or not row[3]):
                found.append(row)
        return self._commits(found[:limit])

    def _commits(self, rows: Sequence[Row]) -> list[Commit]:
        """Checked rows as commits, with everything they name looked up at once."""
        names: Names = {row[0]: full_name(*row[1:4]) for row in rows}
        names[None] = ""
        names |= self.names_of({parent_of(row[0], row[5]) for row in rows} - names.keys())
        origins = self._interned_rows("origins", {row[8] for row in rows})
        who = self._interned_rows("principals", {row[9] for row in rows})
        with readable():
            made = [commit_of(row, names[parent_of(row[0], row[5])], origins[row[8]], who[row[9]]) for row in rows]
        self._keep(self._numbers, {commit.id: (row[0], commit.seal) for commit, row in zip(made, rows, strict=True)})
        return made

    def _interned_rows(self, table: str, numbers: set[int]) -> dict[int, Row]:
        """Rows of `origins` or `principals`, without their numbers."""
        kept = self._origins if table == "origins" else self._principals
        statement = sql.ORIGINS_AT if table == "origins" else sql.PRINCIPALS_AT
        missing = numbers - kept.keys()
        if not missing:
            return kept
        fresh = {row[0]: words(row[1:]) for row in self.rows_at(table, statement, missing)}
        self._keep(kept, fresh)
        return {number: kept[number] if number in kept else fresh[number] for number in numbers}

    def _keep(self, kept: dict[Any, T], fresh: dict[Any, T]) -> None:
        """Keep what was read between calls; not inside a transaction, which may be taken back."""
        if not self.db.holding and len(kept) + len(fresh) <= _KEPT:
            kept.update(fresh)

    def chain(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Commit]:
        """From the commit back towards its root, a range scan for each chain it passes."""
        ends, walked = frozenset(stop), []
        for rows in self._scan(sql.CHAIN, commit, limit):
            for made in self._commits([checked("commits", row) for row in rows]):
                walked.append(made)
                if made.commit_type in ends:
                    return walked
        return walked

    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Link]:
        """`chain` without the facts that only people need; where the bytes lie is noted for `get_many`."""
        ends = frozenset(stop)
        walked: list[Link] = []
        if len(self._places) > _KEPT:
            self._places.clear()
        for rows in self._scan(sql.WALK, commit, limit):
            sound = [checked("commits", row[:15]) for row in rows]
            kinds = self._interned_rows("origins", {row[8] for row in sound})
            with readable():
                links = [link_of(row, kinds[row[8]]) for row in sound]
            self._places.update(zip([link.artifact for link in links], [row[15:] for row in rows], strict=True))
            if ends:
                for n, link in enumerate(links):
                    if link.commit_type in ends:
                        return walked + links[: n + 1]
            walked += links
        return walked

    def _scan(self, statement: str, commit: str, limit: int | None) -> Iterator[list[Row]]:
        """The rows of a walk in blocks that grow, newest first: a few queries for each chain that the walk passes."""
        self._see_own_writes()
        number: int | None = self.number(commit)
        left = limit if limit is not None else sys.maxsize
        step = _STEP
        while number is not None and left > 0:
            first = first_of_chain(number)
            rows = self.db.all(statement, (first, number, min(step, left)))
            if [row[0] for row in rows] != list(range(number, number - len(rows), -1)) or not rows:
                raise Corrupt(f"chain {number >> 32} has a hole", hint=FSCK)
            yield rows
            left -= len(rows)
            if len(rows) < step and left > 0 and rows[-1][0] != first:
                raise Corrupt(f"chain {number >> 32} has a hole", hint=FSCK)
            step = min(step * 8, 1 << 15)
            # Whoever takes the rows has checked them by now.
            number = parent_of(rows[-1][0], rows[-1][5])

    def children(self, commit: str) -> list[Commit]:
        """The commits that name it as their parent."""
        self._see_own_writes()
        number = self.number(commit)
        return self._commits([checked("commits", row) for row in self.db.all(sql.CHILDREN, (number + 1, number))])

    def latest(self, principal: str, time: int) -> Commit | None:
        """The principal's newest commit at or before the instant; sightings count."""
        self._see_own_writes()
        best: tuple[int, int] | None = None
        for row in self.db.all(sql.PRINCIPALS_CALLED, (text(principal),)):
            number = checked("principals", row)[0]
            found = self.db.one(sql.LATEST_COMMIT, (number, time))
            seen = self.db.one(sql.LATEST_SIGHTING, (number, time))
            sighting = checked("sightings", seen) if seen else None
            both = (best, found and found[:2], sighting and (sighting[3], sighting[1]))
            best = max(filter(None, both), default=None)
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
        who = self._interned_rows("principals", {row[2] for rows in seen.values() for row in rows})
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
        for raw in self.db.all(statement, (_listed(found),)):
            row = checked(table, raw)
            found[row[1]].append(row)
        return {name: [(row[0], own, *row[2:]) for row in found[number]] for name, (number, own) in located.items()}

    # -- what the writer keeps between transactions ------------------------------------------------------------

    def remember(self, commits: dict[str, tuple[int, str]], interned: dict[tuple[str, ...], int]) -> None:
        """Where these commits lie, which are likely parents of the next, and the numbers of repeated text."""
        for kept in (self._numbers, self._names_kept, self.interned):
            if len(kept) > _KEPT:
                kept.clear()
        self._numbers.update(commits)
        self._names_kept.update((number, name) for name, (number, _) in commits.items())
        self.interned.update(interned)

    def forget_all(self) -> None:
        """After a repair: what was read before may be gone."""
        for kept in (
            self._numbers,
            self._names_kept,
            self.interned,
            self._origins,
            self._principals,
            self._places,
            self._frames,
        ):
            kept.clear()
        self._epoch = ""

    def forget_places(self) -> None:
        """After a transaction: slices may have moved."""
        self._places.clear()

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
        for raw in self.db.all(sql.NAMES_AT, (_listed(found),)):
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

    # -- sessions ----------------------------------------------------------------------------------------------

    def sessions(self, *, prefix: str = "", source: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id or by the file they came from."""
        if source is not None:
            raw = self.db.all(sql.SESSIONS_FROM, (text(source),))
        elif prefix:
            raw = [row for ends in ranges(prefix) for row in self.db.all(sql.SESSIONS_BETWEEN, ends)]
        else:
            raw = self.db.all(sql.SESSIONS)
        rows = sorted(checked("sessions", row) for row in raw)
        return [row for row in self._sessions(rows) if row.session.startswith(prefix)]

    def find_session(self, session: str) -> SessionRow | None:
        """The session of exactly this id."""
        row = self.db.one(sql.SESSION, (text(session),))
        return self._sessions([checked("sessions", row)])[0] if row else None

    def _sessions(self, rows: Sequence[Row]) -> list[SessionRow]:
        with readable():
            older = {row[0]: tuple(map(int, row[6].split())) for row in rows if row[6]}
            names = self.names_of(n for row in rows for n in (row[4], row[5], *older.get(row[0], ())))
            return [session_of(row, names, tuple(names[n] for n in older.get(row[0], ()))) for row in rows]

    # -- the feed ----------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Drawn when the store was made, or repaired; a backup has its own."""
        if not self._epoch or self.db.holding:
            row = self.db.one(sql.FACT, ("epoch",))
            if row is None:
                raise Corrupt(f"{self.location} has lost its epoch", hint=FSCK)
            self._epoch = str(checked("facts", row)[1])
        return self._epoch

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
        """Wait until there is a change after that number, made by whatever thread or process."""
        return self.bell.wait(lambda: self.last_change() > number, timeout)

    # -- the cache of derived bytes ----------------------------------------------------------------------------

    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        return self.derived.get(f"{self.epoch}/{key}")

    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while, for this epoch of the store."""
        self.derived.put(f"{self.epoch}/{key}", data)

    # -- maintenance -------------------------------------------------------------------------------------------

    def pack(self, commit: str = "") -> int:
        """Gather small frames into large ones: those of the commit's chain, or all."""
        return self.packer.pack(self.number(commit) >> 32 if commit else None)

    def fsck(self, *, read_data: bool = False, repair: bool = False, now: int | None = None) -> Report:
        """Is everything what it says it is?"""
        from .checking import check

        return check(self, read_data=read_data, repair=repair, now=now)

    def gc(
        self,
        *,
        dry_run: bool = False,
        now: int | None = None,
        keep_cache: bool = False,
        limit: int | None = None,
        backing: Callable[[str], bool] | None = None,
        needed: Iterable[str] = (),
    ) -> GcReport:
        """Remove what nothing needs."""
        from .collecting import collect

        return collect(
            self, dry_run=dry_run, now=now, keep_cache=keep_cache, limit=limit, backing=backing, needed=needed
        )

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copy the store as it is now into a new file, a store of its own; the answer is its size in bytes."""
        from .copying import copy_file

        return copy_file(self, path)

    def close(self) -> None:
        """Gather what this store left loose, and let go of the file; closing twice is closing once."""
        if self.db.closed:
            return
        with contextlib.suppress(HarkenError):  # nothing is lost if it cannot be gathered now
            self.packer.at_close()
        self.db.close()
        self.derived.close()


def _listed(numbers: Iterable[int]) -> str:
    """Row numbers as a query takes them."""
    return msgspec.json.encode(sorted(numbers)).decode()
