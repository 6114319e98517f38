"""The pages of a SQLite file, read without SQLite: every row that lies on any page, whatever became of the others.

SQLite finds a row through the pages above it, and refuses a table where one of them cannot be read. Here each page that
holds rows is read for itself (https://www.sqlite.org/fileformat2.html), so a page that is damaged costs its own rows
only. Nothing is believed: whoever takes a row compares it with its sum. A page that SQLite has given up is left out,
since what lies there was deleted. Where a write-ahead log lies beside the file, its pages come first (`wal.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from .wal import Log

Column = int | str | bytes | None

PAGE = 4096
TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x0A, 0x02
"""Kinds of page that hold rows: of a table, and of a table WITHOUT ROWID, which lies in two kinds."""
_FREE = 2  # in the pointer map: a page that nothing uses
_MAPPED = PAGE // 5  # pages that one page of the pointer map tells of
_LARGEST = 1 << 30
_WHOLE = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes of an integer by its serial type


class Cell(NamedTuple):
    """Where a row lies: its page, and where it begins on that page."""

    page: int
    start: int


class StoredRow(NamedTuple):
    """A row as it was stored; without a number in a table WITHOUT ROWID."""

    number: int | None
    values: tuple[Column, ...]


class Pages:
    """A file of pages, with those of its log; what lies behind its end is empty."""

    def __init__(self, file: int, log: Log | None = None) -> None:
        self._file, self._log = file, log
        own = -(-os.fstat(file).st_size // PAGE)
        self.count = own if log is None or log.count is None else log.count
        head = self.page(1)
        self._has_map = bool(int.from_bytes(head[52:56], "big")) or not head.startswith(b"SQLite format 3\0")
        self._unused = self._freed(head)

    def page(self, number: int) -> bytes:
        """A page; they are counted from 1."""
        if self._log is not None and (newer := self._log.page(number)) is not None:
            return newer
        return os.pread(self._file, PAGE, (number - 1) * PAGE).ljust(PAGE, b"\0") if number > 0 else bytes(PAGE)

    def _freed(self, head: bytes) -> set[int]:
        """The pages of the free list, as far as it can be followed."""
        found: set[int] = set()
        trunk = int.from_bytes(head[32:36], "big")
        while 0 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            page = self.page(trunk)
            leaves = min(int.from_bytes(page[4:8], "big"), PAGE // 4 - 2)
            found.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * leaves, 4))
            trunk = int.from_bytes(page[:4], "big")
        return found

    def _is_free(self, number: int) -> bool:
        if not self._has_map or number < 3:
            return number in self._unused
        at = (number - 2) % (_MAPPED + 1)
        kind = self.page(number - at)[5 * (at - 1)] if at else _FREE  # a page of the map holds no rows
        return kind == _FREE or (kind == 0 and number in self._unused)

    def cells(self, most: int | None = None) -> Iterator[tuple[int, Cell]]:
        """The kind of page and the place of every row there may be; on so many pages at most."""
        last = self.count if most is None else min(self.count, most)
        for number in range(2, last + 1):  # the first page holds the schema
            page = self.page(number)
            if page[0] in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR) and not self._is_free(number):
                array = 12 if page[0] == INDEX_INTERIOR else 8
                rows = min(int.from_bytes(page[3:5], "big"), (PAGE - array) // 2)
                for at in range(array, array + 2 * rows, 2):
                    yield page[0], Cell(number, int.from_bytes(page[at : at + 2], "big"))

    def record(self, kind: int, cell: Cell, *, flipped: int | None = None) -> StoredRow:
        """The row there, with one bit of it turned over if that is asked for; `ValueError` where there is none."""
        page = self.page(cell.page)
        if flipped is not None:
            changed = bytearray(page)
            changed[cell.start + flipped // 8] ^= 1 << flipped % 8
            page = bytes(changed)
        try:
            size, at = _varint(page, cell.start + (4 if kind == INDEX_INTERIOR else 0))
            number = None
            if kind == TABLE_LEAF:
                number, at = _varint(page, at)
                number -= (number >> 63) << 64
            return StoredRow(number, _values(self._payload(page, kind, size, at)))
        except IndexError as error:
            raise ValueError(str(error)) from None

    def length(self, cell: Cell) -> int:
        """How many bytes of its page the row takes: as far as the next row, at most."""
        page = self.page(cell.page)
        array = 12 if page[0] == INDEX_INTERIOR else 8
        most = min(int.from_bytes(page[3:5], "big"), (PAGE - array) // 2)
        starts = [int.from_bytes(page[at : at + 2], "big") for at in range(array, array + 2 * most, 2)]
        return max(0, min([start for start in starts if start > cell.start] + [PAGE]) - cell.start)

    def _payload(self, page: bytes, kind: int, size: int, at: int) -> bytes:
        """What a row holds, from its page and from those that it spilled over to."""
        most = PAGE - 35 if kind == TABLE_LEAF else (PAGE - 12) * 64 // 255 - 23
        if size <= most:
            return _exactly(page[at : at + size], size)
        if size > min(_LARGEST, self.count * PAGE):  # else a page that names itself as the next would go on and on
            raise ValueError("no row is that large")
        least = (PAGE - 12) * 32 // 255 - 23
        here = least + (size - least) % (PAGE - 4)
        here = here if here <= most else least
        parts, left = [_exactly(page[at : at + here], here)], size - here
        following = int.from_bytes(page[at + here : at + here + 4], "big")
        while left > 0:
            if not 0 < following <= self.count:
                raise ValueError("it goes on nowhere")
            more = self.page(following)
            parts.append(more[4 : 4 + left])
            left -= len(parts[-1])
            following = int.from_bytes(more[:4], "big")
        return b"".join(parts)


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError("it is cut off")
    return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(8):
        byte = data[at + n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    return value << 8 | data[at + 8], at + 9


def _values(payload: bytes) -> tuple[Column, ...]:
    """The columns of a row."""
    end, at = _varint(payload, 0)
    kinds, place, values = [], end, list[Column]()
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    for kind in kinds:
        size = (kind - 12) // 2 if kind >= 12 else _WHOLE.get(kind, 0)
        data = _exactly(payload[place : place + size], size)
        place += size
        if kind >= 12:
            values.append(data.decode("utf-8", "surrogateescape") if kind % 2 else data)
        elif kind in (0, 8, 9):
            values.append(None if kind == 0 else kind - 8)
        elif kind in _WHOLE:
            values.append(int.from_bytes(data, "big", signed=True))
        else:
            raise ValueError(f"no column is of the type {kind}")
    if at != end or place != len(payload):
        raise ValueError("its columns do not fill it")
    return tuple(values)
