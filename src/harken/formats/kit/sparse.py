"""Content with overlong lines, as readers need it: as long as it is, without taking the memory.

An overlong line is never parsed; a reader wants to know where it is, how long it is and how it begins. So the rest of
it is left out: pages that nobody has written to, which take no memory. Everything else is where it was.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from typing import Any

from .jsonl import HEAD, is_overlong


class SparseBytes(mmap.mmap):
    """Bytes without the middle of overlong lines; it is searched and cut like any others."""

    _held: list[tuple[int, int]]
    """From where to where something is held, in order."""
    _at: int
    _line: int
    """Where the line begins that is being added."""
    _left_out: bool

    def __new__(cls, size: int) -> SparseBytes:
        # Private: of a shared mapping every page that is looked at takes memory.
        made = super().__new__(cls, -1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        made._held, made._at, made._line, made._left_out = [], 0, 0, False
        return made

    def add(self, part: bytes) -> None:
        """The next bytes."""
        start = 0
        while start < len(part):
            end = part.find(b"\n", start) + 1 or len(part)
            self._add_to_line(part[start:end])
            start = end

    def _add_to_line(self, piece: bytes) -> None:
        ended = piece.endswith(b"\n")
        end = self._at + len(piece)
        if not is_overlong(end - self._line):
            self._put(self._at, piece)
        else:
            if not self._left_out:
                self._put(self._at, piece[: max(0, self._line + HEAD - self._at)])
                self._leave_out()
            if ended:
                self._put(end - 1, b"\n")
        self._at = end
        if ended:
            self._line, self._left_out = end, False

    def _leave_out(self) -> None:
        """The line has turned out to be overlong: its head stays."""
        self._left_out = True
        cut = self._line + HEAD
        if self._held and self._held[-1][1] > cut:
            start, end = self._held[-1]
            self._held[-1] = (start, cut)
            page = -(-cut // mmap.PAGESIZE) * mmap.PAGESIZE
            if end - page >= mmap.PAGESIZE:
                self.madvise(mmap.MADV_DONTNEED, page, (end - page) // mmap.PAGESIZE * mmap.PAGESIZE)

    def _put(self, at: int, data: Any) -> None:
        self[at : at + len(data)] = data
        if self._held and self._held[-1][1] == at:
            self._held[-1] = (self._held[-1][0], at + len(data))
        elif len(data):
            self._held.append((at, at + len(data)))

    def append(self, content: bytes | SparseBytes) -> None:
        """Other content behind this one."""
        with memoryview(content) as whole:
            for start, end in content._held if isinstance(content, SparseBytes) else [(0, len(content))]:
                self._put(self._at + start, whole[start:end])
        self._at += len(content)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            # Whoever takes an overlong line gets its head, which is no record either.
            place = slice(start, start + HEAD if is_overlong(stop - start) else stop)
        return super().__getitem__(place)

    def find(self, sought: Any, start: int = 0, end: int | None = None) -> int:
        """Where it stands first, in what is held."""
        stop = len(self) if end is None else end
        for first, last in self._held:
            if last > start and first < stop:
                found = super().find(sought, max(first, start), min(last, stop))
                if found >= 0:
                    return found
        return -1

    def rfind(self, sought: Any, start: int = 0, end: int | None = None) -> int:
        """Where it stands last, in what is held."""
        stop = len(self) if end is None else end
        for first, last in reversed(self._held):
            if last > start and first < stop:
                found = super().rfind(sought, max(first, start), min(last, stop))
                if found >= 0:
                    return found
        return -1

    def __contains__(self, sought: object) -> bool:
        return self.find(sought) >= 0

    def endswith(self, end: bytes) -> bool:
        """Whether it ends like this."""
        return bool(self[max(0, len(self) - len(end)) :] == end)


def sparse(parts: Iterable[bytes], size: int) -> SparseBytes:
    """Content of so many bytes that comes in parts."""
    content = SparseBytes(size)
    for part in parts:
        content.add(part)
    return content


def join_sparse(contents: Sequence[bytes | SparseBytes]) -> SparseBytes:
    """One behind the other."""
    joined = SparseBytes(sum(map(len, contents)))
    for content in contents:
        joined.append(content)
    return joined
