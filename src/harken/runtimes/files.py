"""Finding and reading files that somebody else writes, without being caught by a pipe, a loop or a link to nowhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harken.errors import HarkenError

SUFFIXES = (".jsonl", ".jsonl.zst")
"""What a walk looks at; a file named outright may be called anything."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A place that could not be looked at, and why."""

    path: str
    why: str


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """What one `stat` says of a file; if it is the same, so is the file."""

    size: int
    modified: int
    """Nanoseconds."""
    inode: int


def walk(root: Path) -> Iterator[Path | Trouble]:
    """The session files at or below `root`, in a steady order. A folder is entered once, whatever links to it."""
    try:
        info = root.stat()
    except OSError as problem:
        yield Trouble(path=str(root), why=problem.strerror or str(problem))
        return
    if not stat.S_ISDIR(info.st_mode):
        yield root
        return
    entered = {(info.st_dev, info.st_ino)}
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as problem:
            yield Trouble(path=str(folder), why=problem.strerror or str(problem))
            continue
        below = []
        for entry in entries:
            try:
                if entry.is_dir():
                    info = entry.stat()
                    if (info.st_dev, info.st_ino) not in entered:
                        entered.add((info.st_dev, info.st_ino))
                        below.append(Path(entry.path))
                elif entry.name.endswith(SUFFIXES):
                    yield Path(entry.path)
            except OSError as problem:
                yield Trouble(path=entry.path, why=problem.strerror or str(problem))
        folders += reversed(below)


def stamp(path: Path) -> Stamp:
    """One `stat`; `HarkenError` for what is not a regular file, since a pipe would hold us for ever."""
    try:
        info = path.stat()
    except OSError as problem:
        raise HarkenError(f"{path}: {problem.strerror}") from None
    if not stat.S_ISREG(info.st_mode):
        raise HarkenError(f"{path}: not a regular file")
    return Stamp(info.st_size, info.st_mtime_ns, info.st_ino)


def read_range(path: Path, start: int, size: int) -> bytes:
    """Up to `size` bytes from `start` on; fewer only at the end of the file."""
    try:
        # Without O_NONBLOCK, opening a FIFO that took the file's place since the stat would never return.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise HarkenError(f"{path}: not a regular file")
            parts = []
            while size > 0 and (part := os.pread(handle, min(size, 1 << 30), start)):
                parts.append(part)
                start += len(part)
                size -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(handle)
    except OSError as problem:
        raise HarkenError(f"{path}: {problem.strerror}") from None
