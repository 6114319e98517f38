"""What a repair has to put in order: rows that point at what is lost.

An artifact whose bytes are lost is evicted, so its commits, summaries and counts stay, and putting the same bytes again
brings it back. In the place of a lost commit that others stand on, or of a lost origin, lies a row that says so: it
keeps its number, so that nothing else can ever come to stand under them, and whoever reads it is told. Names, moves
and notes that point at lost commits go into quarantine. A session that has lost its newest commits stands at the newest
one that is left; and what an import remembers of a session with losses is forgotten, so that the next one reads the
runtime's file again and brings back what it still has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken import ids
from harken.errors import HarkenError

from . import sql
from .blob_writer import place_artifact, set_artifact
from .checking import Checker
from .commits import parent_of, words
from .db import Row
from .feed import retell, told_of
from .lost import lost_commit, lost_origin, quarantined, seal_above
from .opening import drawn_epoch
from .packing import highest_frame, keep_highest
from .reports import Report
from .tombstones import BEGUN

if TYPE_CHECKING:
    from .salvage import Salvage
    from .sqlite import SqliteStore

_POINTING = {
    "sightings": ('"commit"',),
    "annotations": ('"commit"',),
    "names": ("target",),
    "moves": ("before", "after"),
}


class Settler:
    """Puts a store in order whose rows are all true, though not all are there."""

    def __init__(self, store: SqliteStore, now: int) -> None:
        self._store, self._db, self._now = store, store.db, now
        self._evicted: set[int] = set()
        self.lost: list[str] = []

    def run(self, found: Salvage) -> None:
        """All of it, in one transaction."""
        checker = Checker(self._store, Report())
        with self._db.snapshot():
            checker.artifacts(read_data=True)
        with self._db.transaction():
            highest = highest_frame(self._store)
            for table, key in checker.damaged:
                self._damaged(table, int(key))
            keep_highest(self._store, highest)
            self._db.do("DELETE FROM parts WHERE artifact NOT IN (SELECT n FROM artifacts)")
            self._erasures()
            self._principals()
            self._commits()
            self._origins(found.origins)
            self._pointing()
            self._lost_sessions(found)
            self._sessions()
            self._numbers()
            retell(self._db)
            self._db.do(sql.SET_FACT, drawn_epoch())
        self._store.forget_all()

    # -- bytes -------------------------------------------------------------------------------------------------

    def _damaged(self, table: str, key: int) -> None:
        if table == "artifacts":
            if not self._mended(key):
                self._evict(key, "its bytes are damaged")
            return
        number = key if table == "frames" else -key
        leaning = self._db.all("SELECT n FROM frames WHERE prefix = ? AND n <> ?", (number, number))
        for (frame,) in [(number,), *leaning]:
            for (artifact,) in self._db.all(
                "SELECT n FROM artifacts WHERE frame = ?1 UNION SELECT artifact FROM parts WHERE frame = ?1", (frame,)
            ):
                self._evict(artifact, f"frame {number} is damaged")
            self._db.do(*((sql.DROP_FRAME, (frame,)) if frame > 0 else (sql.DROP_SLOT, (-frame,))))

    def _mended(self, artifact: int) -> bool:
        """Whether the bytes are what the name says after all; then only the sum was wrong, or what it covers."""
        row = self._db.one(f"{sql.ARTIFACTS} WHERE n = ?", (artifact,))
        try:
            if row is None or row[2] is None:
                return False
            if ids.artifact_id(self._store.frame(row[2])[row[3] : row[3] + row[4]]) != row[1].hex():
                return False
        except (HarkenError, TypeError, ValueError):
            return False
        set_artifact(self._db, row[:-1])
        return True

    def _evict(self, artifact: int, why: str) -> None:
        row = self._db.one(f"{sql.ARTIFACTS} WHERE n = ?", (artifact,))
        if row is not None:
            self.lost.append(f"{ids.artifact_ref(row[1].hex())}: {why}")
            self._quarantine("artifacts", artifact, why)
            place_artifact(self._db, row[:-1], None, None)
            self._evicted.add(artifact)
        self._db.do(sql.DROP_PARTS, (artifact,))

    # -- rows that others need ---------------------------------------------------------------------------------

    def _erasures(self) -> None:
        """Why something was forgotten may be lost; that it was is not."""
        self._db.do("DELETE FROM tombstones WHERE artifact NOT IN (SELECT n FROM artifacts)")
        for (number,) in self._db.all(
            "SELECT erasure FROM tombstones UNION SELECT erasure FROM watchwords EXCEPT SELECT n FROM erasures"
        ):
            row = (number, 0, "(lost)", "", "{}", BEGUN)
            self._db.do(sql.ADD_ERASURE, (*row, ids.row_sum("erasures", row)))
            self.lost.append(f"erasure {number}: who forgot what, and why")

    def _principals(self) -> None:
        """Who made a commit is outside its name and its seal: where that is lost, the rest of it need not be."""
        for (number,) in self._db.all(
            "SELECT principal FROM commits UNION SELECT principal FROM sightings EXCEPT SELECT n FROM principals"
        ):
            row = (number, "(lost)", f"(lost {number})")
            self._db.do(sql.ADD_PRINCIPAL, (*row, ids.row_sum("principals", row)))
            self.lost.append(f"principal {number}: commits say (lost) instead")

    def _commits(self) -> None:
        """A row in the place of each lost commit that another stands on."""
        needed = {
            above
            for number, fork in self._db.all("SELECT n, parent FROM commits")
            if (above := parent_of(number, fork)) is not None
        }
        there = {number for (number,) in self._db.all("SELECT n FROM commits")}
        (any_artifact,) = self._db.one("SELECT min(n) FROM artifacts") or (None,)
        (any_origin,) = self._db.one("SELECT min(origin) FROM commits") or (None,)
        (any_principal,) = self._db.one("SELECT min(n) FROM principals") or (None,)
        for number in sorted(needed - there):
            self._db.do(sql.ADD_COMMIT, lost_commit(number, any_artifact, any_origin, any_principal))
            self.lost.append(f"commit {number}: others stand on it")

    def _origins(self, indexed: dict[int, Row]) -> None:
        """What commits are (format, session, …): from the index, if a commit's seal agrees."""
        for (number,) in self._db.all("SELECT origin FROM commits EXCEPT SELECT n FROM origins"):
            row = indexed.get(number)
            if row is not None and self._vouched(number, row):
                self._db.do(sql.ADD_ORIGIN, (*row, ids.row_sum("origins", row)))
            else:
                self._db.do(sql.ADD_ORIGIN, lost_origin(number))
                self.lost.append(f"origin {number}: the commits that share it cannot be read")

    def _vouched(self, number: int, row: Row) -> bool:
        """Whether the seal of some commit says that this origin is what it was."""
        for found in self._db.all(f"{sql.COMMITS} WHERE c.origin = ? AND c.sum IS NOT ? LIMIT 9", (number, sql.LOST)):
            above = parent_of(found[0], found[5])
            seal = self._db.one("SELECT seal FROM commits WHERE n = ?", (above,)) if above is not None else (b"",)
            if seal is not None and seal_above(found, words(row[1:]), seal[0].hex()) == found[2].hex():
                return True
        return False

    # -- rows that point at commits ----------------------------------------------------------------------------

    def _pointing(self) -> None:
        known = f"SELECT n FROM commits WHERE sum IS NOT x'{sql.LOST.hex()}'"
        for table, columns in _POINTING.items():
            gone = " OR ".join(f"({column} IS NOT NULL AND {column} NOT IN ({known}))" for column in columns)
            what = "name" if table in ("names", "moves") else "n"
            for number, called in self._db.all(f"SELECT n, {what} FROM {table} WHERE {gone}"):
                self._quarantine(table, number, "its commit is lost")
                self._db.do(f"DELETE FROM {table} WHERE n = ?", (number,))
                self.lost.append(f"{table.removesuffix('s')} {called}: its commit is lost")

    def _lost_sessions(self, found: Salvage) -> None:
        """Sessions whose row is on no page any more: the feed told of their numbers, an index has their names, and the
        commits of a session say its name too. Nothing but a repair ever takes a session away."""
        there: dict[int, object] = dict(self._db.all("SELECT n, session FROM sessions"))
        said = {name for (name,) in self._db.all("SELECT session_id FROM origins")} - {"", *there.values()}
        named = {number: texts & said for number, texts in found.indexed.items() if texts & said}
        for number in sorted((told_of(self._db, "session") | named.keys()) - there.keys()):
            if ("sessions", number) not in found.aside:
                name = min(named.get(number, ()), default=f"number {number}")
                self.lost.append(f"session {name}: its row; commits of it may still be there")

    def _sessions(self) -> None:
        whole, standing = _Whole(self._store, self._evicted), _Whole(self._store, set())
        for raw in self._db.all(sql.SESSIONS):
            row = raw[:-1]
            older = [number for number in map(int, row[6].split()) if whole.is_there(number)]
            ends = [self._newest(whole, number) for number in row[4:6]]
            same = (ends, older) == (list(row[4:6]), list(map(int, row[6].split())))
            if same and all(map(whole, ends)):
                continue
            name = row[1] if isinstance(row[1], str) else repr(row[1])
            if row[4] is not None and ends[0] is None:
                self._quarantine("sessions", row[0], "its commits are lost")
                self._db.do("DELETE FROM sessions WHERE n = ?", (row[0],))
                self.lost.append(f"session {name}: all of it")
                continue
            self.lost.append(f"session {name}: in part; `harken import` brings back what its file still has")
            # Where only bytes are lost, whoever asks for them is told, and the chain can be looked at.
            lost = not (same and all(map(standing, ends)))
            kept = (
                *row[:4],
                *ends,
                " ".join(map(str, older)),
                *row[7:20],
                b"",
                row[21] if row[21] == sql.FORGOTTEN else int(lost or row[21]),
            )
            if kept != row:
                self._quarantine("sessions", row[0], "some of its commits are lost")
                kept = (*kept[:2], row[2] + 1, *kept[3:])
                self._db.do(sql.SAVE_SESSION, (*kept, ids.row_sum("sessions", kept)))

    def _newest(self, whole: _Whole, number: int | None) -> int | None:
        """The commit, or the newest that is left of the chain that it was the end of."""
        while number is not None and not whole.is_there(number):
            number = parent_of(number, None)
        return number

    def _numbers(self) -> None:
        """No number of an artifact is given out twice, though what gc wrote down of that may be lost."""
        (highest,) = self._db.one("SELECT coalesce(max(artifact), 0) FROM commits") or (0,)
        fact = self._db.one(sql.FACT, ("artifacts",))
        if fact is None or fact[1] < highest:
            row = ("artifacts", highest)
            self._db.do(sql.SET_FACT, (*row, ids.row_sum("facts", row)))

    def _quarantine(self, table: str, key: int, why: str) -> None:
        columns = [name for _, name, *_ in self._db.all(f"PRAGMA table_info({table})")]
        row = self._db.one(f"SELECT * FROM {table} WHERE n = ?", (key,)) or ()
        self._db.do(sql.QUARANTINE, quarantined(self._now, table, dict(zip(columns, row, strict=False)), why))


class _Whole:
    """Whether everything that a commit stands on is there, its bytes too."""

    def __init__(self, store: SqliteStore, evicted: set[int]) -> None:
        origins = {number for number, total in store.db.all("SELECT n, sum FROM origins") if total != sql.LOST}
        self._parents: dict[int, int | None] = {}
        self._known: dict[int | None, bool] = {None: True}
        for number, fork, origin, artifact, total in store.db.all(
            "SELECT n, parent, origin, artifact, sum FROM commits"
        ):
            if total != sql.LOST:
                self._parents[number] = parent_of(number, fork)
                if origin not in origins or artifact in evicted:
                    self._known[number] = False

    def is_there(self, number: int) -> bool:
        """Whether the commit itself is."""
        return number in self._parents

    def __call__(self, number: int | None) -> bool:
        passed = list[int]()
        while number is not None and number not in self._known and number in self._parents:
            passed.append(number)
            number = self._parents[number]
        answer = self._known.get(number, False)
        self._known.update(dict.fromkeys(passed, answer))
        return answer
