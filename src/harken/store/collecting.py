"""gc: remove what nothing needs. Commits are kept for ever, and so is every artifact one of them names.

What goes: the cache, ephemeral artifacts past their time that no commit, and so nothing kept, needs, and the space
that packing, eviction and deletion left. Where a backing store is given with a limit, artifacts that it holds too are
evicted, oldest first, until the rest fits; a pinned one never.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken import clock
from harken.errors import HarkenError

from . import sql
from .blob_writer import add_frame, place_artifact
from .blobs import BULK, seal_frame
from .db import checked
from .packing import highest_frame, keep_highest
from .reports import GcReport

if TYPE_CHECKING:
    from .sqlite import SqliteStore

_EXPIRED = (
    f"{sql.ARTIFACTS} WHERE policy = 'ephemeral' AND expires <= ? "
    "AND NOT EXISTS (SELECT 1 FROM needed WHERE needed.n = artifacts.n)"
)
# Frames that hold bytes nobody points at: an evicted or removed artifact leaves them.
_USED = "SELECT frame, sum(size) FROM artifacts WHERE frame > 0 GROUP BY frame"
_SLICES = f"{sql.ARTIFACTS} WHERE frame = ? ORDER BY start"


def collect(
    store: SqliteStore,
    *,
    dry_run: bool,
    now: int | None,
    keep_cache: bool,
    limit: int | None,
    backing: Callable[[str], bool] | None,
    needed: Iterable[str],
) -> GcReport:
    """Remove what nothing needs."""
    if dry_run and not store.db.writable:
        return _rehearsed_elsewhere(store, now, keep_cache=keep_cache, limit=limit, backing=backing, needed=needed)
    if not dry_run:
        store.pack()
    collector = _Collector(store, GcReport(dry_run=dry_run), clock.now() if now is None else now)
    collector.run(set(needed), limit, backing)
    report = collector.report
    report.cache = store.derived.size() if not keep_cache else 0
    row = store.db.one("PRAGMA freelist_count")
    report.pages = int(row[0]) if row else 0
    if not dry_run:
        if not keep_cache:
            store.derived.clear()
        report.pages = store.packer.release_room(at_least=1, at_most=1 << 40)
    return report


def _rehearsed_elsewhere(store: SqliteStore, now: int | None, **what: Any) -> GcReport:
    """What would be removed from a store that can only be read, found in a copy of it that is thrown away."""
    from .sqlite import SqliteStore

    try:
        with tempfile.TemporaryDirectory(prefix="harken-gc-") as folder:
            store.backup(Path(folder, "copy.db"))
            with contextlib.closing(SqliteStore(Path(folder, "copy.db"))) as copy:
                report = collect(copy, dry_run=True, now=now, **what)
    except OSError as error:
        hint = "TMPDIR names a folder where a copy of the store has room"
        raise HarkenError(
            f"{store.location} can only be read, and not be copied: {error.strerror}", hint=hint
        ) from error
    report.cache = store.derived.size() if not what["keep_cache"] else 0
    return report


class _Rehearsed(Exception):
    """Everything was found, and nothing is to be removed."""


class _Collector:
    """One transaction that finds what can go, and unless it is a rehearsal removes it."""

    def __init__(self, store: SqliteStore, report: GcReport, now: int) -> None:
        self._store, self._db, self.report, self._now = store, store.db, report, now

    def run(self, needed: set[str], limit: int | None, backing: Callable[[str], bool] | None) -> None:
        """Find and drop."""
        with contextlib.suppress(_Rehearsed), self._store.write() as self._writer:
            self._writer.begin()
            highest = highest_frame(self._store)
            self._trace(needed)
            self._expire()
            if limit is not None and backing is not None:
                self._shed(limit, backing)
            self._sweep_frames(highest)
            keep_highest(self._store, highest)
            (self.report.kept,) = self._db.one("SELECT count(*) FROM artifacts") or (0,)
            self._db.do("DROP TABLE temp.needed")
            if self.report.dry_run:
                raise _Rehearsed

    def _trace(self, needed: set[str]) -> None:
        """Mark what commits (and with them every branch and tag), pins and the caller need."""
        self._db.do("CREATE TEMP TABLE needed (n INTEGER PRIMARY KEY)")
        self._db.do("INSERT INTO temp.needed SELECT DISTINCT artifact FROM commits")
        self._db.do("INSERT OR IGNORE INTO temp.needed SELECT n FROM artifacts WHERE policy <> 'ephemeral'")
        for name in needed:
            if (found := self._store.find_artifact(name)) is not None:
                self._db.do("INSERT OR IGNORE INTO temp.needed VALUES (?)", (found[0],))

    def _expire(self) -> None:
        for raw in self._db.all(_EXPIRED, (self._now,)):
            row = checked("artifacts", raw)
            self.report.note(row[1].hex(), row[4])
            self.report.expired += 1
            self._writer.drop_artifact(row[0], row[1])

    def _shed(self, limit: int, backing: Callable[[str], bool]) -> None:
        """Evict what the backing store holds too, oldest first, until the rest fits."""
        rows = self._db.all(
            f"{sql.ARTIFACTS} WHERE (frame IS NOT NULL OR EXISTS (SELECT 1 FROM parts WHERE artifact = artifacts.n)) "
            "AND coalesce(policy, '') <> 'pin' ORDER BY n"
        )
        (total,) = self._db.one("SELECT coalesce(sum(size), 0) FROM artifacts WHERE frame IS NOT NULL") or (0,)
        (more,) = self._db.one("SELECT coalesce(sum(size), 0) FROM parts") or (0,)
        total += more
        for raw in rows:
            if total <= limit:
                break
            row = checked("artifacts", raw)
            if not backing(row[1].hex()):
                continue
            self.report.note(row[1].hex(), row[4])
            self.report.evicted += 1
            self._writer.drop_bytes(row)
            total -= row[4]

    def _sweep_frames(self, highest: int) -> None:
        """Drop frames nobody points at, and write those anew that are more than half empty."""
        used: dict[int, int] = dict(self._db.all(_USED))
        parts = {frame for (frame,) in self._db.all("SELECT frame FROM parts")}
        bases = {base for (base,) in self._db.all("SELECT DISTINCT prefix FROM frames WHERE prefix IS NOT NULL")}
        free = highest + 1
        for frame, size in self._db.all("SELECT n, size FROM frames"):
            live = used.get(frame, 0)
            if frame in parts or frame in bases or live * 2 > size or (frame == highest and not size):
                continue
            if live:
                self._rewrite(frame, free)
                free += 1
            self._db.do(sql.DROP_FRAME, (frame,))
            self.report.frames += 1

    def _rewrite(self, frame: int, number: int) -> None:
        content, pieces, start = self._store.frame(frame), [], 0
        for raw in self._db.all(_SLICES, (frame,)):
            row = checked("artifacts", raw)
            pieces.append(content[row[3] : row[3] + row[4]])
            place_artifact(self._db, row, number, start)
            start += row[4]
        add_frame(self._db, number, seal_frame(b"".join(pieces), level=BULK))
