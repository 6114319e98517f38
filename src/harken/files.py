"""How a file is written whole, and what files that belong to another are called."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import NotFound

SPOOL, UNREAD = "spool", "unread"
"""Kinds of files that belong to a store (`runtimes/spool.py`)."""


def write_whole(path: Path, data: bytes | Iterable[bytes], *, replace: bool = False) -> None:
    """Write a file that is there whole and on the disk, or not at all, for its owner's eyes alone.

    What is there already is `FileExistsError`, unless it is to be replaced. Any other failure is an `OSError` too, and
    leaves nothing behind."""
    scratch = path.with_name(f".harken-{uuid.uuid4().hex}.tmp")
    try:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            scratch.replace(path)
        else:
            give_name(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    sync_folder(path.parent)


def give_name(scratch: Path, path: Path) -> None:
    """Give the file its name; unlike a rename, a link refuses to replace what came meanwhile."""
    try:
        os.link(scratch, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise
        scratch.rename(path)


def name_beside(path: Path, kind: str, unique: str) -> Path:
    """What a file of a kind that belongs to another file is called: `NAME-KIND-UNIQUE`, beside it."""
    return path.with_name(f"{path.name}-{kind}-{unique}")


def find_beside(path: Path, kind: str) -> list[Path]:
    """The files of a kind that belong to a file, in the order of their names; none where that is no file."""
    begins = name_beside(path, kind, "").name
    return sorted(found for found in path.parent.iterdir() if found.name.startswith(begins)) if path.is_file() else []


def folder_named(path: str) -> Path | None:
    """The folder that was named to write into; None where a file was. A path that ends in a slash means a folder: where
    there is none it is refused, since nobody means a file by it."""
    try:
        found = Path(path).is_dir()
    except OSError:  # a name that is too long, a folder that nobody may look into
        found = False
    if path.endswith("/") and not found:
        raise NotFound(f"there is no folder {path}", hint="make it first, or name a file")
    return Path(path) if found else None


def names_in(folder: Path) -> tuple[str, ...]:
    """The names in a folder, among which a new one is to be free."""
    try:
        return tuple(one.name for one in folder.iterdir())
    except OSError as problem:
        raise NotFound(f"cannot look into {folder}: {problem.strerror}", hint="name another folder") from None


def write_hint(problem: OSError) -> str:
    """What to do about a file that could not be written."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return "nothing was half written; make room and try again"
    return "name a file in a folder that you may write to"


def make_folder(path: Path) -> None:
    """Make a folder and those above it, for their owner alone, and put their names on the disk.

    Without that a power cut could take the folder away with everything in it, however well that was synced."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(made):
        folder.mkdir(mode=0o700, exist_ok=True)
    for folder in made:
        sync_folder(folder.parent)


def sync_file(path: Path) -> None:
    """Make sure that what a file holds is on the disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(path: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _not_offered():
            os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _not_offered() -> Iterator[None]:
    """Some file systems cannot sync a folder, and say so: there is nothing more to do then."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
