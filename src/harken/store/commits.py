"""Commits and sessions in SQLite, the reading half.

Commits lie in *chains*: a commit whose parent is the last of a chain goes on with it, any other begins a new one. The
row number is chain * 2**32 + place, so a walk is one range scan for each chain it passes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from harken import clock, ids
from harken.errors import Corrupt, NotFound

from . import sql, values
from .blobs import SqliteBlobs, readable, span
from .connections import PooledConnection
from .db import FSCK, Row, all_checked, checked
from .kept import KeptRows, SavedSessions
from .values import Commit, SessionRow, WalkStep, text, untext

T = TypeVar("T")
_KEPT, _SESSIONS_KEPT = 200_000, 64
_STEP, _ASKED = 512, 400  # rows of a walk that are fetched first, since it may stop early; names in one query
Names = dict[int | None, str]
"""The full names of commits by their row numbers; None is no commit."""


def full_name(id: bytes, seal: bytes, twin: int) -> str:
    """A commit's name as callers know it."""
    return id.hex() + seal.hex() if twin else id.hex()


def parent_of(number: int, fork: int | None) -> int | None:
    """The row number of a commit's parent: what its row says, else the row before it in its chain."""
    return number - 1 if fork is None and number & 0xFFFFFFFF else fork


def commit_of(row: Row, names: Names, origin: Row, principal: Row) -> Commit:
    """A commit; the row has been checked."""
    number, _, seal, _, digits, fork, artifact, time, _, _, messages, tokens, approximate, links = row
    name = names[number]
    known = msgspec.json.decode(links) if links else {}
    session_id, format, commit_type, checkpoint, template, ticket_id, thread_id = origin
    return Commit(
        artifact=artifact.hex(),
        format=format,
        parent=names[parent_of(number, fork)],
        commit_type=commit_type,
        checkpoint=checkpoint,
        time=time,
        template=template,
        principal=principal[0],
        machine=principal[1],
        session_id=session_id,
        ticket_id=ticket_id,
        thread_id=thread_id,
        message_count=messages,
        token_count=tokens,
        approximate=approximate == 1,
        spawned_from=known.get("spawned_from"),
        forked_from=known.get("forked_from", ""),
        id=name,
        seal=seal.hex(),
        short=ids.commit_ref(name, digits or ids.COMMIT_SHORT),
        created_at=clock.format_seconds(time),
    )


def words(row: Row) -> Row:
    """The texts of a row, as callers know them."""
    return tuple(map(untext, row))


def session_of(row: Row, names: Names, older: tuple[str, ...]) -> SessionRow:
    """A session; the row has been checked."""
    return SessionRow(
        session=untext(row[1]),
        version=row[2],
        runtime=untext(row[3]),
        tip=names[row[4]],
        live=names[row[5]],
        older=older,
        **dict(zip(sql.SESSION_WORDS, words(row[7:16]), strict=True)),
        started=row[16],
        ended=row[17],
        messages=row[18],
        cost_usd_micros=row[19],
        state=row[20],
        lost=row[21] == 1,
        forgotten=row[21] == sql.FORGOTTEN,
    )


def _first_of(commits: Sequence[Commit | WalkStep], types: frozenset[str]) -> int | None:
    """How many of the commits there are to the first of one of these types, it included; None where none is."""
    if not types:
        return None
    return next((n for n, commit in enumerate(commits, 1) if commit.commit_type in types), None)


def _renew(kept: dict[Any, T], fresh: dict[Any, T], most: int = _KEPT) -> None:
    if len(kept) > most:
        kept.clear()
    kept.update(fresh)


def listed(numbers: Iterable[int]) -> str:
    """Row numbers as a query takes them."""
    return msgspec.json.encode(sorted(numbers)).decode()


