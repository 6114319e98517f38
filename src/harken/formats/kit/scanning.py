"""One pass over a file of lines for the importer: what the scanners of the runtimes have in common.

A runtime's scanner says what a record is (`_line`), what to make of a line that is not exactly one object (`_broken`)
and what is told of the file in the end (`_facts`). What is known up to the last cut is its state, from which the next
scan goes on: the counts are copied at every cut, and what follows the last one is in the answer, not in the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import msgspec

from harken.clock import parse_instant
from harken.errors import BadRequest
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import FileFacts, Origin

from .cutting import LineCutter
from .jsonl import SHORT, Placed, Record, is_overlong, lines, parse, take_apart


class LineCounts(Protocol):
    """What is known of a file up to a cut; JSON text through `msgspec.json`."""

    rule: str
    offset: int
    session: str
    records: int
    opaque: int
    tally: Tally

    def copy(self) -> Self:
        """The same counts, which may then go their own way."""
        ...


KnownCounts = TypeVar("KnownCounts", bound=LineCounts)
UsedCutter = TypeVar("UsedCutter", bound=LineCutter)


def remembered(state: bytes, kind: type[KnownCounts]) -> KnownCounts:
    """The counts that a state holds, the first ones where there is none."""
    fresh = kind()
    if not state:
        return fresh
    try:
        counts = msgspec.json.decode(state, type=kind)
    except msgspec.MsgspecError:
        counts = None
    if counts is None or counts.rule != fresh.rule or counts.offset < 0:
        raise BadRequest("what was remembered of the file is not understood", hint="import it again with --verify")
    return counts


class LineScanner(Generic[KnownCounts, UsedCutter]):
    """A scan under way: `run` it once."""

    _quickly: Callable[[bytes, int, int], bool] | None = None
    """Counts a line of a usual shape without parsing all of it; the answer is whether it was one."""

    def __init__(self, counts: KnownCounts, cutter: UsedCutter) -> None:
        self.now = counts
        self.base = counts.offset
        self.cutter = cutter
        self.closed = counts.copy()
        """What was known at the last cut."""
        self.deltas: list[Delta] = []
        self.stamps: list[str] = []
        """Times of the usual shape that the tally does not know yet."""
        self.calls: dict[str, str] = {}
        self.asks: dict[str, str] = {}
        self.origin: Origin | None = None

    def run(self, data: bytes) -> FileFacts:
        """The facts of a file, or of what was added since the counts were made."""
        base, quickly = self.base, self._quickly
        for start, end in lines(data):
            if end - start > SHORT and is_overlong(end - start):
                self._broken(base + start, base + end, b"", [], unread=True)
                continue
            line = data[start:end]
            if quickly is not None and quickly(line, base + start, base + end):
                continue
            if (record := parse(line)) is not None:
                self._line(line, record, base + start, base + end)
            else:
                self._take_apart(line, base + start, base + end)
        return self._end()

    def _take_apart(self, line: bytes, start: int, end: int) -> None:
        objects, rest = take_apart(line, 0, len(line))
        if objects or rest is not None:
            self._broken(start, end, line, objects, unread=rest is not None)
        else:
            self.cutter.skip(end)

    def _line(self, line: bytes, record: Record, start: int, end: int) -> None:
        """A line that is one record."""
        raise NotImplementedError

    def _broken(self, start: int, end: int, line: bytes, objects: list[Placed], *, unread: bool) -> None:
        """A line that is not one object: it never cuts, but what can be recovered from it counts. `unread` says whether
        there is more on it; `line` is empty where it is too long to be looked at."""
        raise NotImplementedError

    def _facts(self) -> FileFacts:
        """What there is to know."""
        raise NotImplementedError

    def _end(self) -> FileFacts:
        if tail := self.cutter.tail():
            self._add((tail,))
        return self._facts()

    def _messages(self, counts: KnownCounts) -> int:
        """How much was said."""
        return counts.tally.messages

    def _add(self, deltas: tuple[Delta, ...]) -> None:
        """Hand out deltas; what was said since the last ones is in the first of them."""
        self._settle()
        said = max(self._messages(self.now) - self._messages(self.closed), 0)
        self.deltas += [msgspec.structs.replace(deltas[0], messages=said), *deltas[1:]]

    def _close(self, deltas: tuple[Delta, ...]) -> None:
        """Hand out deltas that are closed."""
        self._add(deltas)
        self.closed = self.now.copy()
        self.closed.offset = self.cutter.start

    def _settle(self) -> None:
        """Bring the counts up to the present line."""
        self._settle_times()

    def _note_time(self, stamp: object) -> None:
        if isinstance(stamp, str) and len(stamp) == 24 and stamp[10] == "T" and stamp[-1] == "Z":
            self.stamps.append(stamp)
        elif (at := parse_instant(stamp)) is not None:
            self.now.tally.at(at)

    def _settle_times(self) -> None:
        # Stamps of one shape sort like the instants they name, so the first and the last will do. One that names no
        # instant sorts anywhere, and would hide others: then each is parsed.
        if self.stamps:
            found = [parse_instant(min(self.stamps)), parse_instant(max(self.stamps))]
            for at in map(parse_instant, self.stamps) if None in found else found:
                if at is not None:
                    self.now.tally.at(at)
            self.stamps = []

    def _signed(self) -> Origin | None:
        """What Harken wrote into the first line, if that is this session still."""
        return self.origin if self.origin and self.origin.session == self.now.session else None
