"""Where a session is cut into deltas: the rule `cut-1` of pi. It is frozen; a better one would get another name.

Cuts fall at newlines, and whether one falls before a line depends on that line and on those since the last cut, on
nothing else. So the place of the last cut is all that has to be remembered of a file that will grow.

The open delta is cut before a line that is exactly one JSON object ended by a newline, when

1. the line is a `compaction` or a `reset`, and the delta holds something said or heard; so the turn before a compaction
   is a commit of its own, whose context is what the model had before it;
2. the line is heard by the model (a `user`, `bashExecution` or extension's message, a `branch_summary`) and the model
   has spoken in the delta;
3. the line is an answer of the model, a call in the delta has been answered, and the delta has 8 KiB: a new request;
4. the delta has 256 KiB;

and after a `compaction` line. Rules 2 to 4 wait while a call is open: from the call until its result, the next answer
(which only comes when all are there, or never will be), a compaction, or 256 KiB later.
"""

from __future__ import annotations

from harken.formats.kit.cutting import CAP, LEAST, LineCutter
from harken.formats.kit.jsonl import Record

from .records import (
    ASSISTANT,
    BRANCH_SUMMARY,
    COMPACTION,
    CUSTOM_MESSAGE,
    EXTENSION,
    FAILED,
    MESSAGE,
    RESET,
    RESULT,
    SHELL,
    SUMMARIES,
    USER,
    text_of,
)

RULE = "cut-1"

HEARD, SAID, CALL, OUTPUT, BOUNDARY, ANEW, ASIDE = "heard", "said", "call", "output", "boundary", "anew", "aside"

_ROLES = {USER: HEARD, SHELL: HEARD, ASSISTANT: SAID, RESULT: OUTPUT} | dict.fromkeys([*EXTENSION, *SUMMARIES], HEARD)
_ENTRIES = {COMPACTION: BOUNDARY, RESET: ANEW, BRANCH_SUMMARY: HEARD, CUSTOM_MESSAGE: HEARD}


def act_of(record: Record) -> str:
    """What the line does to the conversation, as far as the rule cares."""
    kind = record.get("type")
    if kind == MESSAGE:
        message = record.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        return _ROLES.get(role, ASIDE) if isinstance(role, str) else ASIDE
    return _ENTRIES.get(kind, ASIDE) if isinstance(kind, str) else ASIDE


def calls_of(record: Record) -> list[str]:
    """The calls of an answer that wait for a result; those of one that broke off get none."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or not isinstance(message, dict) or message.get("stopReason") in FAILED:
        return []
    return [
        text_of(block.get("id")) for block in content if isinstance(block, dict) and block.get("type") == "toolCall"
    ]


class PiCutter(LineCutter):
    """The rule as a machine."""

    __slots__ = ()

    def _cuts(self, start: int, act: str) -> bool:
        if act in (BOUNDARY, ANEW) and (self._heard or self._said):
            return True
        if self._open and act != SAID and self._waits(start):
            return False
        if act == HEARD and self._said:
            return True
        size = start - self.start
        return size >= CAP or (size >= LEAST and self._answered and act == SAID)

    def add(self, start: int, end: int, act: str, record: Record) -> None:
        """Take a record into the open delta."""
        self._take(end, record)
        if act == ASIDE:
            return
        self._last = act
        if act == SAID:
            self._said = True
            self._open = dict.fromkeys(calls_of(record), start)
            self._last = CALL if self._open else SAID
        elif act == OUTPUT:
            self._answered = True
            self._open.pop(text_of(record["message"].get("toolCallId")), None)
        elif act == HEARD:
            self._heard = True
        else:
            self._open.clear()

    def _checkpoint(self) -> str:
        if self._last == BOUNDARY:
            return "compaction"
        return "tool_call" if self._last in (CALL, OUTPUT) else "turn_boundary"
