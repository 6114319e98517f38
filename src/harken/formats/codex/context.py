"""The conversation as it stands: what Codex rebuilds from a rollout when it resumes it.

Three things change what was said before: a `compacted` line with a `replacement_history` replaces it, one without
(old files) keeps only the user's messages and the summary, and `thread_rolled_back` takes the last turns away. A
replacement that lies in a turn which was taken away never happened.

`context` keeps the verbatim lines that are still in force, and is the identity where nothing of the kind occurred.

Codex itself reads a rollout twice, and so do we. Backwards first (`_Survey`), since only from the end can be told which
turns a rollback took away: `num_turns` counts turns that stand *before* the rollback, and a replacement within one of
them has to be passed over in favour of an older one. Then forwards from the replacement that stands (`_Replay`), since
an old compaction and a rollback need the items that came before them. Checked against Codex 0.166.0.
"""

from __future__ import annotations

from typing import NamedTuple

from harken.formats.kit.jsonl import Record
from harken.formats.kit.openai import joined_text, parts_of

from .classify import SUMMARY_OPENING, begins_turn, is_contextual, is_contextual_developer
from .records import (
    BETWEEN_AGENTS,
    COMPACTED,
    EVENT,
    ITEM,
    SESSION_META,
    TURN_CONTEXT,
    RolloutLine,
    iter_lines,
    kind_of,
)
from .truncate import approximate_tokens, truncate_parts

SUMMARY_BUDGET = 20_000
"""Tokens (four bytes each) of the user's messages that an old compaction keeps, the newest first."""

SUMMARY_MESSAGES = 2_000
"""And no more than so many of them, which empty ones would otherwise not be."""


class HistoryItem(NamedTuple):
    """An item of the conversation and the line it came from."""

    line: int
    item: Record
    replaced: bool = False
    """Whether it came out of a `replacement_history`."""
    tokens: int = -1
    """How long it is, where an old summary quotes it and it had to be counted."""


class Conversation(NamedTuple):
    """What is left of the file: the items, and the numbers of the lines that are still in force."""

    entries: list[HistoryItem]
    lines: list[int]
    model: str
    """The model of the newest turn that still stands."""


class _Segment:
    """A turn, as the backward pass collects it: from its end up to the mark at which it began.

    Marks are missing in old files and where a turn was broken off, so a segment may hold several turns; a rollback
    then takes them away together, as Codex does.
    """

    def __init__(self) -> None:
        self.turn = ""
        self.counts = False
        self.model = ""
        self.base: int | None = None
        self.compactions: list[int] = []


class _Survey:
    """The backward pass: which replacement is the newest that still stands, and which were taken away."""

    def __init__(self, lines: list[RolloutLine]) -> None:
        self.base: int | None = None
        self.gone: set[int] = set()
        self.model = ""
        self._pending = 0
        self._open: _Segment | None = None
        for number in range(len(lines) - 1, -1, -1):
            if (record := lines[number].record) is not None:
                self._look(number, *kind_of(record))
        self._close()

    def _segment(self) -> _Segment:
        if self._open is None:
            self._open = _Segment()
        return self._open

    def _look(self, number: int, kind: str, payload: Record) -> None:
        if kind == ITEM:
            segment = self._segment()
            segment.counts = segment.counts or begins_turn(payload)
        elif kind == COMPACTED:
            segment = self._segment()
            if isinstance(payload.get("replacement_history"), list):
                segment.compactions.append(number)
                segment.base = number if segment.base is None else segment.base
        elif kind == TURN_CONTEXT:
            segment = self._segment()
            turn = _turn(payload)
            segment.turn = segment.turn or turn
            if _compatible(segment.turn, turn):
                segment.model = str(payload.get("model") or "")
        elif kind == BETWEEN_AGENTS:
            self._segment().counts = True
        elif kind == EVENT:
            self._look_event(payload)

    def _look_event(self, payload: Record) -> None:
        name = payload.get("type")
        if name == "user_message":
            self._segment().counts = True
        elif name in ("task_complete", "turn_complete"):
            self._segment().turn = self._segment().turn or _turn(payload)
        elif name == "turn_aborted":
            # Without an id and with nothing after it, it is about no turn that could be taken away.
            if self._open is not None or _turn(payload):
                self._segment().turn = self._segment().turn or _turn(payload)
        elif name == "thread_rolled_back":
            self._pending += _turns(payload)
        elif name in ("task_started", "turn_started"):
            self._start(_turn(payload))

    def _start(self, turn: str) -> None:
        # The mark of another turn than the segment's belongs to a turn that never ended: it does not close this one.
        if self._open is not None and _compatible(self._open.turn, turn):
            self._close()

    def _close(self) -> None:
        segment, self._open = self._open, None
        if segment is None:
            return
        if self._pending:
            # Only a turn with a prompt counts; what lies between is taken away along with it.
            self._pending -= segment.counts
            self.gone.update(segment.compactions)
            return
        if self.base is None:
            self.base = segment.base
        if segment.counts and not self.model:
            self.model = segment.model


