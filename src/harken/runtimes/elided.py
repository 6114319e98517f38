"""Content in which overlong lines are counted and not held."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """An overlong line that was read and hashed, and not held."""

    start: int
    size: int
    digest: str
    ended: bool
    """Whether it has a newline at its end."""


class Elided:
    """Content in which overlong lines are only counted. A scan finds the lines in it as in bytes, and looks into none
    that is too long."""

    def __init__(self, segments: Sequence[tuple[int, bytes]], gaps: Sequence[Gap], size: int) -> None:
        self.segments, self.gaps, self._size = segments, gaps, size

    def __len__(self) -> int:
        return self._size

    def find(self, sought: bytes, start: int = 0) -> int:
        """Where the next newline is; an overlong line has one at its end, if at all."""
        stops = [(at, data) for at, data in self.segments] + [(gap.start, gap) for gap in self.gaps]
        for at, item in sorted(stops, key=lambda stop: stop[0]):
            if isinstance(item, Gap):
                if item.ended and start < at + item.size:
                    return at + item.size - 1
            elif start < at + len(item) and (found := item.find(sought, max(0, start - at))) >= 0:
                return at + found
        return -1

    def __getitem__(self, place: slice) -> bytes:
        for at, data in self.segments:
            if at <= place.start < at + len(data):
                return data[place.start - at : place.stop - at]
        return b""
