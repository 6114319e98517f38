"""How SQLite is asked for an index: its connections, what their errors mean, and who may make or remove its file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harken.store.explaining import is_no_text

HOW: dict[str, Any] = {"isolation_level": None, "check_same_thread": False, "timeout": 10.0}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}


def in_memory() -> sqlite3.Connection:
    """An empty database that lies in no file."""
    made: sqlite3.Connection = sqlite3.connect(":memory:", **HOW)
    return made


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that can change nothing."""
    made: sqlite3.Connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, **HOW)
    return made


def copied(path: Path) -> sqlite3.Connection | None:
    """What a file holds that can only be read, in memory: as it lies there where nobody is writing to it. None where it
    cannot be had."""
    log = path.with_name(f"{path.name}-wal")
    try:
        before, written = path.stat(), log.exists()
        how = "mode=ro" if written else "mode=ro&immutable=1"
        copy = in_memory()
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, **HOW)) as there:
            there.backup(copy)
        after = path.stat()
    except (OSError, sqlite3.Error):
        return None
    same = (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns)
    return copy if written or (same and not log.exists()) else None


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While a file is made or removed, no other process does the same."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def is_damage(error: sqlite3.Error, also: int = sqlite3.SQLITE_CORRUPT) -> bool:
    """Whether the file is not what it should be."""
    return is_no_text(error) or getattr(error, "sqlite_errorcode", 0) & 0xFF in {*_DAMAGED, also}