def _turn(payload: Record) -> str:
    turn = payload.get("turn_id")
    return turn if isinstance(turn, str) else ""


def _turns(payload: Record) -> int:
    count = payload.get("num_turns")
    # Bounded, so that a hostile file cannot make the sum grow without end.
    return min(count, 2**31) if isinstance(count, int) and count > 0 else 0


def _compatible(one: str, other: str) -> bool:
    return not one or not other or one == other


class _Replay:
    """The forward pass: the items one after the other, and which lines they need."""

    def __init__(self, lines: list[RolloutLine], survey: _Survey) -> None:
        self.entries: list[HistoryItem] = []
        self._turns: list[int] = []
        """Which of the entries begin a turn."""
        self.start = self.since = 0 if survey.base is None else survey.base
        """Lines from `since` on are in force unless they are dead; of those before, the kept ones are."""
        self.kept: set[int] = set()
        self.dead: set[int] = set(survey.gone)
        self.entangled = False
        for number in range(self.start, len(lines)):
            if (record := lines[number].record) is not None and number not in survey.gone:
                self._take(number, *kind_of(record))

    def _take(self, number: int, kind: str, payload: Record) -> None:
        if kind == ITEM:
            self._append(HistoryItem(number, payload))
        elif kind == BETWEEN_AGENTS:
            self._append(HistoryItem(number, message_between_agents(payload)))
        elif kind == COMPACTED:
            self._compact(number, payload)
        elif kind == EVENT and payload.get("type") == "thread_rolled_back":
            self._roll_back(number, _turns(payload))

    def _append(self, entry: HistoryItem) -> None:
        if begins_turn(entry.item):
            self._turns.append(len(self.entries))
        self.entries.append(entry)

    def _compact(self, number: int, payload: Record) -> None:
        replacement = payload.get("replacement_history")
        if isinstance(replacement, list):
            entries = [HistoryItem(number, item, True) for item in replacement if isinstance(item, dict)]
        else:
            entries = summarized(self.entries, number, payload)
        self.entries = entries
        # What an old summary quotes was a prompt, whatever it looks like now; a rollback counts it.
        self._turns = [at for at, entry in enumerate(entries) if entry.tokens >= 0 or begins_turn(entry.item)]
        self.since, self.kept = number, {entry.line for entry in entries}

    def _roll_back(self, number: int, turns: int) -> None:
        cut = rollback_cut(self.entries, self._turns, turns)
        # The line from which on everything is taken back, up to and including the rollback itself.
        taken = self.entries[cut] if cut < len(self.entries) else None
        first = number if taken is None else taken.line
        if first < self.since or (first == self.since and taken is not None and taken.replaced):
            # Part of a summary was taken away; no selection of lines says that, so the lines stay as they are.
            self.entangled = True
        elif not self.entangled:
            self.dead.update(range(first, number + 1))
        del self.entries[cut:]
        while self._turns and self._turns[-1] >= cut:
            self._turns.pop()

    def lines(self, count: int, gone: set[int]) -> list[int]:
        """The numbers of the lines that are in force, of a file of so many."""
        if self.entangled:
            return [number for number in range(self.start, count) if number not in gone]
        rest = (number for number in range(self.since, count) if number not in self.dead)
        return sorted({*self.kept, *rest})


