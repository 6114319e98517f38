"""fsck: is everything in the store what it says it is? And, only when asked, repair into quarantine.

The quick check reads every row: the structure of the file, the links between rows, names, seals and sums. With
`read_data` it also reads every frame and every artifact. Nothing is changed unless `repair` is asked for; then the
file is copied aside first, and a damaged row goes into the table `quarantine` with the reason, so that what can still
be read stays usable and what is lost is said.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock, ids
from harken.errors import Corrupt, HarkenError, NotFound

from . import naming, sql
from .base import Commit, Draft, Store
from .db import untext
from .frames import LIMIT, Frame, open_frame

if TYPE_CHECKING:
    from .sqlite import SqliteStore

Row = tuple[Any, ...]
# A damaged row may have NULL, or text, where a number belongs; whatever that leads to is a finding, not a crash.
_UNREADABLE = (Corrupt, NotFound, TypeError, ValueError, KeyError, AttributeError, OverflowError)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing fsck has to say."""

    severity: str
    """`corrupt`: not what it says it is. `evicted`: let go on purpose. `note`: harmless, and worth knowing."""
    what: str
    """`commit`, `artifact`, `frame`, `name`, …"""
    which: str
    """Its name, or the number of its row."""
    why: str
    repaired: bool = False


class Report(msgspec.Struct, kw_only=True):
    """What fsck found."""

    commits: int = 0
    artifacts: int = 0
    frames: int = 0
    bytes_read: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)
    saved: str = ""
    """Where the file was copied before a repair."""

    @property
    def ok(self) -> bool:
        """Whether nothing is left that is corrupt."""
        return not any(found.severity == "corrupt" and not found.repaired for found in self.findings)


def fsck(store: Store, *, read_data: bool = False, repair: bool = False, now: int | None = None) -> Report:
    """Check a store; `read_data` reads every byte, `repair` moves what is damaged into quarantine.

    A repair always reads every byte: it may not call a store sound that it has only looked at."""
    from .sqlite import SqliteStore

    if not isinstance(store, SqliteStore):
        return _check_memory(store)
    report = Report()
    checker = _Checker(store, report)
    with store.db.snapshot():  # others may write meanwhile
        for step in (
            checker.structure,
            lambda: checker.artifacts(read_data=read_data or repair),
            checker.commits,
            checker.said,
        ):
            try:
                step()
            except _UNREADABLE as error:
                checker.corrupt("store", store.location, f"cannot be read further: {error!r}")
    if repair and not report.ok:
        from .repair import Repairer

        Repairer(store, report, clock.now() if now is None else now).run(checker.damaged)
    return report


def _check_memory(store: Store) -> Report:
    report = Report()
    for artifact in store.artifacts(limit=1 << 60):
        report.artifacts += 1
        if store.has(artifact):
            report.bytes_read += len(store.get(artifact))
        else:
            report.findings.append(_evicted(artifact))
    report.commits = len(store.commits())
    return report


def _blob(value: object) -> bytes:
    """The bytes of a column that holds bytes. A damaged row may have a number there, which must not become a length."""
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} where bytes belong")
    return value


def _evicted(artifact: str) -> Finding:
    name = ids.artifact_ref(artifact)
    return Finding(severity="evicted", what="artifact", which=name, why="its bytes have been let go")


