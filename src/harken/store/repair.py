"""Repair, only on request: everything that is true goes into a new file, and what is lost is said.

The file is copied aside first, and stays there until somebody removes it. What can be read of the copy, page by page,
goes into a new file (`salvage.py`), where it is put in order (`settling.py`); then the new content takes the place of
the old, in one transaction of SQLite's, so that whoever has the store open goes on with it. Where SQLite refuses the
damaged file altogether, nobody can have it open, and the new file takes its name.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken.errors import Corrupt
from harken.files import sync_file, sync_folder

from . import sql
from .db import Database
from .explaining import explain
from .indexed import LostRows
from .opening import FairLock
from .reports import Finding, Report
from .salvage import Salvage, salvage
from .settling import Settler

if TYPE_CHECKING:
    from .sqlite import SqliteStore

BEFORE = ".before-repair-"
"""What follows the store's name in that of a copy from before a repair; a number stands behind it."""
_BESIDE = ("", "-wal", "-shm", "-journal", "-lock", "-cache")


class Repairer:
    """Makes a sound store of a damaged one, and notes in the report what became of everything."""

    def __init__(self, store: SqliteStore, report: Report, now: int) -> None:
        self._store, self._report, self._now = store, report, now
        self._path = store.path

    def run(self) -> None:
        """Copy, salvage, settle, put in place."""
        new = self._path.with_name(f"{self._path.name}.repair-{os.getpid()}")
        try:
            with self._alone():
                self._remove_unfinished()
                self._report.saved = str(saved := self._copy_aside())
                found = salvage(saved, new, self._now)
                rows = LostRows(saved, new)
                rows.run({said.what for said in self._report.findings if said.which == "table"}, found.aside)
                lost = self._settle(new, found)
                self._put_in_place(new)
        finally:
            for suffix in _BESIDE:
                Path(f"{new}{suffix}").unlink(missing_ok=True)
        self._begin_again()
        self._say(found.lost + rows.lost + lost, rows.back)

    def _remove_unfinished(self) -> None:
        """New files of repairs that were killed: nobody else can be at one, since we are alone."""
        begin = f"{self._path.name}.repair-"
        for left in self._path.parent.iterdir():
            if left.name.startswith(begin) and left.name[len(begin) :].partition("-")[0].isdecimal():
                left.unlink(missing_ok=True)

    def _begin_again(self) -> None:
        """What was read before may be gone, and the file may be another one."""
        self._store.forget_all()
        if not self._store.db.writable:
            self._store.db.close()
            self._store.db = Database(self._path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A block in which nobody else writes."""
        own = None if self._store.db.writable else FairLock(f"{self._path}-lock")
        lock = own or self._store.db.lock
        lock.acquire()
        try:
            yield
        finally:
            lock.release()
            if own:
                own.close()

    def _copy_aside(self) -> Path:
        """The pages as SQLite sees them, with what is still in its log; where it refuses the file, the file and its log
        byte by byte. The log then has the name that SQLite looks for beside the copy."""
        number = 1
        while (path := Path(f"{self._path}{BEFORE}{number}")).exists():
            number += 1
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if self._store.problem is not None or not self._backed_up(path):
            _copy_bytes(self._path, path)
            if (log := Path(f"{self._path}-wal")).is_file():
                _copy_bytes(log, Path(f"{path}-wal"))
        sync_folder(path.parent)
        return path

    def _backed_up(self, path: Path) -> bool:
        """Whether SQLite could copy what it sees."""
        try:
            how = self._store.db.how_to_read
            with (
                contextlib.closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?{how}", uri=True)) as source,
                contextlib.closing(sqlite3.connect(path)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error:
            return False
        return True

    def _settle(self, new: Path, found: Salvage) -> list[str]:
        from .sqlite import SqliteStore

        with contextlib.closing(SqliteStore(new)) as store:
            settler = Settler(store, self._now)
            settler.run(found)
        return settler.lost

    def _put_in_place(self, new: Path) -> None:
        try:
            with (
                contextlib.closing(sqlite3.connect(new)) as source,
                contextlib.closing(sqlite3.connect(self._path, isolation_level=None, timeout=60.0)) as live,
            ):
                for pragma in sql.EACH_CONNECTION:
                    live.execute(pragma).fetchall()
                source.backup(live)
        except sqlite3.Error as error:
            problem = explain(error, self._store.location)
            if not isinstance(problem, Corrupt):  # the disk is full, or somebody holds it: it stays as it was
                raise problem from error
            sync_file(new)
            for suffix in (
                "-wal",
                "-shm",
            ):  # first: SQLite would write the old log into the new file; its copy is aside
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            new.replace(self._path)
            sync_folder(self._path.parent)

    def _say(self, lost: list[str], back: list[str]) -> None:
        """Mark what was repaired by looking again."""
        after = self._store.fsck(read_data=True)
        still = {(found.what, found.which, found.why) for found in after.findings if found.severity == "corrupt"}
        self._report.findings = [
            found
            if found.severity != "corrupt" or (found.what, found.which, found.why) in still
            else msgspec.structs.replace(found, repaired=True)
            for found in self._report.findings
        ]
        known = {(found.what, found.which, found.why) for found in self._report.findings}
        self._report.findings += [
            found for found in after.findings if (found.what, found.which, found.why) not in known
        ]
        self._report.findings = [found for found in self._report.findings if found.which != "rows"]  # said below
        self._report.findings += [
            Finding(severity="note", what="repair", which="store", why=why)
            for why in (*(f"lost: {what}" for what in dict.fromkeys(lost)), *(f"put back: {what}" for what in back))
        ]


_KEPT_OPEN: list[int] = []
"""Closing a descriptor of a file that SQLite uses would drop SQLite's locks on it, so these stay open."""


def _copy_bytes(source: Path, target: Path) -> None:
    file = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    _KEPT_OPEN.append(file)
    made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(made, "wb") as copy:
        at = 0
        while part := os.pread(file, 1 << 20, at):
            copy.write(part)
            at += len(part)
        copy.flush()
        os.fsync(copy.fileno())
