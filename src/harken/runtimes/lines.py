"""How bytes become the lines of a run: the same for what a runtime prints and for what a spool holds of it."""

from __future__ import annotations

from harken.formats.kit import jsonl


class LineSplitter:
    """Cuts a stream of bytes into lines without their newlines.

    A line longer than `jsonl.MAX_LINE` comes in pieces of that size, so that memory has a bound; what a spool holds is
    cut where the run cut it."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, part: bytes) -> list[bytes]:
        """The lines that end in this part of the stream."""
        self._rest += part
        if b"\n" not in part and len(self._rest) <= jsonl.MAX_LINE:
            return []
        *lines, rest = self._rest.split(b"\n")
        *pieces, last = _cut(rest)
        self._rest = bytearray(last)
        return [piece for line in lines for piece in _cut(line)] + pieces

    def end(self) -> list[bytes]:
        """What stands behind the last newline, if anything does."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest else []


def _cut(line: bytearray) -> list[bytes]:
    """The line in pieces; the last is empty only where the line is."""
    size = jsonl.MAX_LINE
    return [bytes(line[at : at + size]) for at in range(0, len(line) or 1, size)]
