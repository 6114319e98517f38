"""Events from a session document, or from the parts of one that an agent's own chain holds.

A document tells of its agents as a session log does: the orchestrator and every participant are created, a `Task` call
makes the agent of its sub-session, that agent is given its task as a prompt, and its output's summary is its answer,
which the result of the call repeats. Where Harken wrote the document (`x_harken_conversation`), the conversation is
told from there and nothing is told twice. What does not fit is told as an `Output` with the reason.

`tokens_used` of a call is no figure here: it is one number for what reading, writing and caching took, which no field
of a metric means, and whoever imports the sub-agent's own session as well would count it twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harken.errors import BadRecord
from harken.events import AgentCreated, Event, Output, PieceOfText, Response, System
from harken.formats.std.document import Json, loads, parse_session
from harken.formats.std.hearers import Hearers
from harken.formats.std.parts import inner, instant, text

from .agent_part import SubSession
from .document_events import COMPLETED, DocumentReading, created
from .ends import ANSWER, told_line
from .in_order import ToldRecord, in_order, side_by_side, with_heard
from .message_events import message_records, sort_messages
from .pieces import MadeUpNames, agent_named, compact, id_of
from .reshaping import in_shape

_OF_MESSAGE = frozenset({"message_type", "from_agent", "to_agent"})
_OF_CHAIN = _OF_MESSAGE | {"sub_session_id", "triggered_by_call_id"}
"""Keys of the objects in an agent's chain, which may lack some of them."""
_OF_DOCUMENT = frozenset({"task_title", "user_prompt", "created_at", "collaboration"})
"""What a document has beside its session id; a sub-session or a message may have such an id, too."""


_TOLD = 5
"""How many of the flaws of a document that is no JSON are told."""


def events_of(data: bytes) -> list[Event]:
    """Everything that the bytes tell: a document, several one behind the other, or the lines of an agent's chain."""
    return [event for _, event in _told(data)]


def main_events(data: bytes) -> list[Event]:
    """What the agent said, heard and did that the document, or the chain, is of; notices and remarks left out."""
    own = (event for reading, event in _told(data) if event.agent_id == reading.main)
    return [_as_said(event) for event in own if _is_conversation(event)]


def _is_conversation(event: Event) -> bool:
    match event:
        case Output():
            return bool(event.why)
        case PieceOfText():
            # What a call or a verdict brought about is told by that; a message that was sent has no other record.
            return event.cause is None and bool(event.content.strip())
        case System():
            return event.subtype != COMPLETED
    return not isinstance(event, AgentCreated)


def _as_said(event: Event) -> Event:
    """A message that the agent sent as words of its own: no other format has a place for it, and whoever goes on has to
    know what it told the others. The words stay as they are, so that they are known again as the same message."""
    if not isinstance(event, PieceOfText):
        return event
    return Response(message_id=event.message_id, agent_id=event.agent_id, time=event.time, content=event.content)


def read_once(data: bytes) -> tuple[list[PartReading], list[Event]]:
    """What there is to read in the bytes, and what it tells."""
    told = _told(data)
    return list({id(reading): reading for reading, _ in told}.values()), [event for _, event in told]


def _told(data: bytes) -> list[tuple[PartReading, Event]]:
    """The events, each with what tells it."""
    try:
        return [(reading, event) for reading in readings(data) for event in reading.events()]
    except RecursionError:
        unread = UnreadPart(bytes(data), "it is nested too deeply", "@0")
        return [(unread, event) for event in unread.events()]


def readings(data: bytes) -> list[PartReading]:
    """What there is to read in the bytes; lines of a chain are one."""
    names = MadeUpNames()
    found: list[PartReading] = []
    chain: list[Json] = []
    for value in values_in(data):
        if isinstance(value, UnreadPart):
            found.append(value)
        elif isinstance(value, dict) and _is_of_chain(value):
            chain.append(value)
        else:
            found += _document(value, names)
    return [*found, ChainReading(chain, names)] if chain else found


def _is_of_chain(value: Json) -> bool:
    is_document = "session_id" in value and value.keys() & _OF_DOCUMENT
    return not is_document and not value.keys().isdisjoint(_OF_CHAIN)


def _is_message(line: Json) -> bool:
    return "sub_session_id" not in line and not line.keys().isdisjoint(_OF_MESSAGE)


def _document(value: Any, names: MadeUpNames) -> list[PartReading]:
    try:
        document, done = in_shape(parse_session(value))
    except BadRecord as problem:
        return [UnreadPart(compact(value), str(problem), names.give("document"))]
    reading = DocumentReading(document.data, names)
    return [reading, UnreadPart(b"", done, names.give("@shape"))] if done else [reading]


# -- which values the bytes hold -------------------------------------------------------------------------------------


