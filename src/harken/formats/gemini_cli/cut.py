"""Where a session file is cut into deltas: the rule `cut-1` of gemini-cli. It is frozen; a better one would get another
name.

Cuts fall at newlines, and whether one falls before a line depends on that line and on those since the last cut, on
nothing else. The open delta is cut before a line that is exactly one JSON object ended by a newline, when

1. the line is a header or a compaction's list, and the delta holds a message;
2. the line is a prompt, and the model has spoken in the delta;
3. the line is the model's, the delta holds a result, and has 8 KiB;
4. the line is a prompt or the model's, and the delta has 256 KiB;

and after a compaction's list. A line that repeats the message before it never cuts. Rules 2 to 4 wait while a call is
open: from the call until its result, a header, a compaction, or 256 KiB later.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.formats.kit.cutting import CAP, LEAST, LineCutter
from harken.formats.kit.jsonl import Record

from .messages import call_id, calls_of, provider_id
from .read import BOUNDARY, NOTE, PROMPT, RESULT, SAID
from .records import HEADER, text_of

RULE = "cut-1"


class MessageCutter(LineCutter):
    """The rule as a machine; a line that repeats the message before it is asked about as `ASIDE`. What was heard or
    said is a message."""

    __slots__ = ()

    def _cuts(self, start: int, act: str) -> bool:
        if act in (HEADER, BOUNDARY):
            return self._heard
        if act not in (PROMPT, SAID) or (self._open and self._waits(start)):
            return False
        if act == PROMPT and self._said:
            return True
        size = start - self.start
        return size >= CAP or (size >= LEAST and self._answered and act == SAID)

    def add(self, start: int, end: int, act: str, record: Record) -> None:
        """Take a record into the open delta."""
        if act == SAID:
            self.put(start, end, act, _stamp(record, act), calls=_calls(record))
        elif act == RESULT:
            self.put(start, end, act, _stamp(record, act), answers=_answers(record))
        else:
            self.put(start, end, act, _stamp(record, act))

    def put(
        self,
        start: int,
        end: int,
        act: str,
        stamp: str,
        calls: Iterable[tuple[str, bool]] = (),
        answers: Iterable[str] = (),
    ) -> None:
        """Take a record into the open delta, with the calls it makes (and whether each is answered) or answers."""
        self.end = end
        self._records += 1
        if stamp:
            self._times.append(stamp)
        if act == SAID:
            self._last, self._said, self._heard = act, True, True
            for call, answered in calls:
                if answered:
                    self._open.pop(call, None)
                    self._answered = True
                else:
                    self._open.setdefault(call, start)
        elif act == RESULT:
            self._last, self._answered, self._heard = act, True, True
            for call in answers:
                self._open.pop(call, None)
        elif act in (PROMPT, NOTE):
            self._last, self._heard = act, True
        elif act in (HEADER, BOUNDARY):
            self._last = act
            self._open.clear()

    def touch(self, end: int, stamp: bytes) -> None:
        """Take a line that tells nothing but a time."""
        self.end = end
        self._records += 1
        self._times.append(stamp.decode())

    def _checkpoint(self) -> str:
        if self._last == BOUNDARY:
            return "compaction"
        return "tool_call" if self._last == RESULT or (self._last == SAID and self._open) else "turn_boundary"


def _stamp(record: Record, act: str) -> str:
    """The time that a line names: a message's, a header's, or that of a change."""
    if act in (PROMPT, RESULT, SAID, NOTE):
        return text_of(record.get("timestamp"))
    if act == HEADER:
        return text_of(record.get("startTime"))
    change = record.get("$set")
    return text_of(change.get("lastUpdated")) if isinstance(change, dict) else ""


def _calls(message: Record) -> Iterable[tuple[str, bool]]:
    """The calls of a message, each with whether its result stands beside it."""
    for place, call in enumerate(calls_of(message)):
        yield call_id(message, call, place), call.get("result") not in (None, "", [])
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        asked = part.get("functionCall") if isinstance(part, dict) else None
        name = provider_id(asked) if isinstance(asked, dict) else ""
        if name and not any(call_id(message, one, at) == name for at, one in enumerate(calls_of(message))):
            yield name, False


def _answers(message: Record) -> Iterable[str]:
    """The calls that a message answers."""
    for part in message["content"]:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(answer, dict):
            yield provider_id(answer)