class _Checker:
    """Walks the tables one after the other, and remembers which rows are damaged."""

    def __init__(self, store: SqliteStore, report: Report) -> None:
        self._store, self._db, self._report = store, store.db, report
        self.damaged: list[tuple[str, int | str]] = []
        """Table and key of every row that a repair would move."""
        self._artifact_ids: dict[int, bytes] = {}
        self._names: dict[int, bytes] = {}

    def corrupt(self, what: str, which: object, why: str, row: tuple[str, int | str] | None = None) -> None:
        """Note something that is not what it says."""
        self._report.findings.append(Finding(severity="corrupt", what=what, which=str(which), why=why))
        if row is not None:
            self.damaged.append(row)

    def _rows(self, statement: str, what: str) -> Iterator[Row]:
        """Rows of a table, as far as they can be read."""
        cursor = self._db.cursor(statement)
        while True:
            try:
                rows = self._db.fetch(cursor, 256)
            except Corrupt as error:
                self.corrupt(what, "table", str(error))
                return
            if not rows:
                return
            yield from rows

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
        for _, _, script in sql.STEPS:
            expected.executescript(script)
        # What `ANALYZE` leaves behind belongs to SQLite, and does no harm.
        schema = (
            "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE tbl_name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' "
            "ORDER BY type, name"
        )
        if expected.execute(schema).fetchall() != self._db.all(schema):
            self.corrupt("file", "schema", "the tables are not those of this version")
        expected.close()
        for version, name, time, total in self._rows("SELECT * FROM migrations", "migrations"):
            if total != ids.row_sum((version, name, time)):
                self.corrupt("migration", version, "its sum differs")
        (application,), (version,) = self._db.all("PRAGMA application_id")[0], self._db.all("PRAGMA user_version")[0]
        if (application, version) != (sql.APPLICATION_ID, sql.STEPS[-1][0]):
            self.corrupt("file", "header", f"says {application:#x} and version {version}")

    # -- artifacts and frames ----------------------------------------------------------------------------------

    def artifacts(self, *, read_data: bool) -> None:
        """Every slice lies inside its frame and has its name; every frame has its hash."""
        sizes = self._frames(read_data=read_data)
        parts: dict[int, list[Row]] = {}
        for artifact, part, frame, size in self._rows("SELECT * FROM parts", "parts"):
            parts.setdefault(artifact, []).append((part, frame, size))
        slots: dict[int, int] = {}
        frame, content = 0, b""
        for number, id, at, start, size in self._rows("SELECT * FROM artifacts ORDER BY frame, start", "artifacts"):
            self._report.artifacts += 1
            self._artifact_ids[number] = _blob(id)
            name, row = id.hex(), ("artifacts", number)
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
                if ids.artifact_id(content[start : start + size]) != name:
                    self.corrupt("artifact", ids.artifact_ref(name), "it is not what its name says", row)
        for number in parts:
            self.corrupt("artifact", number, "parts without an artifact")
        self._policies()
        self._loose(slots)

    def _frames(self, *, read_data: bool) -> dict[int, int]:
        """Content sizes of the frames (negative numbers are slots) that are there, and whole if we looked."""
        sizes: dict[int, int] = {}
        for table, sign, prefix in (("frames", 1, "prefix"), ("loose", -1, "NULL")):
            key = "n" if sign > 0 else "slot"
            for number, size, base in self._rows(f"SELECT {key}, size, {prefix} FROM {table} ORDER BY {key}", table):
                self._report.frames += 1
                if sign < 0 and not self._db.one(sql.SLOT_IN_USE, (number,)):
                    continue  # whatever lies in a free slot means nothing
                if not 0 <= size <= LIMIT or (base is not None and not self._plain(base)):
                    self.corrupt("frame", sign * number, "its size or its prefix cannot be", (table, number))
                elif not read_data or self._whole(sign * number, base):
                    sizes[sign * number] = size
        return sizes

    def _plain(self, number: int) -> bool:
        """Whether a frame others lean on is there, and leans on none itself."""
        return self._db.one(sql.FRAME_PREFIX, (number,)) == (None,)

    def _whole(self, number: int, base: int | None) -> bool:
        row = self._db.one(sql.FRAME if number > 0 else sql.LOOSE_FRAME, (abs(number),))
        try:
            prefix = self._store.frame(base) if base is not None else None
            if row is None:
                raise NotFound("it is gone")
            open_frame(Frame(row[0], row[1], row[3]), name="it", prefix=prefix)
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
            self._report.findings.append(_evicted(name))
        elif [part for part, _, _ in parts] != list(range(len(parts))) or sum(part[2] for part in parts) != size:
            self.corrupt("artifact", ids.artifact_ref(name), "its parts do not add up", row)
        elif any(sizes.get(frame) != length for _, frame, length in parts):
            self.corrupt("artifact", ids.artifact_ref(name), "a part is missing or damaged", row)
        elif read_data:
            hasher = ids.ArtifactHasher()
            for _, frame, length in parts:
                hasher.update(self._store.frame(frame))
                self._report.bytes_read += length
            if hasher.hexdigest() != name:
                self.corrupt("artifact", ids.artifact_ref(name), "it is not what its name says", row)

    def _policies(self) -> None:
        for artifact, policy, expires, total in self._rows("SELECT * FROM policies", "policies"):
            if total != ids.row_sum((artifact, policy, expires)):
                self.corrupt("policy", artifact, "its sum differs", ("policies", artifact))

    def _loose(self, slots: dict[int, int]) -> None:
        """A loose frame holds its artifacts and nothing else, or packing would lose something."""
        for slot, _, size, _, first, last in self._rows(sql.LOOSE_ALL, "loose"):
            inside = sum(row[2] for row in self._db.all(sql.SLICES_BETWEEN, (first, last, -slot)))
            if not inside == slots.get(-slot, inside) <= size:
                self.corrupt("frame", -slot, "it holds other artifacts than it says", ("loose", slot))

    # -- commits -----------------------------------------------------------------------------------------------

    def commits(self) -> None:
        """Every commit has its name and its seal, lies where it should, and its parent is there."""
        seals: dict[int, str] = {}
        groups: dict[str, list[Commit]] = {}
        pending: list[tuple[int, Row]] = []
        total_of: dict[int, bytes] = dict(self._rows("SELECT n, sum FROM commits", "commits"))
        rows = {row[0]: row for row in self._rows(f"{sql.COMMITS} ORDER BY c.n", "commits")}
        self._report.commits = len(total_of)
        for number in total_of.keys() - rows.keys():
            self.corrupt("commit", number, "its artifact is not there")
        self._names = {number: _blob(row[1]) + _blob(row[2]) for number, row in rows.items()}
        for number, row in rows.items():
            above = row[5] if not number & 0xFFFFFFFF else number - 1
            if (row[5] is not None and number & 0xFFFFFFFF) or (above is not None and above not in rows):
                self.corrupt("commit", row[1].hex()[:16], "its parent is not there")
                continue
            pending.append((number, row))
        for number, row in _parents_first(pending):
            try:
                commit = self._store._commit(row)
            except HarkenError as error:
                self.corrupt("commit", row[1].hex()[:16], str(error))
                continue
            above = row[5] if not number & 0xFFFFFFFF else number - 1
            self._commit(commit, seals.get(above, "") if above is not None else "", _blob(total_of[number]))
            seals[number] = commit.seal
            groups.setdefault(commit.id[:8], []).append(commit)
        for found in groups.values():
            self._digits(found)

    def _commit(self, commit: Commit, parent_seal: str, total: bytes) -> None:
        draft = Draft(**{name: getattr(commit, name) for name in Draft.__struct_fields__})
        if naming.commit_name(draft, commit.created_at) != commit.id[: naming.FULL]:
            self.corrupt("commit", commit.short, "its name is not made from what it says")
        elif naming.seal_of(draft, commit.created_at, parent_seal) != commit.seal:
            self.corrupt("commit", commit.short, "its seal is not made from what it says")
        id, seal, twin = (
            bytes.fromhex(commit.id[: naming.FULL]),
            bytes.fromhex(commit.seal),
            len(commit.id) > naming.FULL,
        )
        facts = (commit.message_count, commit.token_count, int(commit.approximate), naming.links_text(draft) or None)
        if total != ids.row_sum((id, seal, int(twin), commit.time, commit.principal, commit.machine, *facts)):
            self.corrupt("commit", commit.short, "its sum differs: who, where, when, a count or a link")

    def _digits(self, alike: list[Commit]) -> None:
        names = [commit.id for commit in alike]
        for commit in alike:
            first = sum(
                1
                for other in alike
                if other.id[: naming.FULL] == commit.id[: naming.FULL] and len(other.id) == naming.FULL
            )
            if len(commit.short) - len(ids.COMMIT_PREFIX) != naming.digits_needed(commit.id, names) or first != 1:
                self.corrupt("commit", commit.short, "its shown name is not as long as it must be")

    # -- what is said about them -------------------------------------------------------------------------------

    def said(self) -> None:
        """Sightings, annotations, names, moves and sessions, each against its sum."""
        who = {n: (untext(p), untext(m)) for n, p, m in self._rows(sql.PRINCIPALS, "principals")}
        for n, commit, principal, time, total in self._rows("SELECT * FROM sightings", "sightings"):
            name = self._names.get(commit, b"")[:32]
            self._sum("sightings", n, total, (name, *who.get(principal, ("", "")), time))
        for n, commit, key, value, time, by, total in self._rows("SELECT * FROM annotations", "annotations"):
            self._sum("annotations", n, total, (self._names.get(commit), untext(key), untext(value), time, untext(by)))
        for name, kind, target, total in self._rows("SELECT * FROM names", "names"):
            self._sum("names", name, total, (name, kind, self._names.get(target)))
        for n, name, kind, before, after, time, by, why, total in self._rows("SELECT * FROM moves", "moves"):
            ends = (self._names.get(before), self._names.get(after))
            self._sum("moves", n, total, (n, name, kind, *ends, time, untext(by), untext(why)))
        for n, session, runtime, tip, *rest, total in self._rows("SELECT * FROM sessions", "sessions"):
            words = [untext(word) for word in rest[:4]]
            fields = (untext(session), untext(runtime), self._names.get(tip), *words, *rest[4:])
            self._sum("sessions", n, total, fields)

    def _sum(self, table: str, key: int | str, total: bytes, fields: Row) -> None:
        if total != ids.row_sum(fields):
            self.corrupt(table.removesuffix("s"), key, "its sum differs", (table, key))


def _parents_first(rows: list[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Chains in an order in which a fork comes after what it forks from: a chain is younger than its base."""
    yield from sorted(rows)
