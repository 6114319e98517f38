"""Where a rollout is cut into deltas: the rule `cut-2` of codex. It is frozen; a better one would get another name.

Cuts fall at newlines, and whether one falls before a line depends on that line and on those since the last cut, on
nothing else. So the place of the last cut is all that has to be remembered of a file that will grow.

The open delta is cut before a line that is exactly one JSON object ended by a newline, when

1. the line begins a turn (`task_started`, `turn_started`) or is `compacted`, and the delta holds something said or
   heard; so the turn before a compaction is a commit of its own, whose context is what the model had before it;
2. the line is heard by the model (a user, developer or system message, or another agent's) and the model has spoken
   in the delta;
3. the line is the model's, a call in the delta has been answered, and the delta has 8 KiB: a new request;
4. the delta has 256 KiB;

and after a `compacted` line. Rules 2 to 4 wait while a call is open: from the call until its output, a turn's
beginning or end, a compaction, or 256 KiB later.
"""

from __future__ import annotations

from harken.formats.kit.cutting import CAP, LEAST, LineCutter
from harken.formats.kit.jsonl import Record
from harken.formats.kit.openai import CALLS, OUTPUTS, SERVED, text_of

from .records import BETWEEN_AGENTS, COMPACTED, EVENT, ITEM

RULE = "cut-2"

TURN_START, TURN_END, HEARD, SAID, CALL, OUTPUT, BOUNDARY, ASIDE = (
    "turn_start",
    "turn_end",
    "heard",
    "said",
    "call",
    "output",
    "boundary",
    "aside",
)

_EVENTS = {
    "task_started": TURN_START,
    "turn_started": TURN_START,
    "task_complete": TURN_END,
    "turn_complete": TURN_END,
    "turn_aborted": TURN_END,
    "user_message": HEARD,
    "agent_message": SAID,
    "agent_reasoning": SAID,
    "agent_reasoning_raw_content": SAID,
}
_SHOWN = {"UserMessage": HEARD, "AgentMessage": SAID, "Reasoning": SAID}
"""What `item_completed` repeats for the screen."""
_ITEMS = (
    dict.fromkeys(CALLS, CALL)
    | dict.fromkeys(OUTPUTS, OUTPUT)
    | dict.fromkeys(SERVED, SAID)
    | {"reasoning": SAID, "agent_message": HEARD}
)
_LINES = {COMPACTED: BOUNDARY, BETWEEN_AGENTS: HEARD}


def act_of(kind: str, payload: Record) -> str:
    """What the line does to the conversation, as far as the rule cares."""
    if kind == ITEM:
        name = payload.get("type")
        if name == "message":
            return SAID if payload.get("role") == "assistant" else HEARD
        return _ITEMS.get(name, ASIDE) if isinstance(name, str) else ASIDE
    if kind == EVENT:
        name = payload.get("type")
        if name == "item_completed" and isinstance(item := payload.get("item"), dict):
            return _SHOWN.get(text_of(item.get("type")), ASIDE)
        return _EVENTS.get(name, ASIDE) if isinstance(name, str) else ASIDE
    return _LINES.get(kind, ASIDE)


class RolloutCutter(LineCutter):
    """The rule as a machine."""

    __slots__ = ()

    def _cuts(self, start: int, act: str) -> bool:
        if act in (TURN_START, BOUNDARY) and (self._heard or self._said):
            return True
        if self._open and act != TURN_START and self._waits(start):
            return False
        if act == HEARD and self._said:
            return True
        size = start - self.start
        return size >= CAP or (size >= LEAST and self._answered and act in (SAID, CALL))

    def add(self, start: int, end: int, act: str, record: Record, payload: Record) -> None:
        """Take a record into the open delta."""
        self._take(end, record)
        if act == ASIDE:
            return
        self._last = act
        if act == CALL:
            self._said = True
            self._call(text_of(payload.get("call_id")) or f"@{start}", start)
        elif act == OUTPUT:
            self._answered = True
            self._open.pop(text_of(payload.get("call_id")), None)
        elif act == SAID:
            self._said = True
        elif act == HEARD:
            self._heard = True
        else:
            self._open.clear()

    def _checkpoint(self) -> str:
        if self._last == BOUNDARY:
            return "compaction"
        return "tool_call" if self._last in (CALL, OUTPUT) else "turn_boundary"