def values_in(data: bytes) -> Iterator[Any]:
    """The JSON values in the bytes, one behind the other; an `UnreadPart` in place of what is none. A document that a
    repair makes JSON of is read as that, and what had to be done is told."""
    if not data.strip():
        return
    try:
        yield loads(data)
    except BadRecord as problem:
        from harken.formats.std.repairing.broken_json import mend  # most documents are JSON

        if (mended := mend(bytes(data))) is None:
            yield from _one_by_one(bytes(data), str(problem))
        else:
            yield loads(mended.data)
            done = "; ".join(change.message for change in mended.changes[:_TOLD])
            yield UnreadPart(b"", f"the document is no JSON, and was read as if it were: {done}", "@json")


def _one_by_one(data: bytes, why: str) -> Iterator[Any]:
    """The values up to the first that is none; what follows goes on with the next line that begins an object."""
    try:
        rest = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield UnreadPart(data, why, "@0")
        return
    place, decoder = 0, json.JSONDecoder(parse_constant=_refuse)
    while place < len(rest):
        if rest[place].isspace():
            place += 1
            continue
        try:
            value, place = decoder.raw_decode(rest, place)
        except (ValueError, RecursionError) as problem:
            end = rest.find("\n{", place + 1)
            end = len(rest) if end < 0 else end + 1
            yield UnreadPart(rest[place:end].encode("utf-8", "backslashreplace"), f"no JSON: {problem}", f"@{place}")
            place = end
        else:
            yield value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


class UnreadPart:
    """Bytes that are no document."""

    main = ""

    def __init__(self, raw: bytes, why: str, name: str) -> None:
        self._output = Output(message_id=name, raw=raw, why=why)

    def events(self) -> Iterator[Event]:
        """The bytes, with the reason."""
        yield self._output


# -- the chain of an agent inside a document -------------------------------------------------------------------------


class ChainReading:
    """The sub-sessions of one agent and the messages that it sent or heard, verbatim, one to a line."""

    def __init__(self, lines: list[Json], names: MadeUpNames) -> None:
        self._names = names
        subs = [line for line in lines if not _is_message(line)]
        messages = sort_messages([line for line in lines if _is_message(line) and ANSWER not in line], subs)
        self._ends = [line for line in lines if _is_message(line) and ANSWER in line]
        answers = messages.answers
        self._subs = [SubSession(sub, names, answers.get(id_of(sub.get("sub_session_id")), "")) for sub in subs]
        self._messages = messages.told
        self.main = self._subs[0].agent if self._subs else ""

    @property
    def title(self) -> str:
        """The agent's name where it has one beside its id, else what it was given to do first."""
        first = self._subs[0].data if self._subs else {}
        return text(first, "x_harken_name") or text(inner(first, "task"), "description")

    def events(self) -> Iterator[Event]:
        """What the agent itself said, heard and did."""
        story = side_by_side(
            [
                sub.story(
                    id_of(sub.data.get("triggered_by_call_id")) or None, lambda result: ToldRecord(events=(result,))
                )
                for sub in self._subs
            ]
        )
        hearers = Hearers([self.main], self._messages)
        told = [
            record for message in self._messages for record in message_records(message, self._names, self.main, hearers)
        ]
        told += [record for line in self._ends for record in told_line(line, self.main, self._names)]
        if not any(sub.is_told for sub in self._subs):
            story = with_heard(story, [one for one in told if not self.main or one.events[0].agent_id == self.main])
        begun = self._subs and not any(isinstance(e, AgentCreated) for record in story for e in record.events)
        if begun:
            first = self._subs[0].data
            cause = id_of(first.get("triggered_by_call_id")) or None
            made = created(self.main, inner(first, "agent"), first, "", cause, instant(first, "started_at"))
            story = [ToldRecord(events=(made.replace(role="child"),)), *story]
        return in_order([story])


PartReading = DocumentReading | ChainReading | UnreadPart


def side_chains(data: bytes) -> dict[str, bytes]:
    """The agents inside a document, other than its own: of each its sub-sessions, the messages that repeat their tasks
    and ends (an answer may stand there alone), and those it sent or heard that say something new, or hand it what
    another one did, one JSON object to a line."""
    try:
        found = readings(data)
        return {agent: lines for one in found if isinstance(one, DocumentReading) for agent, lines in _chains(one)}
    except RecursionError:
        return {}


def _chains(reading: DocumentReading) -> Iterator[tuple[str, bytes]]:
    told: dict[str, list[Json]] = {}
    workers = {id(sub.data): sub.agent for sub in reading.subs if not sub.is_told}
    hearers = reading.hearers
    ends = {id(end.message): end for end in reading.ends}
    talking = {sub.agent for sub in reading.subs if sub.is_told}
    for message, sub in reading.repeats:
        line = {key: value for key, value in message.items() if key != ANSWER}
        sides = {agent_named(message, "from_agent"), *hearers.of(message)}
        for agent in sides if sub is None else {workers.get(id(sub), "")}:
            told.setdefault(agent, []).append(line)
        if (end := ends.get(id(message))) is not None:
            for agent in set(end.hearers(hearers)) - talking:
                told.setdefault(agent, []).append(end.line())
    for agent, subs in reading.inside.items():
        lines = [*(sub.data for sub in subs), *told.get(agent, [])]
        yield agent, b"".join(compact(line) + b"\n" for line in lines)
