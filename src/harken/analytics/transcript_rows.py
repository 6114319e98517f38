"""The rows of a transcript: what a reader sees as one thing, made from the events of one delta.

A call stands with its result, a compaction with its summary, and everything else that says something by itself. What
says nothing to a reader is counted, not told. No row crosses a delta: a result whose call stands in another delta is a
row of its own. So the rows of a session are those of its deltas, one behind the other, and each delta's can be made
without the others.

Each row has a letter, so that a session of a hundred thousand rows is a text of as many characters, from which numbers
of rows, outline and strip are made.
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from harken.events import (
    AgentCreated,
    AgentTerminated,
    Error,
    Event,
    Metric,
    Output,
    PieceOfText,
    Prompt,
    Recovery,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.events.base import clean, excerpt
from harken.events.edits import INSTRUCTIONS, SUMMARIES
from harken.events.tool_kinds import KINDS, tool_kind
from harken.events.tools import doing
from harken.ids import short_key

from .calls import told_as
from .files import touched
from .steps import is_compaction

PROMPT, ANSWER, THINKING, CALL, RESULT, INJECTED = "prompt", "answer", "thinking", "call", "result", "injected"
INSTRUCTED, NOTICE, ERROR, COMPACTION, AGENT = "instructions", "notice", "error", "compaction", "agent"
EDITED, UNREAD = "edit", "unread"

_LETTERS = {
    PROMPT: "p", ANSWER: "w", THINKING: "t", RESULT: "z", INJECTED: "i", INSTRUCTED: "s", NOTICE: "n", ERROR: "X",
    COMPACTION: "|", AGENT: "g", EDITED: "d", UNREAD: "?",
}  # fmt: skip
_OF_CALLS = dict(zip(KINDS, "rfecbakqo", strict=True))
"""The letters of calls by what their tools do; a capital is one that failed."""
CALLS = frozenset("rfecbakqoRFECBAKQO")
CALLS_AND_RESULTS = CALLS | {"z", "Z"}
FAILURES = frozenset("RFECBAKQOZX")
ON_SCREEN = {"p": "P", "w": "W", "t": "T"}
"""The letters of rows that only repeat, for a screen, what records of the conversation say, by those of what they
repeat. They are told where a session has no such records."""
_SCREEN = "event_msg@"
"""How the `api_id` of such an event begins: Codex writes them."""
_SHOWN = str.maketrans({"f": "r", "F": "R", "b": "o", "k": "o", "q": "o", "B": "O", "K": "O", "Q": "O"})
_IN_STRIP = frozenset("rRcCeEaAoO|p")

TOLD = 120
"""Characters that are remembered of a prompt or of what failed."""
SEALED, EMPTY, NOTICES = "sealed reasoning", "empty texts", "notices of the runtime"
RECORDS, USAGE, REPEATED = "records that are no conversation", "reports of usage", "repeated by a compaction"


class RowEvents(NamedTuple):
    """A row, as the events it is made of."""

    kind: str
    event: Event
    joined: Event | None = None
    """The result of a call, or the summary of a compaction."""

    @property
    def letter(self) -> str:
        """What stands for it in the text of all rows."""
        event, joined = self.event, self.joined
        if type(event) is ToolCall:
            letter = _OF_CALLS[tool_kind(event.name)]
            return letter.upper() if type(joined) is ToolResult and joined.is_error else letter
        if type(event) is ToolResult and event.is_error:
            return "Z"
        letter = _LETTERS[self.kind]
        return ON_SCREEN.get(letter, letter) if event.api_id.startswith(_SCREEN) else letter


class DeltaRows:
    """The rows of one delta, and what is in it and in no row."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.rows: list[RowEvents] = []
        self.left_out: Counter[str] = Counter()
        self.beside: list[tuple[str, int]] = []
        """The records of events that are in no row, or joined to one: each with the number of that row or the next."""
        self._results: dict[tuple[str, str], deque[int]] = {}
        self._joined: dict[int, int] = {}
        self._compacted: Event | None = None
        for place, event in enumerate(events):
            if type(event) is ToolResult and event.id:
                self._results.setdefault((event.agent_id, event.id), deque()).append(place)
        for place, event in enumerate(events):
            self._take(place, event, events)

    def _take(self, place: int, event: Event, events: Sequence[Event]) -> None:
        if type(event) is ToolCall:
            waiting = self._results.get((event.agent_id, event.id)) if event.id else None
            found = waiting.popleft() if waiting else None
            if found is not None:
                self._joined[found] = len(self.rows)
            self.rows.append(RowEvents(CALL, event, None if found is None else events[found]))
            return
        if place in self._joined:
            self.beside.append((event.message_id, self._joined[place]))
            return
        if self._compacted is not None and self._belongs_to_compaction(event):
            return
        kind = kind_of(event)
        if kind in _LETTERS:
            self.rows.append(RowEvents(kind, event))
            self._compacted = event if is_compaction(event) else None
        else:
            self.left_out[kind] += 1
            self.beside.append((event.message_id, len(self.rows)))

    def _belongs_to_compaction(self, event: Event) -> bool:
        """Whether an event behind a compaction is its summary, or what its record puts in the place of the
        conversation, which was said before."""
        compacted = self._compacted
        assert compacted is not None
        last = len(self.rows) - 1
        is_same = event.message_id == compacted.message_id and bool(event.message_id)
        is_summary = kind_of(event) == COMPACTION and isinstance(event, Prompt)
        if is_summary and event.agent_id == compacted.agent_id and self.rows[last].joined is None:
            self.rows[last] = self.rows[last]._replace(joined=event)
        elif is_same:
            self.left_out[REPEATED] += 1
        else:
            return False
        self.beside.append((event.message_id, last))
        return True