def message_between_agents(payload: Record) -> Record:
    """The item that Codex makes of an `inter_agent_communication` line."""
    return {
        "type": "agent_message",
        "author": payload.get("author"),
        "recipient": payload.get("recipient"),
        "content": [{"type": "input_text", "text": payload.get("content")}],
    }


def rollback_cut(entries: list[HistoryItem], starts: list[int], turns: int) -> int:
    """Where the conversation ends when its last turns are taken away, the context written for them included."""
    if not turns or not starts:
        return len(entries)
    cut = starts[0] if turns >= len(starts) else starts[-turns]
    # Never before the first prompt: what Codex wrote ahead of it belongs to the thread, not to a turn.
    while cut > starts[0] and _is_update(entries[cut - 1].item):
        cut -= 1
    return cut


def _is_update(item: Record) -> bool:
    if item.get("type") != "message":
        return False
    if item.get("role") == "developer":
        return is_contextual_developer(item.get("content"))
    return item.get("role") == "user" and is_contextual(item.get("content"))


def summarized(entries: list[HistoryItem], number: int, payload: Record) -> list[HistoryItem]:
    """What an old `compacted` line leaves: the newest user messages as far as the budget goes, then the summary."""
    kept: list[HistoryItem] = []
    left = SUMMARY_BUDGET
    for entry in reversed(entries):
        if left <= 0 or len(kept) >= SUMMARY_MESSAGES:
            break
        # What an older summary quoted already needs no second look, unless it is too long now.
        quoted = entry if 0 <= entry.tokens <= left else _quoted(entry, left)
        if quoted is not None:
            kept.append(quoted)
            left = left - quoted.tokens if quoted.tokens >= 0 else 0
    message = payload.get("message")
    summary = message if isinstance(message, str) and message else "(no summary available)"
    return [*reversed(kept), HistoryItem(number, _user([summary]), True)]


def _quoted(entry: HistoryItem, left: int) -> HistoryItem | None:
    """The entry as a summary quotes it, within what is left of the budget; None where it is not quoted."""
    if not _is_quoted(entry.item):
        return None
    parts = parts_of(entry.item.get("content"))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    tokens = approximate_tokens("".join(texts))
    if tokens > left:
        return HistoryItem(entry.line, _user(truncate_parts(texts, left)), True)
    # A picture is not quoted, but a message that was nothing else keeps its place.
    return HistoryItem(entry.line, _user(texts or [""] * bool(parts)), True, tokens)


def _is_quoted(item: Record) -> bool:
    if item.get("type") != "message" or item.get("role") != "user" or is_contextual(item.get("content")):
        return False
    return not joined_text(item.get("content")).startswith(SUMMARY_OPENING)


def _user(texts: list[str]) -> Record:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


def conversation(lines: list[RolloutLine]) -> Conversation:
    """The conversation of the file as it stands."""
    survey = _Survey(lines)
    replay = _Replay(lines, survey)
    alive = replay.lines(len(lines), survey.gone)
    # Without its first line a file is no rollout: Codex could not resume it, and nobody could tell whose it is.
    meta = next((n for n, line in enumerate(lines) if line.record and kind_of(line.record)[0] == SESSION_META), None)
    if meta is not None and meta not in set(alive):
        alive = sorted([meta, *alive])
    return Conversation(replay.entries, alive, survey.model)


def context(data: bytes) -> bytes:
    """The verbatim lines of the conversation as it stands."""
    lines = list(iter_lines(data))
    alive = conversation(lines).lines
    if len(alive) == len(lines):
        return data
    kept = [data[lines[number].start : lines[number].end] for number in alive]
    # A last line without its newline stays last; nothing may be glued to it.
    return b"".join(kept)
