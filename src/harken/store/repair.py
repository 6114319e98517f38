"""Repair, only on request: what is damaged goes into quarantine, what it takes with it is said.

The file is copied aside first. A damaged frame is moved with its bytes; the artifacts in it become evicted, so their
commits, summaries and counts stay, and putting the same bytes again brings them back. A damaged annotation, name,
move or session is moved. A commit is never removed: others stand on it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import ids
from harken.errors import HarkenError

from . import sql
from .blob_writer import place_artifact, set_artifact
from .feed import retell
from .opening import new_epoch
from .packing import highest_frame, keep_highest
from .reports import Finding, Report

if TYPE_CHECKING:
    from .sqlite import SqliteStore

_KEYS = {"loose": "slot"}
_MOVED = {"sightings", "annotations", "names", "moves", "sessions"}


_KEPT_OPEN: list[int] = []
"""Closing a descriptor of a file that SQLite uses would drop SQLite's locks on it, so these stay open."""


def _bytes_of(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    _KEPT_OPEN.append(file)
    return os.pread(file, os.fstat(file).st_size, 0)


class Repairer:
    """Moves damaged rows, and notes in the report what became of each."""

    def __init__(self, store: SqliteStore, report: Report, now: int) -> None:
        self._store, self._db, self._report, self._now = store, store.db, report, now
        self._lost: list[str] = []

    def run(self, damaged: list[tuple[str, int | str]]) -> None:
        """Copy the file aside, then move every damaged row in one transaction."""
        self._report.saved = self._copy_aside()
        with self._db.transaction():
            highest = highest_frame(self._store)
            for table, key in damaged:
                self._one(table, key)
            keep_highest(self._store, highest)
            retell(self._db)
            new_epoch(self._db)
        self._reindex()
        self._store.forget_all()
        self._say()

    def _copy_aside(self) -> str:
        """As SQLite sees it if it can be read through, byte by byte if not."""
        number = 1
        while (path := Path(f"{self._store.path}.before-repair-{number}")).exists():
            number += 1
        try:
            self._store.backup(path)
        except HarkenError:
            path.unlink(missing_ok=True)
            target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(target, "wb") as copy:
                copy.write(_bytes_of(self._store.path))
        return str(path)

    def _one(self, table: str, key: int | str) -> None:
        if table == "artifacts":
            if not self._mend(int(key)):
                self._evict(int(key), "its bytes are damaged")
        elif table in {"frames", "loose"}:
            self._frame(table, int(key))
        elif table in _MOVED:
            self._quarantine(table, key, "its sum differs")
            self._db.do(f"DELETE FROM {table} WHERE {_KEYS.get(table, 'n')} = ?", (key,))

    def _frame(self, table: str, key: int) -> None:
        """A frame, the artifacts in it, and the frames that cannot be read without it."""
        if table == "frames":
            leaning = self._db.all("SELECT n FROM frames WHERE prefix = ? AND n <> ?", (key, key))
            for (other,) in leaning:
                self._one_frame("frames", other)
        self._one_frame(table, key)

    def _one_frame(self, table: str, key: int) -> None:
        number = key if table == "frames" else -key
        for (artifact,) in self._db.all("SELECT n FROM artifacts WHERE frame = ?", (number,)):
            self._evict(artifact, f"frame {number} is damaged")
        for (artifact,) in self._db.all("SELECT artifact FROM parts WHERE frame = ?", (number,)):
            self._evict(artifact, f"frame {number} is damaged")
        row = self._db.one(sql.FRAME if number > 0 else sql.LOOSE_FRAME, (abs(number),))
        self._quarantine(table, key, "it is not what was written", row[-1] if row else None)
        self._db.do(f"DELETE FROM {table} WHERE {'n' if number > 0 else 'slot'} = ?", (key,))

    def _mend(self, artifact: int) -> bool:
        """Whether the bytes are what the name says after all; then only the sum was wrong, or what it covers."""
        row = self._db.one(f"{sql.ARTIFACTS} WHERE n = ?", (artifact,))
        try:
            if row is None or row[2] is None or not isinstance(row[1], bytes):
                return False
            if ids.artifact_id(self._store.frame(row[2])[row[3] : row[3] + row[4]]) != row[1].hex():
                return False
        except (HarkenError, TypeError, ValueError):
            return False
        set_artifact(self._db, row[:-1])
        return True

    def _evict(self, artifact: int, why: str) -> None:
        row = self._db.one("SELECT id FROM artifacts WHERE n = ?", (artifact,))
        if row is not None:
            self._lost.append(f"{ids.artifact_ref(row[0].hex())}: {why}")
        self._quarantine("artifacts", artifact, why)
        found = self._db.one(f"{sql.ARTIFACTS} WHERE n = ?", (artifact,))
        if found is not None:
            place_artifact(self._db, found[:-1], None, None)
        self._db.do(sql.DROP_PARTS, (artifact,))

    def _quarantine(self, table: str, key: int | str, why: str, data: bytes | None = None) -> None:
        key_name = _KEYS.get(table, "n")
        columns = [name for _, name, *_ in self._db.all(f"PRAGMA table_info({table})") if name != "data"]
        row = self._db.one(
            f"""SELECT {", ".join(f'hex("{c}")' for c in columns)} FROM {table} WHERE {key_name} = ?""", (key,)
        )
        kept = msgspec.json.encode(dict(zip(columns, row or (), strict=False))).decode()
        self._db.do(
            "INSERT INTO quarantine (time, what, why, row, data) VALUES (?, ?, ?, ?, ?)",
            (self._now, table, why, kept, data),
        )

    def _reindex(self) -> None:
        try:
            self._db.alone("REINDEX")
        except HarkenError as error:
            self._report.findings.append(self._note(f"the indexes could not be made anew: {error}"))

    def _note(self, why: str) -> Finding:
        return Finding(severity="note", what="repair", which="store", why=why)

    def _say(self) -> None:
        """Mark what was repaired by looking again."""
        after = self._store.fsck(read_data=True)
        still = {(found.what, found.which, found.why) for found in after.findings if found.severity == "corrupt"}
        self._report.findings = [
            found
            if found.severity != "corrupt" or (found.what, found.which, found.why) in still
            else msgspec.structs.replace(found, repaired=True)
            for found in self._report.findings
        ]
        self._report.findings += [self._note(f"lost: {what}") for what in self._lost]
