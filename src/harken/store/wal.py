"""The write-ahead log of a SQLite file, read without SQLite: the pages that were committed and not yet merged.

A frame counts as it does for SQLite (https://www.sqlite.org/fileformat2.html#walformat): it has the salts of the log's
header, its running checksum agrees, and a transaction that was committed ends with it or after it. Of the frames for
one page the last one is the page. Behind the first frame that is not sound lies what an earlier round left there, or a
transaction that was cut off. Where whole transactions of this round lie there, that frame was damaged after it was
written, and SQLite would drop them in silence. They are known by the sums, each of which goes on from the one before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import struct
from pathlib import Path

from harken.errors import Corrupt

from . import sql
from .explaining import explain

_HEADER = struct.Struct(">8I")  # magic, version, page size, round, two salts, two sums
_FRAME = struct.Struct(">6I")  # page, pages of the file after a commit or 0, two salts, two sums
_MAGIC = 0x377F0682
"""Of a log whose sums are over little-endian words; with its last bit set, over big-endian ones."""
_WORD = 0xFFFFFFFF
_PAGE = 4096
_IN_USE = 128
"""The byte of the file `-shm` that every connection of SQLite's keeps locked."""
_FLOCK = struct.Struct("hhqqi4x")


def refuse_damage(path: Path) -> None:
    """Before SQLite merges and removes the log that a killed process left: `Corrupt` where it would drop transactions,
    or refuses the file, which it then merges the log into all the same.

    Not while another process has the store open: it was looked at then, and its log is being written."""
    with contextlib.suppress(OSError):  # no log, or none that can be read, which SQLite will say
        file = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if os.fstat(file).st_size <= _HEADER.size or _is_used(f"{path}-shm"):
                return
            damaged = Log(file, _PAGE).damaged
        finally:
            os.close(file)
        if damaged:
            raise Corrupt(
                f"{path}-wal is damaged, and transactions that were committed lie behind the damage",
                hint="`harken fsck --repair` saves what is left of it",
            )
        _ask(path)


def _ask(path: Path) -> None:
    """Have SQLite look at the file through a connection that cannot write: closing it leaves file and log as they
    are."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute(sql.TABLES).fetchall()
    except sqlite3.Error as error:
        if isinstance(problem := explain(error, str(path)), Corrupt):
            raise problem from error


def _is_used(shared: str) -> bool:
    """Whether another process has a connection; where we cannot ask for that, it may have."""
    if os.uname().sysname != "Linux":  # the structure differs
        return True
    try:
        file = os.open(shared, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _IN_USE, 1, 0)
        return bool(_FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK)
    finally:
        os.close(file)


class Log:
    """The committed pages of a log, and how many the file has with them (None: the log says nothing)."""

    def __init__(self, file: int, size: int) -> None:
        self._file, self._size = file, size
        self._places: dict[int, int] = {}
        self.count: int | None = None
        self.damaged = False
        head = os.pread(file, _HEADER.size, 0)
        if len(head) == _HEADER.size:
            magic, _, page_size, _, *salts, first, second = _HEADER.unpack(head)
            order = ">" if magic & 1 else "<"
            if magic & ~1 != _MAGIC or _sums(head[:24], order, (0, 0)) != (first, second):
                if data := self._frame(_HEADER.size):  # the frames have the salts as well
                    self._look_behind(_HEADER.size, {}, _FRAME.unpack_from(data)[2:4], order)
            elif page_size == size:
                self._follow(tuple(salts), order, (first, second))

    def page(self, number: int) -> bytes | None:
        """The page as it was last committed; None where the log has none."""
        at = self._places.get(number)
        return None if at is None else os.pread(self._file, self._size, at)

    def _follow(self, salts: tuple[int, ...], order: str, sums: tuple[int, int]) -> None:
        """Note where every page lies, one transaction after the other."""
        at, pending = _HEADER.size, dict[int, int]()
        while data := self._frame(at):
            number, count, *own, first, second = _FRAME.unpack_from(data)
            sums = _sums(data[_FRAME.size :], order, _sums(data[:8], order, sums))
            if tuple(own) != salts or sums != (first, second) or not number:
                self._look_behind(at, pending, salts, order)
                return
            pending[number] = at + _FRAME.size
            if count:
                self._places |= pending
                self.count = count
                pending.clear()
            at += len(data)

    def _look_behind(self, at: int, pending: dict[int, int], salts: tuple[int, ...], order: str) -> None:
        """Note whether the frame here is damaged, and what lies behind it.

        The last transaction may be torn, since the disk may get its end before its middle when the power fails. But
        each is synced before the next begins, so that one with another behind it was whole."""
        pages, ends, size = dict[int, int](), 0, self.count
        before: tuple[int, int] | None = None
        while data := self._frame(at):
            number, count, *own, first, second = _FRAME.unpack_from(data)
            if tuple(own) == salts:
                sound = before and (first, second) == _sums(data[_FRAME.size :], order, _sums(data[:8], order, before))
                if sound and number:
                    pending[number] = at + _FRAME.size
                if count and (sound or not before):
                    ends += 1
                    pages |= pending
                    pending.clear()
                    size = count if sound else size
            before = first, second
            at += len(data)
        if ends > 1:
            self.damaged, self.count = True, size
            self._places |= pages

    def _frame(self, at: int) -> bytes:
        """The frame that begins there; empty where it is not whole."""
        data = os.pread(self._file, _FRAME.size + self._size, at)
        return data if len(data) == _FRAME.size + self._size else b""


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The running checksum after these bytes."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = first + even + second & _WORD
        second = second + odd + first & _WORD
    return first, second
