"""Where the rows of a session's transcript are: which rows the delta of each commit has, without reading any of them.

A transcript is what the session was handed down from other chains, and its own chain behind that. The index knows the
rows of every delta; those that it lacks are read. What is kept of a session are a letter and a few numbers for each row
and each commit. When the session has grown, only the new commits are asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress
from typing import NamedTuple

import msgspec

from harken.analytics.transcript_rows import CALLS_AND_RESULTS, ON_SCREEN, name_key
from harken.context.walk import RESETS
from harken.index.row_shapes import ShapeRow, agents_in
from harken.store.base import WalkStep

REPEATED = {"p": "P", "i": "P", "w": "W", "t": "T"}
"""By the letter of a row that of the rows that then only repeat such ones for a screen: what stands in the user's
place, whoever put it there, what the model said, and what it thought."""
_SCREENED = "".join(ON_SCREEN.values())
_AS_SAID = str.maketrans({screen: said for said, screen in ON_SCREEN.items()})


class ChainPart(NamedTuple):
    """A chain whose rows are a part of the transcript."""

    first: int
    """The number of its first delta."""
    caller: str = ""
    """What records without a name are called after; empty for the session's own chain."""


class OutlineMarks(NamedTuple):
    """What an outline names of a delta, as the index has it."""

    delta: int
    json: str


