"""fsck: is everything in the store what it says it is? And, only when asked, repair into quarantine.

The quick check reads every row: the structure of the file, the links between rows, names, seals and sums. With
`read_data` it also reads every frame and every artifact. Nothing is changed unless `repair` is asked for; then the
file is copied aside first, and a damaged row goes into the table `quarantine` with the reason, so that what can still
be read stays usable and what is lost is said.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from harken import clock, ids
from harken.errors import Corrupt, HarkenError, NotFound

from . import sql, values
from .blobs import LIMIT, Frame, open_frame
from .commits import Names, commit_of, full_name, parent_of, words
from .db import FSCK, Row, checked
from .feed import unpacked
from .reports import Finding, Report
from .tombstones import Tombstone
from .values import Commit, Draft

if TYPE_CHECKING:
    from .sqlite import SqliteStore

# A damaged row may have NULL, or text, where a number belongs; whatever that leads to is a finding, not a crash.
_UNREADABLE = (Corrupt, NotFound, TypeError, ValueError, KeyError, AttributeError, OverflowError, msgspec.MsgspecError)


def check(store: SqliteStore, *, read_data: bool, repair: bool, now: int | None) -> Report:
    """Check a store; `read_data` reads every byte, `repair` moves what is damaged into quarantine."""
    report = Report()
    checker = Checker(store, report)
    if (problem := store.db.problem) is not None:
        checker.corrupt("file", "structure", str(problem))
        report.findings += [Finding(severity="lost", what="file", which="rows", why=lost) for lost in store.db.lost]
    with store.db.snapshot():  # others may write meanwhile
        for step in (
            checker.structure,
            lambda: checker.artifacts(read_data=read_data or repair),
            checker.commits,
            checker.said,
            checker.feed,
        ):
            try:
                step()
            except _UNREADABLE as error:
                checker.corrupt("store", store.location, f"cannot be read further: {_plain(error)}")
    if repair and not report.ok:
        from .repair import Repairer

        Repairer(store, report, clock.now() if now is None else now).run()
    return report


def _blob(value: object) -> bytes:
    """The bytes of a column that holds bytes. A damaged row may have a number there, which must not become a length."""
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} where bytes belong")
    return value


def _plain(error: Exception) -> str:
    """In words what is wrong with a row that could not be read."""
    if isinstance(error, HarkenError):
        return str(error)
    return "a row that it needs is not there" if isinstance(error, KeyError) else "a value is none that was written"


def evicted(artifact: str, stone: Tombstone | None = None) -> Finding:
    """What is said of an artifact whose bytes, or some of them, are gone on purpose."""
    name = ids.artifact_ref(artifact)
    if stone is None:
        return Finding(severity="evicted", what="artifact", which=name, why="its bytes were evicted")
    what = f"{stone.count} of its bytes were" if stone.spans else "it was"
    return Finding(severity="forgotten", what="artifact", which=name, why=f"{what} forgotten{stone.said}")


def _lost(table: str, number: int) -> Finding:
    """What is said of a row that a repair did not find."""
    kind = table.removesuffix("s")
    why = "a repair did not find it, and what stands on it cannot be read" if kind == "commit" else "lost to damage"
    return Finding(severity="lost", what=kind, which=str(number), why=why)


class Checker:
    """Walks the tables one after the other, and remembers which rows are damaged."""

    def __init__(self, store: SqliteStore, report: Report) -> None:
        self._store, self._db, self._report = store, store.db, report
        self.damaged: list[tuple[str, int | str]] = []
        """Table and key of every row that a repair would move."""
        self.lost: set[tuple[str, int]] = set()
        """Table and key of every row that stands for one that a repair did not find."""

    def corrupt(self, what: str, which: object, why: str, row: tuple[str, int | str] | None = None) -> None:
        """Note something that is not what it says."""
        self._report.findings.append(Finding(severity="corrupt", what=what, which=str(which), why=why))
        if row is not None:
            self.damaged.append(row)

    def _rows(self, statement: str, what: str) -> Iterator[Row]:
        """Rows of an answer, as far as they can be read."""
        try:
            yield from self._db.rows(statement)
        except Corrupt as error:
            self.corrupt(what, "table", str(error))

    def _sound(self, table: str, statement: str) -> Iterator[Row]:
        """The rows of a table that are what was written; the others are noted."""
        for row in self._rows(statement, table):
            if row[-1] == sql.LOST:
                self.lost.add((table, row[0]))
                self._report.findings.append(_lost(table, row[0]))
                continue
            try:
                yield checked(table, row)
            except Corrupt:
                self.corrupt(
                    _ONE.get(table, table.removesuffix("s")), _key(table, row), "its sum differs", (table, row[0])
                )

    # -- the file ----------------------------------------------------------------------------------------------

    def structure(self) -> None:
        """SQLite's own view of the file, and whether the tables are the ones we know."""
        for (said,) in self._rows("PRAGMA integrity_check(100)", "file"):
            if said != "ok":
                self.corrupt("file", "structure", said)
        for table, number, parent, _ in self._rows("PRAGMA foreign_key_check", "file"):
            self.corrupt(
                table, number if number is not None else "row", f"points at a row of {parent} that is not there"
            )
        expected = sqlite3.connect(":memory:")
        seen = sql.STEPS[:-1] if self._db.is_old else sql.STEPS
        for statement in (said for _, _, statements in seen for said in statements):
            expected.execute(statement)
        # What `ANALYZE` leaves behind belongs to SQLite, and does no harm.
        schema = (
            "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE tbl_name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' "
            "ORDER BY type, name"
        )
        if expected.execute(schema).fetchall() != self._db.all(schema):
            self.corrupt("file", "schema", "the tables are not those of this version")
        expected.close()
        for _ in self._sound("migrations", sql.VERSIONS):
            pass
        if "epoch" not in {key for key, _ in self._sound("facts", "SELECT key, value, sum FROM facts")}:
            self.corrupt("file", "epoch", "it is lost")
        (application,), (version,) = self._db.all("PRAGMA application_id")[0], self._db.all("PRAGMA user_version")[0]
        if (application, version) != (sql.APPLICATION_ID, seen[-1][0]):
            self.corrupt("file", "header", f"says {application:#x} and version {version}")

    # -- artifacts and frames ----------------------------------------------------------------------------------

    def artifacts(self, *, read_data: bool) -> None:
        """Every slice lies inside its frame and has its name; every frame has its hash."""
        sizes = self._frames(read_data=read_data)
        parts: dict[int, list[Row]] = {}
        for artifact, part, frame, size in self._sound("parts", "SELECT artifact, part, frame, size, sum FROM parts"):
            parts.setdefault(artifact, []).append((part, frame, size))
        slots: dict[int, int] = {}
        frame, content = 0, b""
        for number, id, at, start, size, *_ in self._sound("artifacts", f"{sql.ARTIFACTS} ORDER BY frame, start"):
            self._report.artifacts += 1
            name, row = _blob(id).hex(), ("artifacts", number)
            if at is None:
                self._large(number, name, size, sorted(parts.pop(number, [])), sizes, read_data=read_data)
                continue
            if at not in sizes:
                self.corrupt("artifact", ids.artifact_ref(name), f"its frame {at} is missing or damaged", row)
                continue
            if start is None or start < 0 or size < 0 or start + size > sizes[at]:
                self.corrupt("artifact", ids.artifact_ref(name), f"its slice lies outside frame {at}", row)
                continue
            slots[at] = slots.get(at, 0) + size
            if read_data:
                if at != frame:
                    frame, content = at, self._store.frame(at)
                self._report.bytes_read += size
                if (found := ids.artifact_id(content[start : start + size])) != name and not self._is_blanked(
                    name, found
                ):
                    self.corrupt("artifact", ids.artifact_ref(name), "it is not what its name says", row)
        for number in parts:
            self.corrupt("artifact", number, "parts without an artifact")
        self._loose(slots)

    def _frames(self, *, read_data: bool) -> dict[int, int]:
        """Content sizes of the frames (negative numbers are slots) that are there, and whole if we looked."""
        sizes: dict[int, int] = {}
        for number, _, size, prefix in self._sound(
            "frames", "SELECT n, hash, size, prefix, sum FROM frames ORDER BY n"
        ):
            self._report.frames += 1
            if not 0 <= size <= LIMIT or (prefix is not None and not self._plain(prefix)):
                self.corrupt("frame", number, "its size or its prefix cannot be", ("frames", number))
            elif not read_data or self._whole(number, prefix):
                sizes[number] = size
        for slot, _, size, *_ in self._sound("loose", sql.LOOSE_EVERY):
            self._report.frames += 1
            if not self._db.one(sql.SLOT_IN_USE, (slot,)):
                continue  # whatever lies in a free slot means nothing
            if not 0 <= size <= LIMIT:
                self.corrupt("frame", -slot, "its size cannot be", ("loose", slot))
            elif not read_data or self._whole(-slot, None):
                sizes[-slot] = size
        return sizes

    def _plain(self, number: int) -> bool:
        """Whether a frame others lean on is there, and leans on none itself."""
        row = self._db.one(sql.FRAME_PREFIX, (number,))
        return row is not None and row[3] is None

    def _whole(self, number: int, base: int | None) -> bool:
        row = self._db.one(sql.FRAME if number > 0 else sql.LOOSE_FRAME, (abs(number),))
        try:
            prefix = self._store.frame(base) if base is not None else None
            if row is None:
                raise NotFound("it is gone", hint=FSCK)
            open_frame(Frame(row[1], row[2], row[-1]), name="it", prefix=prefix)
        except (Corrupt, NotFound) as error:
            table = "frames" if number > 0 else "loose"
            self.corrupt("frame", number, str(error), (table, abs(number)))
            return False
        return True

    def _large(
        self, number: int, name: str, size: int, parts: list[Row], sizes: dict[int, int], *, read_data: bool
    ) -> None:
        row = ("artifacts", number)
        if not parts:
            self._report.findings.append(evicted(name, self._store.tombstones([name]).get(name)))
        elif [part for part, _, _ in parts] != list(range(len(parts))) or sum(part[2] for part in parts) != size:
            self.corrupt("artifact", ids.artifact_ref(name), "its parts do not add up", row)
        elif any(sizes.get(frame) != length for _, frame, length in parts):
            self.corrupt("artifact", ids.artifact_ref(name), "a part is missing or damaged", row)
        elif read_data:
            hasher = ids.ArtifactHasher()
            for _, frame, length in parts:
                hasher.update(self._store.frame(frame))
                self._report.bytes_read += length
            if (found := hasher.hexdigest()) != name and not self._is_blanked(name, found):
                self.corrupt("artifact", ids.artifact_ref(name), "it is not what its name says", row)

    def _is_blanked(self, name: str, found: str) -> bool:
        """Whether these are an artifact's bytes but for what was forgotten of them; then that is said."""
        stone = self._store.tombstones([name]).get(name)
        if stone is None or stone.hash != found:
            return False
        self._report.findings.append(evicted(name, stone))
        return True

    def _loose(self, slots: dict[int, int]) -> None:
        """A loose frame holds its artifacts and nothing else, or packing would lose something."""
        for slot, _, size, _, first, last, _ in self._rows(sql.LOOSE_ALL, "loose"):
            inside = sum(row[4] for row in self._db.all(sql.SLICES_BETWEEN, (first, last, -slot)))
            if not inside == slots.get(-slot, inside) <= size:
                self.corrupt("frame", -slot, "it holds other artifacts than it says", ("loose", slot))

    # -- commits -----------------------------------------------------------------------------------------------

    def commits(self) -> None:
        """Every commit has its name and its seal, lies where it should, and its parent is there."""
        known = [
            {row[0]: words(row[1:]) for row in self._sound(table, f"SELECT * FROM {table}")}
            for table in ("origins", "principals")
        ]
        rows = {row[0]: row for row in self._sound("commits", f"{sql.COMMITS} ORDER BY c.n")}
        (self._report.commits,) = self._db.one("SELECT count(*) FROM commits WHERE sum IS NOT ?", (sql.LOST,)) or (0,)
        names: Names = {None: "", **{number: full_name(*row[1:4]) for number, row in rows.items()}}
        groups: dict[str, list[Commit]] = {}
        for number, row in sorted(rows.items()):  # a fork comes after what it forks from: its chain is younger
            above = parent_of(number, row[5])
            if ("commits", above) in self.lost or ("origins", row[8]) in self.lost:
                continue  # said already; there is nothing to compare its name and its seal with
            if above not in names:
                self.corrupt(
                    "commit", ids.commit_ref(names[number], row[4] or ids.COMMIT_SHORT), "its parent is not there"
                )
                continue
            try:
                commit = commit_of(row, names, known[0][row[8]], known[1][row[9]])
            except _UNREADABLE as error:
                self.corrupt(
                    "commit",
                    ids.commit_ref(names[number], row[4] or ids.COMMIT_SHORT),
                    f"cannot be read: {_plain(error)}",
                )
                continue
            self._commit(commit, rows[above][2].hex() if above is not None else "")
            groups.setdefault(commit.id[:8], []).append(commit)
        for found in groups.values():
            self._digits(found)

    def _commit(self, commit: Commit, parent_seal: str) -> None:
        draft = Draft(**{name: getattr(commit, name) for name in Draft.__struct_fields__})
        if values.commit_name(draft, commit.created_at) != commit.id[: values.FULL]:
            self.corrupt("commit", commit.short, "its name is not made from what it says")
        elif values.seal_of(draft, commit.created_at, parent_seal) != commit.seal:
            self.corrupt("commit", commit.short, "its seal is not made from what it says")

    def _digits(self, alike: list[Commit]) -> None:
        """Shown names tell commits apart, and of those with one full name no two came first."""
        for commit in alike:
            first = [
                other
                for other in alike
                if other.id[: values.FULL] == commit.id[: values.FULL] and len(other.id) == values.FULL
            ]
            if sum(other.short == commit.short for other in alike) != 1 or len(first) > 1:  # it may have been lost
                self.corrupt("commit", commit.short, "its shown name is not its own")

    # -- what is said about them, and the feed -----------------------------------------------------------------

    def said(self) -> None:
        """Sightings, annotations, names, moves and sessions, each against its sum."""
        for table, columns in (
            ("sightings", 'n, "commit", principal, time, sum'),
            ("annotations", 'n, "commit", key, value, time, who, sum'),
            ("names", "n, name, kind, target, sum"),
            ("moves", "n, name, kind, before, after, time, who, why, sum"),
            *(() if self._db.is_old else _FORGETTING),
        ):
            for _ in self._sound(table, f"SELECT {columns} FROM {table}"):
                pass
        for row in self._sound("sessions", sql.SESSIONS):
            for number in map(int, row[6].split()):
                if self._db.one(sql.TAKEN, (number, number)) is None:
                    self.corrupt("session", row[0], "an older tip is not there", ("sessions", row[0]))

    def feed(self) -> None:
        """Every number from the first to the last is there once, and what can be told by it is there."""
        expected, told = 1, 0
        for row in self._sound("changes", "SELECT n, count, what, sum FROM changes ORDER BY n"):
            for number, kind, _, _ in unpacked([row]):
                if number != expected:
                    self.corrupt("change", expected, f"{number} follows {expected - 1}")
                expected, told = number + 1, told + (kind == "commit")
        if told != self._report.commits:
            self.corrupt("change", "feed", f"{told} commits were told of where {self._report.commits} are there")


_ONE = {"loose": "frame"}
_FORGETTING = (
    ("erasures", "n, time, who, why, what, state, sum"),
    ("tombstones", "artifact, hash, spans, erasure, sum"),
    ("watchwords", "n, erasure, size, begin, salt, hash, sum"),
)


def _key(table: str, row: Row) -> object:
    """How a person would call a row."""
    if table == "artifacts" and isinstance(row[1], bytes):
        return ids.artifact_ref(row[1].hex())
    if table == "commits" and isinstance(row[1], bytes):
        return ids.commit_ref(row[1].hex(), values.FULL if row[4] else ids.COMMIT_SHORT)
    return -row[0] if table == "loose" else row[0]
