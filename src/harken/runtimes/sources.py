"""A session's bytes, wherever they lie: a plain file is read in ranges, a compressed one is unpacked within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import zstandard

from harken.errors import HarkenError

from .files import Stamp, read_range

UNPACKED_LIMIT = 2 << 30
"""A compressed file that would become larger than this is taken for a trap."""


PIECE = 1 << 16
"""How much is unpacked between two looks at the limit; zstd can turn it into a few hundred megabytes at most."""


class Source(Protocol):
    """Bytes that can be read in ranges."""

    path: Path
    stamp: Stamp
    size: int

    def read(self, start: int, size: int) -> bytes:
        """Up to `size` bytes from `start` on; fewer only at the end."""
        ...


class PlainFile:
    """A file as it is. Only what was there when it was stamped counts: a writer may be adding to it."""

    def __init__(self, path: Path, stamp: Stamp) -> None:
        self.path, self.stamp, self.size = path, stamp, stamp.size

    def read(self, start: int, size: int) -> bytes:
        """A range of the file."""
        return read_range(self.path, start, min(size, self.size - start))


class Excerpt:
    """Some lines of a file, as if they were a file of their own."""

    def __init__(self, path: Path, stamp: Stamp, data: bytes) -> None:
        self.path, self.stamp, self.size, self._data = path, stamp, len(data), data

    def read(self, start: int, size: int) -> bytes:
        """A range of the lines."""
        return self._data[start : start + size]


class UnpackedFile(Excerpt):
    """A `.zst` file, held unpacked."""

    def __init__(self, path: Path, stamp: Stamp) -> None:
        super().__init__(path, stamp, _unpack(read_range(path, 0, stamp.size), path))


def _unpack(packed: bytes, path: Path) -> bytes:
    """All frames of a zstd file; one that was cut short is an error, since its end would silently be missing."""
    parts: list[bytes] = []
    size = 0
    try:
        while packed:
            frame = zstandard.ZstdDecompressor().decompressobj()
            for start in range(0, len(packed), PIECE):
                parts.append(frame.decompress(packed[start : start + PIECE]))
                size += len(parts[-1])
                if size > UNPACKED_LIMIT:
                    raise HarkenError(f"{path}: unpacks to more than {UNPACKED_LIMIT >> 30} GiB")
                if frame.eof:
                    packed = frame.unused_data + packed[start + PIECE :]
                    break
            else:
                raise HarkenError(f"{path}: the zstd file is cut short")
    except zstandard.ZstdError as problem:
        raise HarkenError(f"{path}: not a zstd file ({problem})") from None
    return b"".join(parts)


def open_source(path: Path, stamp: Stamp) -> Source:
    """The source for a path."""
    return UnpackedFile(path, stamp) if path.name.endswith(".zst") else PlainFile(path, stamp)
