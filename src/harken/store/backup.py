"""A copy of the store while others go on writing to it."""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path

from harken import ids
from harken.errors import BadRequest, Conflict, HarkenError

from . import sql
from .base import Store


def backup(store: Store, path: str | os.PathLike[str]) -> int:
    """Copy a store that is in use into a new file for its owner alone; the answer is its size in bytes.

    The copy is of one moment, and holds up no writer: it is read from a snapshot, in one step, since SQLite would
    begin again with every change between two steps. It has its name only when it is whole and on the disk.
    From here on it goes its own way, so it has an epoch of its own."""
    from .sqlite import SqliteStore

    target = Path(path).absolute()
    if not isinstance(store, SqliteStore):
        raise BadRequest("only a store in a file can be backed up", hint="a store in memory goes with its program")
    if target.exists():
        raise Conflict(f"{target} is there already", hint="choose another name")
    partial = target.with_name(f"{target.name}.part-{os.getpid()}")
    try:
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _copy(store, partial)
        os.link(partial, target)  # unlike a rename, refuses to replace what came meanwhile
        _sync(target.parent)
        return target.stat().st_size
    except FileExistsError:
        raise Conflict(f"{target} is there already", hint="choose another name") from None
    except OSError as error:
        raise HarkenError(f"{target} could not be written: {error.strerror}", hint="look at the disk") from error
    except sqlite3.Error as error:
        raise HarkenError(f"{target} could not be written: {error}", hint="`harken fsck` looks at the store") from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{partial}{suffix}").unlink(missing_ok=True)


def _copy(store: Store, partial: Path) -> None:
    source = sqlite3.connect(f"{Path(store.location).as_uri()}?mode=ro", uri=True, timeout=60.0)
    try:
        copy = sqlite3.connect(partial, isolation_level=None)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            fact = ("epoch", secrets.token_hex(16))
            copy.execute(sql.SET_FACT, (*fact, ids.row_sum("facts", fact)))
        finally:
            copy.close()
    finally:
        source.close()
    _sync(partial)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