def kind_of(event: Event) -> str:
    """The kind of row that an event is by itself; what it is counted as where it is none."""
    kind = _KINDS.get(type(event), event.kind)
    return kind if isinstance(kind, str) else kind(event)


def _prompt(event: Prompt) -> str:
    if not event.images and not event.content.strip():
        return EMPTY
    if event.origin in SUMMARIES:
        return COMPACTION
    if event.source != "injected":
        return PROMPT
    # What another agent asks for is the task of this one; words that somebody said are heard here once more.
    return PROMPT if event.origin in ("agent", "peer") and event.substance is None else INJECTED


def _system(event: System) -> str:
    # What only clears old results (`microcompact_boundary`, `context_truncated`) leaves the conversation as it is, and
    # no count of compactions has it.
    if is_compaction(event) or event.subtype in SUMMARIES:
        return COMPACTION
    return (INSTRUCTED if event.subtype == INSTRUCTIONS else NOTICE) if event.message.strip() else NOTICES


def _words(event: Response | PieceOfText) -> str:
    return ANSWER if event.content.strip() else EMPTY


_KINDS: dict[type, str | Callable[[Any], str]] = {
    Prompt: _prompt,
    Response: _words,
    PieceOfText: _words,
    Thinking: lambda event: THINKING if event.content.strip() else SEALED,
    ToolCall: CALL,
    ToolResult: RESULT,
    System: _system,
    Metric: USAGE,
    Output: lambda event: UNREAD if event.why else RECORDS,
    Error: ERROR,
    Recovery: ERROR,
    TranscriptEdit: lambda event: COMPACTION if event.action == "compact" else EDITED,
    AgentCreated: AGENT,
    AgentTerminated: AGENT,
}
"""By type, since every event of every session goes by."""


# -- what is kept of the rows of a delta -------------------------------------------------------------------------------


class RowShape(NamedTuple):
    """What is kept of the rows of a delta: enough for places, outline and strip of a session."""

    letters: str
    """One for each row."""
    agents: Sequence[tuple[str, int]] = ()
    """Whose rows they are: an agent and how many rows in turn; nothing where all are the chain's own."""
    marks: Sequence[tuple[int, str, str]] = ()
    """Rows that an outline names, with `p` and a prompt's first words, `x` and what failed, `|` and how a conversation
    was compacted, or what was done to a file (`read`, `write`, `edit`, `delete`) and its path."""
    names: bytes = b""
    """What the records of the rows are called, as `name_key` has it: 4 bytes for each row."""
    beside: bytes = b""
    """Records without a row of their own: 4 bytes of the number of the row that each stands in or before, and 4 of its
    name."""
    calls: bytes = b""
    """What tells a call or a result that is told again: for each row that is one 8 bytes, and 8 of the result that is
    joined to a call; zeros where there is none, or nothing tells it."""


