"""Where a file is cut into deltas: the rule `cut-1` of Qwen Code. It is frozen; a better one would get another name.

Cuts fall at newlines, and whether one falls before a line depends on that line and on those since the last cut, on
nothing else. So the place of the last cut is all that has to be remembered of a file that will grow.

The open delta is cut before a line that is exactly one JSON object ended by a newline, when

1. the line is a compaction, and the delta holds something said or heard; so the turn before it is a commit of its own,
   whose context is what the model had before it;
2. the line is heard (a `user` record, or the `at_command` before one) and the model has spoken in the delta;
3. the line is the model's (an `assistant` record, or the report of a request), a call in the delta has been answered,
   and the delta has 8 KiB;
4. the delta has 256 KiB;

and after a compaction. Rules 2 to 4 wait while a call is open: from the call until its result, a compaction, or 256 KiB
later. Rules 3 and 4 wait while one of two reports of a request may still follow the other.
"""

from __future__ import annotations

from harken.formats.kit.cutting import CAP, LEAST, LineCutter
from harken.formats.kit.jsonl import Record

from .records import ASSISTANT, AT_COMMAND, SYSTEM, TELEMETRY, TOOL_RESULT, USER, history_of, parts_of, text
from .usage import event_of, is_response

RULE = "cut-1"

HEARD, SAID, REQUEST, RESULT, BOUNDARY, ASIDE = "heard", "said", "request", "result", "boundary", "aside"
_ACTS = {USER: HEARD, ASSISTANT: SAID, TOOL_RESULT: RESULT}


def act_of(record: Record) -> str:
    """What the record does to the conversation, as far as the rule cares."""
    kind = record.get("type")
    if kind != SYSTEM:
        return _ACTS.get(kind, ASIDE) if isinstance(kind, str) else ASIDE
    subtype = record.get("subtype")
    if subtype == TELEMETRY:
        event = event_of(record)
        # A helper's request is no step of this conversation.
        return REQUEST if is_response(event) and "subagent_id" not in event else ASIDE
    if subtype == AT_COMMAND:
        return HEARD
    return BOUNDARY if history_of(record) is not None else ASIDE


def may_cut(act: str, *, bound: bool) -> bool:
    """Whether a record may begin a delta; `bound` says whether one of two reports of a request may still follow."""
    return not bound or act in (HEARD, RESULT, BOUNDARY)


class QwenCutter(LineCutter):
    """The rule as a machine; `before` is asked where `may_cut`."""

    __slots__ = ()

    def _cuts(self, start: int, act: str) -> bool:
        if act == BOUNDARY:
            return self._heard or self._said
        size = start - self.start
        begins = act == HEARD and self._said
        goes_on = size >= LEAST and self._answered and act in (SAID, REQUEST)
        if not begins and not goes_on and size < CAP:
            return False
        return not self._open or not self._waits(start)

    def add(self, start: int, end: int, act: str, record: Record) -> None:
        """Take a record into the open delta."""
        self._take(end, record)
        if act in (ASIDE, REQUEST):
            return
        self._last = act
        if act == SAID:
            self._said = True
            for part in parts_of(record) or ():
                if isinstance(part, dict) and isinstance(call := part.get("functionCall"), dict):
                    self._call(text(call, "id") or f"@{text(call, 'name')}", start)
        elif act == RESULT:
            self._answer(record)
        elif act == HEARD:
            self._heard = True
            if self._open:
                self._answer(record)
        else:
            self._open.clear()

    def _answer(self, record: Record) -> None:
        for part in parts_of(record) or ():
            if isinstance(part, dict) and isinstance(result := part.get("functionResponse"), dict):
                self._answered = True
                self._open.pop(text(result, "id") or f"@{text(result, 'name')}", None)

    def _checkpoint(self) -> str:
        if self._last == BOUNDARY:
            return "compaction"
        return "tool_call" if self._open or self._last == RESULT else "turn_boundary"
