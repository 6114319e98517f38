"""Where a session of Copilot CLI is cut into deltas: the rule `cut-1` of copilot-cli. It is frozen; a better one would
get another name.

Cuts fall at newlines, and whether one falls before a line depends on that line and on those since the last cut, on
nothing else. So the place of the last cut is all that has to be remembered of a file that will grow.

The open delta is cut before a line that is exactly one JSON object ended by a newline, when

1. the line is a compaction that took place, and the delta holds something said or heard; so the turn before it is a
   commit of its own, whose context is what the model had before;
2. the line is heard by the session's own agent (a prompt, a picture that goes with one, a notification) and that agent
   has spoken in the delta;
3. the line is that agent's answer, a call in the delta has been answered, and the delta has 8 KiB: a new request;
4. the delta has 256 KiB;

and after a compaction that took place. Rules 2 to 4 wait while a call is open, a sub-agent's among them: from the call
until its result, a compaction, or 256 KiB later.
"""

from __future__ import annotations

from harken.formats.kit.cutting import CAP, LEAST, LineCutter
from harken.formats.kit.jsonl import Record

from .records import ANSWER, ASSET, COMPACTED, NOTIFICATION, PROMPT, RESULT, agent_of, applied, content_of, kind_of

RULE = "cut-1"
HEARD, SAID, CALL, BOUNDARY, ASIDE = "heard", "said", "call", "boundary", "aside"
_ACTS = {PROMPT: HEARD, ASSET: HEARD, NOTIFICATION: HEARD, ANSWER: SAID, COMPACTED: BOUNDARY}


def act_of(record: Record) -> str:
    """What the line does to the conversation of the session's own agent, as far as the rule cares."""
    act = _ACTS.get(kind_of(record), ASIDE)
    if act == ASIDE or agent_of(record):
        return ASIDE
    return act if act != BOUNDARY or applied(content_of(record)) else ASIDE


def calls_in(record: Record) -> list[str]:
    """The calls that an answer makes, whoever gives it."""
    asked = content_of(record).get("toolRequests")
    calls = asked if isinstance(asked, list) else []
    names = (call.get("toolCallId") for call in calls if isinstance(call, dict))
    return [name for name in names if isinstance(name, str)]


class CopilotCutter(LineCutter):
    """The rule as a machine."""

    __slots__ = ()

    def _cuts(self, start: int, act: str) -> bool:
        if act == BOUNDARY:
            return self._heard or self._said
        if self._waits(start):
            return False
        if act == HEARD and self._said:
            return True
        size = start - self.start
        return size >= CAP or (act == SAID and self._answered and size >= LEAST)

    def add(self, start: int, end: int, act: str, record: Record) -> None:
        """Take a record into the open delta."""
        self._take(end, record)
        kind = kind_of(record)
        if kind == RESULT:
            self._open.pop(str(content_of(record).get("toolCallId")), None)
            self._answered, self._last = True, CALL
            return
        if act == BOUNDARY:
            self._open.clear()
        calls = calls_in(record) if kind == ANSWER else ()
        for call in calls:
            self._call(call, start)
        if act != ASIDE:
            self._heard = self._heard or act == HEARD
            self._said = self._said or act == SAID
            self._last = CALL if calls else act

    def _checkpoint(self) -> str:
        return {BOUNDARY: "compaction", CALL: "tool_call"}.get(self._last, "turn_boundary")