NO_ROWS = RowShape("")
Called = Callable[[str], str]
"""From what a reader calls a record to what the chain calls it."""


def name_key(name: str) -> int:
    """32 bits of what a record is called: whoever finds it looks whether it is the one."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def shape_of(
    rows: DeltaRows,
    called: Called = str,
    kinds: Container[str] | None = None,
    files: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> RowShape:
    """What is kept of a delta's rows; of certain kinds, where only those are told. `files` is what calls touch by their
    ids, where that is known: to take arguments apart takes time."""
    told = rows.rows if kinds is None else [row for row in rows.rows if row.kind in kinds]
    letters = "".join([row.letter for row in told])
    own = [called(row.event.message_id) for row in told]
    names = array("I", [name_key(name) for name in own]).tobytes()
    beside = _beside(rows, set(own), called).tobytes() if kinds is None and rows.beside else b""
    agents = _runs(row.event.agent_id for row in told) if any(row.event.agent_id for row in told) else ()
    marks: list[tuple[int, str, str]] = []
    for number, row in enumerate(told):
        if row.kind in _MARKED:
            marks += _marks(number, row, letters[number], files or {})
    return RowShape(letters, agents, marks, names, beside, _calls(told, called).tobytes())


_MARKED = frozenset({PROMPT, CALL, RESULT, ERROR, COMPACTION})


def _calls(told: Iterable[RowEvents], called: Called) -> array[int]:
    return array(
        "q", [_told_key(one, called) for row in told if row.kind in _CALLED for one in (row.event, row.joined)]
    )


_CALLED = frozenset({CALL, RESULT})


def _told_key(event: Event | None, called: Called) -> int:
    key = told_as(event, called(event.message_id)) if type(event) is ToolCall or type(event) is ToolResult else None
    return 0 if key is None else short_key("\0".join(map(str, key)))


def _beside(rows: DeltaRows, known: set[str], called: Called) -> array[int]:
    found = array("I")
    for name, number in rows.beside:
        if (name := called(name)) and name not in known:
            known.add(name)
            found.extend((number, name_key(name)))
    return found


def _runs(agents: Iterable[str]) -> list[tuple[str, int]]:
    runs: list[tuple[str, int]] = []
    for agent in agents:
        if runs and runs[-1][0] == agent:
            runs[-1] = (agent, runs[-1][1] + 1)
        else:
            runs.append((agent, 1))
    return [] if len(runs) == 1 and not runs[0][0] else runs


def _marks(
    number: int, row: RowEvents, letter: str, files: Mapping[str, Sequence[tuple[str, str]]]
) -> list[tuple[int, str, str]]:
    event = row.event
    if row.kind == PROMPT and isinstance(event, Prompt):
        return [(number, "p", _told(event.content))]
    if isinstance(event, ToolCall):
        failed = [(number, "x", _told(doing(event)))] if letter in FAILURES else []
        known = files.get(event.id) if event.id else None
        return failed + [(number, op, path) for path, op in (touched(event) if known is None else known)]
    if letter in FAILURES:
        return [(number, "x", _told(_failure(event)))]
    return [(number, "|", "")] if row.kind == COMPACTION else []


def _failure(event: Event) -> str:
    if isinstance(event, ToolResult):
        return event.name or event.output
    return event.message if isinstance(event, Error) else event.reason if isinstance(event, Recovery) else ""


def _told(text: str) -> str:
    return excerpt(clean(text), TOLD)


# -- the strip ---------------------------------------------------------------------------------------------------------


def strip_of(letters: str, most: int) -> str:
    """One letter for each call, prompt and compaction, at most so many. A longer one is sampled: of each stretch that
    one letter stands for a compaction is kept before a failure, that before a prompt, and that before anything else."""
    shown = "".join(letter for letter in letters.translate(_SHOWN) if letter in _IN_STRIP)
    if len(shown) <= most:
        return shown
    edges = [place * len(shown) // most for place in range(most + 1)]
    return "".join(_loudest(shown[start:end]) for start, end in pairwise(edges))


def _loudest(stretch: str) -> str:
    if "|" in stretch:
        return "|"
    failed = next((letter for letter in stretch if letter.isupper()), "")
    return failed or ("p" if "p" in stretch else Counter(stretch).most_common(1)[0][0])
