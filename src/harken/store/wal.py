"""The write-ahead log of a SQLite file, read without SQLite: the pages that were committed and not yet merged.

A frame counts as it does for SQLite (https://www.sqlite.org/fileformat2.html#walformat): it has the salts of the log's
header, its running checksum agrees, and a transaction that was committed ends with it or after it. Of the frames for
one page the last one is the page. Behind the first frame that is not sound lies what an earlier round left there.
"""

from __future__ import annotations

import os
import struct

_HEADER = struct.Struct(">8I")  # magic, version, page size, round, two salts, two sums
_FRAME = struct.Struct(">6I")  # page, pages of the file after a commit or 0, two salts, two sums
_MAGIC = 0x377F0682
"""Of a log whose sums are over little-endian words; with its last bit set, over big-endian ones."""
_WORD = 0xFFFFFFFF


class Log:
    """The committed pages of a log, and how many the file has with them (None: the log says nothing)."""

    def __init__(self, file: int, size: int) -> None:
        self._file, self._size = file, size
        self._places: dict[int, int] = {}
        self.count: int | None = None
        head = os.pread(file, _HEADER.size, 0)
        if len(head) == _HEADER.size:
            magic, _, page_size, _, *salts, first, second = _HEADER.unpack(head)
            order = ">" if magic & 1 else "<"
            if magic & ~1 == _MAGIC and page_size == size and _sums(head[:24], order, (0, 0)) == (first, second):
                self._follow(tuple(salts), order, (first, second))

    def page(self, number: int) -> bytes | None:
        """The page as it was last committed; None where the log has none."""
        at = self._places.get(number)
        return None if at is None else os.pread(self._file, self._size, at)

    def _follow(self, salts: tuple[int, ...], order: str, sums: tuple[int, int]) -> None:
        """Note where every page lies, one transaction after the other."""
        at, pending = _HEADER.size, dict[int, int]()
        while len(data := os.pread(self._file, _FRAME.size + self._size, at)) == _FRAME.size + self._size:
            number, count, *own, first, second = _FRAME.unpack_from(data)
            sums = _sums(data[_FRAME.size :], order, _sums(data[:8], order, sums))
            if tuple(own) != salts or sums != (first, second) or not number:
                return
            pending[number] = at + _FRAME.size
            if count:
                self._places |= pending
                self.count = count
                pending.clear()
            at += len(data)


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The running checksum after these bytes."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = first + even + second & _WORD
        second = second + odd + first & _WORD
    return first, second
