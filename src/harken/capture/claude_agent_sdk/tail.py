"""A file that another program writes: its whole lines, as they come.

Bytes are split at `\\n` and nowhere else, and only whole lines are given out, so a character that was cut in two by a
read is whole again. The file is kept open: when it is replaced, what was left of the old one is read first. A file that
shrank, or whose bytes before our place are not what they were, was written anew: it is read again from its beginning,
and whoever takes the lines knows which of them he has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PIECE = 1 << 20
_MARK = 64
"""How many bytes before our place are compared."""


class TailedFile:
    """One file and how far it was read."""

    def __init__(self, path: Path, *, piece: int = PIECE) -> None:
        self.path = path
        self._piece = piece
        self._file = -1
        self._offset = 0
        self._mark = b""
        self._open_line: list[bytes] = []
        self.beginnings = 0
        """How often it was begun from its first byte."""

    def lines(self) -> Iterator[bytes]:
        """Every line that is whole by now and was not given out before, without its newline."""
        if self._file < 0 and not self._open():
            return
        if self._was_rewritten():
            self._restart()
            self.beginnings += 1
        yield from self._rest()
        if self._was_replaced():
            yield from self._rest()
            yield from self._torn()
            self.close()
            if self._open():
                yield from self._rest()

    def end(self, *, torn: bool = True) -> Iterator[bytes]:
        """What is left, a line without a newline too unless somebody may still write it; the file is let go."""
        yield from self.lines()
        if torn:
            yield from self._torn()
        self.close()

    def _torn(self) -> Iterator[bytes]:
        if last := b"".join(self._open_line):
            yield last

    def close(self) -> None:
        """Let go of the file; it is read from its beginning when it is asked for again."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self._restart()

    def _open(self) -> bool:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            self.beginnings += 1
            return True
        return False

    def _restart(self) -> None:
        self._offset, self._mark, self._open_line = 0, b"", []

    def _was_rewritten(self) -> bool:
        if os.fstat(self._file).st_size < self._offset:
            return True
        return os.pread(self._file, len(self._mark), self._offset - len(self._mark)) != self._mark

    def _was_replaced(self) -> bool:
        try:
            there = self.path.stat()
        except OSError:
            return False  # it is gone, or about to be there again
        here = os.fstat(self._file)
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _rest(self) -> Iterator[bytes]:
        """The whole lines from our place to the end of the file."""
        while data := os.pread(self._file, self._piece, self._offset):
            self._offset += len(data)
            self._mark = (self._mark + data)[-_MARK:]
            first, *others = data.split(b"\n")
            self._open_line.append(first)
            for other in others:
                yield b"".join(self._open_line)
                self._open_line = [other]