class TranscriptLayout:
    """The rows of a session at a commit, in order."""

    def __init__(self, tip: str, hidden: frozenset[str]) -> None:
        self.tip = tip
        self.is_whole = True
        """Whether all rows are known; else only the first are, and each is as it is in the whole."""
        self.hidden = hidden
        """Agents whose records stand in this chain and that have chains of their own: they are told there."""
        self.parts: list[ChainPart] = []
        self.commits: list[bytes] = []
        self.artifacts: list[bytes] = []
        self.formats: list[str] = []
        self.resets: set[int] = set()
        """Deltas that stand for everything below them; only their summaries are told."""
        self.starts = array("q", [0])
        """The number of each delta's first row, and how many rows there are."""
        self.ends = array("q")
        """The place in its chain behind each delta; -1 where it is not known."""
        self.numbers = array("q")
        """What the index calls each commit; -1 where it does not know it."""
        self.letters = ""
        self.names = array("I")
        """What the record of each row is called, 32 bits of it."""
        self.told: dict[int, list[bool]] = {}
        """Which rows of a delta are told, where not all are."""
        self.sessions: set[int] = set()
        """The sessions that the index has the commits under."""
        self._beside = array("I")
        """Further records: in turn the number of the row in its delta that each stands in or before, and its name."""
        self._besides = array("q", [0])
        """How much of that the deltas up to each have."""
        self._marks: list[OutlineMarks] = []
        self._said: set[str] = set()
        """Letters of what the records of the last part say that may be repeated for a screen."""
        self._called: dict[int, int] = {}
        """What tells calls and results that are told again, each with the first delta that has it."""
        self._on_screen: set[str] = set()
        """Letters of repetitions that are told, since there are no such records."""

    def __len__(self) -> int:
        return len(self.letters)

    # -- making it ---------------------------------------------------------------------------------------------

    def begin_part(self, caller: str) -> None:
        """What is added from now on is of another chain."""
        self.parts.append(ChainPart(len(self.commits), caller))
        self._said, self._on_screen = set(), set()

    def add(self, steps: Sequence[WalkStep], shapes: Sequence[ShapeRow]) -> bool:
        """Add deltas, and say whether that went well: where what was told of a screen turns out to be a repetition, all
        has to be made anew."""
        letters = [shape.rows or "" for shape in shapes]
        every = "".join(letters)
        said = self._said | {letter for letter in REPEATED if letter in every}
        silent = {REPEATED[letter] for letter in said}
        if silent & self._on_screen:
            return False
        self._said = said
        first = len(self.commits)
        names = [shape.names or b"" for shape in shapes]
        for at in self._partly_told(shapes, every, silent):
            kept = self.told[first + at]
            letters[at] = "".join(compress(letters[at], kept))
            names[at] = array("I", compress(array("I", names[at]), kept)).tobytes()
        every = "".join(letters)
        self._on_screen |= {letter for letter in _SCREENED if letter in every}
        self.starts.extend(list(accumulate(map(len, letters), initial=len(self.letters)))[1:])
        self.letters += every.translate(_AS_SAID)
        self.names.frombytes(b"".join(names))
        self._add_facts(steps, shapes)
        return True

    def _partly_told(self, shapes: Sequence[ShapeRow], every: str, silent: set[str]) -> list[int]:
        """Those of the deltas of which some rows are not told, which are noted."""
        own, first, found = not self.parts[-1].caller, len(self.commits), []
        repeats = any(letter in every for letter in silent)
        for at, shape in enumerate(shapes):
            if shape.agents or repeats or shape.calls:
                kept = _told(shape, self.hidden, silent, own=own)
                if shape.calls:
                    self._leave_retold(shape, kept, first + at)
                if not all(kept):
                    self.told[first + at] = kept
                    found.append(at)
        return found

    def _leave_retold(self, shape: ShapeRow, kept: list[bool], delta: int) -> None:
        """Leave out calls and results that were told: one is told where it first stands, by the rule of the totals. A
        call stays that brings a result which is new."""
        keys = array("q", shape.calls or b"")
        if (
            all(kept)
            and len(own := set(keys) - {0}) == len(keys) - keys.count(0)
            and self._called.keys().isdisjoint(own)
        ):
            self._called |= dict.fromkeys(own, delta)  # as nearly always
            return
        at = 0
        for row, letter in enumerate(shape.rows or ""):
            if letter not in CALLS_AND_RESULTS:
                continue
            pair = keys[at : at + 2]
            at += 2
            if not kept[row]:
                continue
            kept[row] = not pair[0] or any(key and key not in self._called for key in pair)
            for key in pair:
                if key:
                    self._called.setdefault(key, delta)

    def _add_facts(self, steps: Sequence[WalkStep], shapes: Sequence[ShapeRow]) -> None:
        first = len(self.commits)
        self.commits += [bytes.fromhex(step.id) for step in steps]
        self.artifacts += [bytes.fromhex(step.artifact) for step in steps]
        self.formats += [step.format for step in steps]
        root = self.parts[-1].first
        self.resets |= {at for at, step in enumerate(steps, first) if step.commit_type in RESETS and at != root}
        self.ends.extend([-1 if shape.end is None else shape.end for shape in shapes])
        self.numbers.extend([shape.number for shape in shapes])
        self.sessions |= {shape.session for shape in shapes if shape.session is not None}
        beside = [shape.beside or b"" for shape in shapes]
        self._beside.frombytes(b"".join(beside))
        counts = accumulate((len(data) // 4 for data in beside), initial=self._besides[-1])
        self._besides.extend(list(counts)[1:])
        self._marks += [OutlineMarks(at, shape.marks) for at, shape in enumerate(shapes, first) if shape.marks]

    def is_settled(self) -> bool:
        """Whether what is added changes nothing of what is there: no row is told only since nothing else says it."""
        return not self._on_screen

    def until(self, delta: int) -> TranscriptLayout:
        """The same up to a delta: what a session that has grown still has."""
        made = TranscriptLayout("", self.hidden)
        rows, beside = self.starts[delta], self._besides[delta]
        made.parts = list(self.parts)
        made.commits, made.artifacts = self.commits[:delta], self.artifacts[:delta]
        made.formats, made.resets = self.formats[:delta], {at for at in self.resets if at < delta}
        made.starts, made.ends, made.numbers = self.starts[: delta + 1], self.ends[:delta], self.numbers[:delta]
        made.letters, made.names = self.letters[:rows], self.names[:rows]
        made._beside, made._besides = self._beside[:beside], self._besides[: delta + 1]
        made._marks = self._marks[: bisect_right(self._marks, delta - 1, key=lambda mark: mark.delta)]
        made.told = {at: kept for at, kept in self.told.items() if at < delta}
        made.sessions = set(self.sessions)
        made._called = {key: at for key, at in self._called.items() if at < delta}
        made._said, made._on_screen = set(self._said), set(self._on_screen)
        return made

    # -- asking ------------------------------------------------------------------------------------------------

    def step(self, delta: int) -> WalkStep:
        """The commit of a delta, as far as a reader needs it."""
        kind = "compaction" if delta in self.resets else "delta"
        name, artifact = self.commits[delta].hex(), self.artifacts[delta].hex()
        return WalkStep(name, artifact, kind, self.formats[delta], None, None, False)

    def has_rows(self, delta: int) -> bool:
        """Whether a delta has any."""
        return self.starts[delta] < self.starts[delta + 1]

    def rows_of(self, delta: int) -> range:
        """The numbers of a delta's rows."""
        return range(self.starts[delta], self.starts[delta + 1])

    def delta_of(self, row: int) -> int:
        """The delta that has a row."""
        return bisect_right(self.starts, row) - 1

    def part_of(self, delta: int) -> ChainPart:
        """The chain that a delta is of."""
        return self.parts[bisect_right(self.parts, delta, key=lambda part: part.first) - 1]

    def marks(self) -> Iterator[tuple[int, str, str]]:
        """What an outline names: the number of a row, what it is named as, and a text."""
        text = "[" + ",".join(mark.json for mark in self._marks) + "]"
        for mark, found in zip(self._marks, _decode_marks(text), strict=True):
            start, kept = self.starts[mark.delta], self.told.get(mark.delta)
            for number, kind, what in found:
                if kept is None:
                    yield start + number, kind, what
                elif kept[number]:
                    yield start + sum(kept[:number]), kind, what

    def by_name(self) -> dict[int, int]:
        """By its name the row of every record that has only one; -1 for names that stand for several."""
        found: dict[int, int] = {}
        for row, key in enumerate(self.names):
            found[key] = -1 if key in found else row
        for at in range(len(self._besides) - 1):
            for place in range(self._besides[at], self._besides[at + 1], 2):
                key, row = self._beside[place + 1], self._row(at, self._beside[place])
                found[key] = -1 if key in found or row not in self.rows_of(at) else row
        return found

    def beside_in(self, delta: int, key: int) -> list[int]:
        """The rows that records of a delta with this name stand in or before."""
        some = self._beside[self._besides[delta] : self._besides[delta + 1]]
        return [self._row(delta, some[at - 1]) for at in range(1, len(some), 2) if some[at] == key]

    def _row(self, delta: int, number: int) -> int:
        kept = self.told.get(delta)
        return self.starts[delta] + (number if kept is None else sum(kept[:number]))

    def candidates(self, name: str) -> Iterator[tuple[int, int]]:
        """Rows that may be those of a record, or stand behind it, each with the delta that may have it; whoever reads
        that sees."""
        called = name
        for part in self.parts:
            if part.caller and name.startswith(f"{part.caller}@"):
                called = name[len(part.caller) :]
        key = name_key(called)
        for at in _places(self.names, key):
            yield at, self.delta_of(at)
        for at in _places(self._beside, key):
            if at % 2:
                delta = bisect_right(self._besides, at) - 1
                yield min(self._row(delta, self._beside[at - 1]), len(self) - 1), delta


_decode_marks = msgspec.json.Decoder(list[list[tuple[int, str, str]]]).decode


def _places(names: array[int], key: int) -> Iterator[int]:
    at = -1
    while True:
        try:
            at = names.index(key, at + 1)
        except ValueError:
            return
        yield at


def _told(shape: ShapeRow, hidden: frozenset[str], silent: Iterable[str], *, own: bool) -> list[bool]:
    """Which rows are told."""
    kept = [letter not in silent for letter in shape.rows or ""]
    if not shape.agents:
        return kept
    agents = [agent for agent, count in agents_in(shape) for _ in range(count)]
    return [one and (agent not in hidden if own else not agent) for one, agent in zip(kept, agents, strict=True)]
