"""A log without a file: it ends with the session, and is written and read as one on disk is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harken.errors import Closed, Poisoned

CHUNK = 64 * 1024


class MemoryLog:
    """What `LogWriter` is for a file."""

    def __init__(self) -> None:
        self.size = 0
        self._lines = bytearray()
        self._closed = self._interrupted = False

    def append(self, lines: bytes, count: int = 1) -> None:
        """Put whole lines at the end."""
        self._refuse_closed()
        if self._interrupted:
            raise Poisoned("the session was interrupted while it was written", hint="begin another session")
        self._lines += lines
        self.size += len(lines)

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """What is in it, as long as it is open."""
        while True:
            self._refuse_closed()
            stop = start + CHUNK if end is None else min(end, start + CHUNK)
            if not (part := bytes(self._lines[start:stop])):
                return
            yield part
            start += len(part)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Closed("the session is closed, and was in memory only", hint="give `Session` a file to keep it")

    def is_torn(self) -> bool:
        """Whether it ends in the middle of a line, which only a file can."""
        return False

    def last_line(self) -> int:
        """Where the last line begins."""
        return self._lines.rfind(b"\n", 0, max(0, self.size - 1)) + 1

    def flush(self) -> None:
        """There is no disk to wait for."""
        self._refuse_closed()

    def interrupted(self) -> None:
        """Nobody can tell any more what is there and what is believed."""
        self._interrupted = True

    def close(self) -> None:
        """Let go of everything; harmless when done twice."""
        self._closed = True
        self._lines = bytearray()


def memory_name() -> Path:
    """A name by which a log without a file is told from others."""
    return Path(f"memory-{os.urandom(8).hex()}")


def is_memory_name(path: Path) -> bool:
    """Whether it is such a name: logs in files have whole paths."""
    return not path.is_absolute()
