"""How a file is written whole: the one place that puts bytes under a name in one step."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write a file that is there whole and on the disk, or not at all, for its owner's eyes alone.

    What is there already is `FileExistsError`, unless it is to be replaced. Any other failure is an `OSError` too, and
    leaves nothing behind."""
    scratch = path.with_name(f".harken-{uuid.uuid4().hex}.tmp")
    try:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            scratch.replace(path)
        else:
            _name(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    sync_folder(path.parent)


def _name(scratch: Path, path: Path) -> None:
    """Give the file its name; unlike a rename, a link refuses to replace what came meanwhile."""
    try:
        os.link(scratch, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise
        scratch.rename(path)


def sync_folder(path: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
