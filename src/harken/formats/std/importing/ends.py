"""What came of the work of an agent, for those whom a message alone brings it. Whoever called the agent has it in the
result of the call; in a pipeline it is handed on to others, and a call that only launches brings nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from harken.formats.std.document import Json
from harken.formats.std.hearers import Hearers

from .agent_part import SubSession
from .call_events import answered
from .in_order import ToldRecord
from .message_events import end_records, unheard_end
from .pieces import MadeUpNames, text_of

ANSWER = "x_harken_answer"
"""In the line of a message, in the chain of an agent that heard it: the answer that it brought, which is elsewhere."""


class SubSessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A message that says what came of a sub-session."""

    message: Json
    sub: SubSession
    maker: str
    call: Json | None
    """The call that made the sub-session, where there is one."""

    def hearers(self, hearers: Hearers) -> list[str]:
        """Who hears of it by the message alone."""
        return [one for one in hearers.of(self.message) if one != self.sub.agent and not self._is_known_to(one)]

    def _is_known_to(self, agent: str) -> bool:
        """Whether an agent learns of it otherwise: by the result of its call, or, where nothing was answered, by the
        status of the sub-session."""
        if agent != self.maker:
            return False
        return not self.sub.answer or (self.call is not None and _is_brought(self.call, self.sub))

    def line(self) -> Json:
        """The message as it stands in the chain of an agent that heard it."""
        return {**self.message, ANSWER: {"message_id": self.sub.answer, "content": self.sub.words}}


def told_ends(ends: list[SubSessionEnd], hearers: Hearers, names: MadeUpNames, main: str) -> Iterator[ToldRecord]:
    """What is heard of the ends of sub-sessions."""
    for end in ends:
        if missed := hearers.too_many(end.message):
            yield unheard_end(end.message, missed, names, main)
        elif heard := end.hearers(hearers):
            yield from end_records(end.message, end.sub.answer, end.sub.words, heard, names)


def told_line(line: Json, agent: str, names: MadeUpNames) -> list[ToldRecord]:
    """The same from a line of the chain of an agent that heard it."""
    answer = line[ANSWER]
    given = answer if isinstance(answer, dict) else {}
    message = {key: value for key, value in line.items() if key != ANSWER}
    return end_records(message, text_of(given.get("message_id")), text_of(given.get("content")), [agent], names)


def sizes_of(ends: list[SubSessionEnd]) -> Mapping[int, int]:
    """How much each message brings beside its own words."""
    return {id(end.message): len(end.sub.words) for end in ends}


def _is_brought(call: Json, sub: SubSession) -> bool:
    """Whether the result of its call brings the answer of a sub-session."""
    result = answered(call, "", "", "")
    if result is None:
        return False
    is_before = result.time is not None and sub.answered is not None and result.time < sub.answered
    return not is_before or result.output.strip() == sub.words.strip()