class SqliteCommits(SqliteBlobs):
    """What a store in SQLite answers about commits and sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.kept_rows, self._renewing = KeptRows(), threading.Lock()

    def _kept_now(self) -> KeptRows:
        """What is kept of the store's present epoch; a transaction has looked which that is when it began."""
        if not self.db.holding:
            self.db.run(self.look)
        return self.kept_rows

    def look(self, connection: PooledConnection) -> None:
        """Begin to keep anew where the store has another epoch."""
        (changes,) = connection.execute("PRAGMA data_version").fetchone()
        if changes != connection.looked_at:  # else nobody has written since this connection looked
            with self._renewing:
                epoch = connection.execute(sql.FACT, ("epoch",)).fetchone()
                if epoch != self.kept_rows.epoch:
                    self.forget_all()
                    watched = () if self.db.is_old else connection.execute(sql.WATCHED)
                    self.kept_rows.epoch, self.kept_rows.watchwords = epoch, tuple(watched)
            connection.looked_at = changes

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
            if len(name) >= values.FULL and ids.is_hex(name):
                starts.setdefault(bytes.fromhex(name[:16]), set()).add(name)
        found: dict[str, Row] = {}
        asked = list(starts)
        for at in range(0, len(asked), _ASKED):
            some = asked[at : at + _ASKED]
            for raw in self.db.all(f"{sql.COMMITS_CALLED}({','.join('?' * len(some))})", some):
                row = checked("commits", raw)
                if row[1][:8] not in starts:  # the index has no sums, and its key is not a column of the row
                    raise Corrupt("the index commits_by_id is not what was written", hint=FSCK)
                for name in starts[row[1][:8]]:
                    if name in (row[1].hex() + row[2].hex(), full_name(*row[1:4])):
                        found[name] = row
        if missing := next((name for name in commits if name not in found), ""):
            name = ids.commit_ref(missing, values.FULL)
            raise NotFound(f"no commit {name}", hint="`harken log --all` lists every commit")
        return found

    def number(self, commit: str) -> int:
        """The row number of a commit."""
        return self.number_and_seal(commit)[0]

    def number_and_seal(self, commit: str) -> tuple[int, str]:
        """The row number of a commit, and its seal."""
        kept = self._kept_now().numbers
        known = kept.get(commit)
        if known is None:
            row = self._rows_of([commit])[commit]
            known = (row[0], row[2].hex())
            self._keep(kept, {full_name(*row[1:4]): known})
        return known

    def _located(self, commits: Sequence[str]) -> dict[str, tuple[int, str]]:
        """The row number and the full name of each commit, by the names they were asked by."""
        kept = self._kept_now().numbers
        found = {name: (kept[name][0], name) for name in commits if name in kept}
        if rest := [name for name in commits if name not in found]:
            found |= {name: (row[0], full_name(*row[1:4])) for name, row in self._rows_of(rest).items()}
        return found

    def names_of(self, numbers: Iterable[int | None]) -> Names:
        """The full names of commits by their row numbers."""
        kept, wanted = self._kept_now().names, {number for number in numbers if number is not None}
        names: Names = {None: "", **{number: name for number in wanted if (name := kept.get(number))}}
        rows = self.rows_at("commits", sql.COMMITS_AT, wanted - names.keys())
        fresh = {row[0]: full_name(*row[1:4]) for row in rows}
        self._keep(kept, fresh)
        return names | fresh

    def rows_at(self, table: str, statement: str, numbers: Iterable[int], *, gone: int = 0) -> list[Row]:
        """The rows with these numbers; `Corrupt` where one is not there, unless it may be gone for its number."""
        asked = sorted(set(numbers))
        if not asked:
            return []
        self._see_own_writes()
        rows = all_checked(table, self.db.all(statement, (listed(asked),)))
        missing = max(set(asked) - {row[0] for row in rows}, default=0)
        if missing > gone:
            raise Corrupt(f"row {missing} of the table {table} is missing", hint=FSCK)
        return rows

    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first."""
        self._see_own_writes()
        if not prefix:
            rows = self.db.all(sql.COMMITS_NEWEST, (-1 if limit is None else limit,))
            return self._commits(all_checked("commits", rows))
        if not ids.is_hex(prefix):
            return []
        long = len(prefix) > values.FULL
        found = []
        for raw in self.db.all(sql.COMMITS_BETWEEN, span(prefix)):
            row = checked("commits", raw)
            if (row[1].hex() + row[2].hex() if long else row[1].hex()).startswith(prefix) and (long or not row[3]):
                found.append(row)
        return self._commits(found[:limit])

    def _commits(self, rows: Sequence[Row]) -> list[Commit]:
        """Checked rows as commits, with everything they name looked up at once."""
        names: Names = {row[0]: full_name(*row[1:4]) for row in rows}
        names[None], kept = "", self.kept_rows.numbers
        names |= self.names_of({parent_of(row[0], row[5]) for row in rows} - names.keys())
        origins = self.interned_rows("origins", {row[8] for row in rows})
        who = self.interned_rows("principals", {row[9] for row in rows})
        with readable():
            made = [commit_of(row, names, origins[row[8]], who[row[9]]) for row in rows]
        self._keep(kept, {commit.id: (row[0], commit.seal) for commit, row in zip(made, rows, strict=True)})
        return made

    def interned_rows(self, table: str, numbers: set[int]) -> dict[int, Row]:
        """Rows of `origins` or `principals`, without their numbers."""
        kept = self.kept_rows.origins if table == "origins" else self.kept_rows.principals
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
        ends, walked = frozenset(stop), list[Commit]()
        for rows in self._scan(commit, limit):
            made = self._commits(all_checked("commits", rows, beside=3))
            self._note_places([commit.artifact for commit in made], rows)
            stopped = _first_of(made, ends)
            walked += made[:stopped]
            if stopped is not None:
                break
        return walked

    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[WalkStep]:
        """`chain` without the facts that only people need."""
        ends, walked = frozenset(stop), list[WalkStep]()
        for rows in self._scan(commit, limit):
            steps = self.steps(rows)
            stopped = _first_of(steps, ends)
            walked += steps[:stopped]
            if stopped is not None:
                break
        return walked

    def steps(self, rows: Sequence[Row]) -> list[WalkStep]:
        """Rows of a walk as its steps, when they are checked."""
        sound = all_checked("commits", rows, beside=3)
        kinds = self.interned_rows("origins", {row[8] for row in sound})
        with readable():  # in one expression, since they are many
            steps = [
                WalkStep(id.hex() + seal.hex() if twin else id.hex(), art.hex(), kinds[o][2], kinds[o][1], m, t, a == 1)
                for _, id, seal, twin, _, _, art, _, o, _, m, t, a, _ in sound
            ]
        self._note_places([step.artifact for step in steps], rows)
        return steps

    def beginning(self, commit: str, count: int) -> list[WalkStep]:
        """The root of a walk and what comes next."""
        from .beginning import first_steps  # few ever need it

        self._see_own_writes()
        return first_steps(self, self.number(commit), count)

    def _note_places(self, artifacts: Sequence[str], rows: Sequence[Row]) -> None:
        """Where the bytes of a walk lie, for `get_many`: likely asked for next."""
        if len(self._places) > _KEPT:
            self._places.clear()
        self._places.update(zip(artifacts, [row[15:] for row in rows], strict=True))

    def _scan(self, commit: str, limit: int | None) -> Iterator[list[Row]]:
        """The rows of a walk in blocks that grow, newest first: a few queries for each chain that the walk passes."""
        self._see_own_writes()
        number: int | None = self.number(commit)
        left = limit if limit is not None else sys.maxsize
        step = _STEP
        while number is not None and left > 0:
            first = number >> 32 << 32
            rows = self.db.all(sql.CHAIN, (first, number, min(step, left)))
            fork = next((at for at, row in enumerate(rows, 1) if row[5] is not None), None)
            rows = rows[:fork]
            if [row[0] for row in rows] != list(range(number, number - len(rows), -1)) or not rows:
                raise Corrupt(f"chain {number >> 32} has a hole", hint=FSCK)
            yield rows
            left -= len(rows)
            if fork is None and len(rows) < step and left > 0 and rows[-1][0] != first:
                raise Corrupt(f"chain {number >> 32} has a hole", hint=FSCK)
            step = min(step * 8, _STEP * 8)
            # Whoever takes the rows has checked them by now.
            number = parent_of(rows[-1][0], rows[-1][5])

    def children(self, commit: str) -> list[Commit]:
        """The commits that name it as their parent."""
        self._see_own_writes()
        number = self.number(commit)
        return self._commits([checked("commits", row) for row in self.db.all(sql.CHILDREN, (number + 1, number))])

    # -- what is kept between calls ----------------------------------------------------------------------------

    def remember(
        self, kept: KeptRows, commits: dict[str, tuple[int, str]], interned: dict[Row, int], saved: SavedSessions
    ) -> None:
        """Keep what a transaction wrote, with what was kept when it did: its commits are likely parents of the next."""
        _renew(kept.numbers, commits)
        _renew(kept.names, {number: name for name, (number, _) in commits.items()})
        _renew(kept.interned, interned)
        _renew(kept.sessions, saved, _SESSIONS_KEPT)

    def forget_all(self) -> None:
        """After a repair: what was read before may be gone."""
        self.kept_rows = KeptRows()
        self._places.clear()
        self._frames.clear()

    def forget_places(self) -> None:
        """After a transaction: slices may have moved."""
        self._places.clear()

    # -- sessions ----------------------------------------------------------------------------------------------

    def sessions(self, *, prefix: str = "", source: str | None = None, parent: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id, by their file, or by the session that spawned them."""
        if source is not None:
            raw = self.db.all(sql.SESSIONS_FROM, (text(source),))
        elif parent:
            raw = self.db.all(sql.SESSIONS_BELOW, (text(parent),))
        elif prefix:
            raw = [row for ends in sql.ranges(prefix) for row in self.db.all(sql.SESSIONS_BETWEEN, ends)]
        else:
            raw = self.db.all(sql.SESSIONS)
        try:
            found = self.read_sessions(sorted(checked("sessions", row) for row in raw))
        except Corrupt:
            from .partial import rest_of_sessions  # few ever need it

            raise rest_of_sessions(self, raw, prefix, parent) from None
        return [row for row in found if row.session.startswith(prefix) and parent in (None, row.parent)]

    def find_session(self, session: str) -> SessionRow | None:
        """The session of exactly this id."""
        key = text(session)
        writer = self._writer() if self.db.holding else None
        found: SessionRow | None = None if writer is None else writer.session_row(key)
        if found is not None or (row := self.db.one(sql.SESSION, (key,))) is None:
            return found
        # A row that is to the last byte what was saved here needs neither its sum nor its names looked at again.
        kept, found = self.kept_rows.sessions.get(key, ((), None))
        if row != kept:
            found = self.read_sessions([checked("sessions", row)])[0]
        if writer is not None and found is not None:
            writer.session_rows[key] = (row, found)  # nobody else can change it before the transaction ends
        return found

    def read_sessions(self, rows: Sequence[Row]) -> list[SessionRow]:
        """Checked rows as sessions."""
        with readable():
            older = {row[0]: tuple(map(int, row[6].split())) for row in rows if row[6]}
            names = self.names_of(n for row in rows for n in (row[4], row[5], *older.get(row[0], ())))
            return [session_of(row, names, tuple(names[n] for n in older.get(row[0], ()))) for row in rows]
