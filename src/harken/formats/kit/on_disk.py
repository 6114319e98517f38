"""Content that is too much to hold: in a file without a name, as readers need it.

A reader goes through it once or twice from the beginning to the end. The pages it has been through stay with the
system, which has them back whenever it needs the room; the process lets go of them every few megabytes.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from typing import Any, cast

from .jsonl import HEAD, is_overlong

STEP = 4 << 20
"""Bytes that are looked at before their pages are let go of."""
HELD = 8 << 20
"""Less than this is simply held."""


class DiskBytes(mmap.mmap):
    """Bytes in a file; they are searched and cut like any others, and of an overlong line one gets the head."""

    _looked: int

    def __new__(cls, file: int, size: int) -> DiskBytes:
        made = super().__new__(cls, file, size, access=mmap.ACCESS_READ)
        made._looked = 0
        return made

    def _look(self, size: int) -> None:
        self._looked += size
        if self._looked >= STEP:
            self._looked = 0
            self.madvise(mmap.MADV_DONTNEED)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            stop = start + HEAD if is_overlong(stop - start) else stop
            self._look(max(0, stop - start))
            place = slice(start, stop)
        return super().__getitem__(place)

    def find(self, sought: Any, start: int = 0, end: int | None = None) -> int:
        """Where it stands first."""
        stop = len(self) if end is None else end
        while start < stop:
            found = super().find(sought, start, min(stop, start + STEP + len(sought) - 1))
            if found >= 0:
                return found
            self._look(STEP)
            start += STEP
        return -1

    def rfind(self, sought: Any, start: int = 0, end: int | None = None) -> int:
        """Where it stands last."""
        stop = len(self) if end is None else end
        while start < stop:
            found = super().rfind(sought, max(start, stop - STEP - len(sought) + 1), stop)
            if found >= 0:
                return found
            self._look(STEP)
            stop -= STEP
        return -1

    def __contains__(self, sought: object) -> bool:
        return self.find(sought) >= 0

    def endswith(self, end: bytes) -> bool:
        """Whether it ends like this."""
        return bool(self[max(0, len(self) - len(end)) :] == end)


def put_down(parts: Iterable[bytes], held: int = HELD) -> bytes:
    """The parts one behind the other: in memory where that is not much, else on the disk."""
    with tempfile.SpooledTemporaryFile(max_size=held) as file:
        size = sum(map(file.write, parts))
        if size <= held:
            file.seek(0)
            return file.read()
        file.flush()
        return cast("bytes", DiskBytes(file.fileno(), size))
