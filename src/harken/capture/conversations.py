"""The conversations of a session: which of them a request goes on with (`events/prints.py` has the rule)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

from harken.events import Error, Event, Metric, System, TranscriptEdit
from harken.events.edits import Transcript, is_entry
from harken.events.prints import (
    ByBeginning,
    CapturedConversation,
    LastEntry,
    Print,
    RequestPlace,
    chain,
    find_conversation,
    shared_links,
)
from harken.events.records import by_record
from harken.formats.session_log import ENTRY, events_of
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.writing import ENTRIES
from harken.formats.transcript.entry import CONVERSATION
from harken.log import Session
from harken.log.sources import agent_of, source_of

from .late import LATE, told_aside

EDIT = "transcript_edit"
_SAID = (ENTRY, EDIT)
REQUEST = "request"
"""The subtype of the notice that a request was about to be sent; a reply names it as its cause."""


class Conversations:
    """The conversations of one session, for whatever clients speak in it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._all: list[CapturedConversation] = []
        self._beginnings: ByBeginning = {}
        self.by_reply: dict[str, CapturedConversation] = {}
        """By the provider's id of a reply or of a conversation."""
        self.waiting: WeakSet[Any] = WeakSet()
        """Exchanges that may still get a reply."""
        self.own: set[str] = set()
        """Records that a capture logged, and of which its conversation knows already."""
        if not session.readonly:
            mark_missing(session)
        for agent_id, info in session.agents.items():
            if info.entries and info.role != "hook":
                self._all.append(self._read(agent_id, self._name(agent_id)))
        session.line_observers.append(self._heard)

    @classmethod
    def of(cls, session: Session) -> Conversations:
        """Those of a session, which are the same for every client."""
        with session.lock:
            if not isinstance(known := session.extensions.get("conversations"), cls):
                known = session.extensions["conversations"] = cls(session)
        return known

    def _read(self, agent_id: str, name: str) -> CapturedConversation:
        found = CapturedConversation(agent_id, name, self._beginnings)
        self._read_into(found)
        return found

    def _lines_of(self, agent_id: str) -> Iterator[LogLine]:
        return (line for line in self._session.records_of([agent_id]) if line.get("agent_id") == agent_id)

    def _read_into(self, found: CapturedConversation) -> None:
        names: dict[str, list[str]] = {}
        late: set[str] = set()
        asked: dict[str, LastEntry] = {}
        events: list[Event] = []
        for line in self._lines_of(found.agent_id):
            message_id = str(line.get("message_id"))
            if line.get("event_type") != Metric.kind:  # figures name their reply, and may come later
                names.setdefault(message_id, []).extend(_names(line))
            if any(about.get("kind") == LATE for about in _about(line)):
                late.add(message_id)
            events += events_of(line)
        transcript = Transcript()
        entries = transcript.entries
        for record in by_record(events):
            known = len(entries.given)
            for event in record:
                transcript.take(event)
            new = (entry.events for entry in entries.given[known:])
            if any(isinstance(event, TranscriptEdit) for event in record):
                for entry in new:
                    found.give(entry)
                found.follow(entries.numbers)
            else:
                found.say(new)
            first = record[0]
            if isinstance(first, System) and first.subtype == REQUEST:
                asked[first.message_id] = found.last_entry
            if first.message_id not in late:
                self.name(found, names.get(first.message_id, ()))
            elif isinstance(first.cause, str) and first.cause in asked:
                self.name_late(found, names[first.message_id], asked[first.cause], first.message_id)

    def _heard(self, lines: Sequence[LogLine]) -> None:
        """Somebody else may log what an agent says and hears, and edit it."""
        others = [line for line in lines if not self._is_own(line) and line.get("event_type") in _SAID]
        by_agent = {one.agent_id: one for one in self._all} if others else {}
        stale: set[str] = set()
        for line in others:
            agent_id = str(line.get("agent_id"))
            if agent_id in stale or self._session.agents[agent_id].role == "hook":
                continue
            if agent_id not in by_agent or line["event_type"] == EDIT or line.get("index"):
                stale.add(agent_id)
            elif any(map(is_entry, events := events_of(line))):
                by_agent[agent_id].say([events])
        for agent_id in stale:
            self._read_anew(agent_id, by_agent.get(agent_id))

    def _is_own(self, line: LogLine) -> bool:
        if (message_id := str(line.get("message_id"))) not in self.own:
            return False
        self.own.discard(message_id)
        return True

    def _read_anew(self, agent_id: str, known: CapturedConversation | None) -> None:
        if known is None:
            self._all.append(self._read(agent_id, self._name(agent_id)))
        else:
            known.forget()
            self._read_into(known)

    def _name(self, agent_id: str) -> str:
        source = source_of(self._session, agent_id)
        return source.removeprefix(CONVERSATION) if source.startswith(CONVERSATION) else ""

    def is_waited_for(self, conversation: CapturedConversation) -> bool:
        """Whether a reply may still come to a request of this conversation."""
        return any(one.conversation is conversation and not one.done for one in tuple(self.waiting))

    def told_apart(self, events: Iterable[Event]) -> list[Event]:
        """The events of a reply, without the name where another reply of the session has it: some servers draw their
        ids from a thousand (Ollama), and whoever reads the log would take the two for one."""
        return [event.replace(api_id="") if event.api_id in self.by_reply else event for event in events]

    def name(self, conversation: CapturedConversation, names: Iterable[str]) -> None:
        """The provider's names for what was said last, or for the whole conversation."""
        for name in filter(None, names):
            conversation.named(name)
            self.by_reply[name] = conversation

    def name_late(
        self, conversation: CapturedConversation, names: Iterable[str], behind: LastEntry, record: str
    ) -> None:
        """The provider's names for a reply that came when its conversation had gone on without it."""
        for name in filter(None, names):
            conversation.named_late(name, behind, record)
            self.by_reply[name] = conversation

    def after(self, name: str) -> RequestPlace | None:
        """The conversation in which a reply of this name stands, cut back to it where it went on without it, or in
        which it stood. One that never stood is followed apart."""
        if (conversation := self.by_reply.get(name)) is None:
            return None
        if (length := conversation.replies.get(name)) is None:
            is_known, is_late = bool(conversation.path_to(name)), name in conversation.late
            return RequestPlace(conversation, 0, altered=True, back_to=name, apart=is_late) if is_known else None
        return RequestPlace(conversation, 0, altered=length < len(conversation.chain), after=length)

    def said_before(self, place: RequestPlace) -> list[list[Event]]:
        """What a request follows that names a reply, read from the log: a conversation knows no words."""
        conversation = place.conversation
        events = [event for line in self._lines_of(conversation.agent_id) for event in events_of(line)]
        given = Transcript(events).entries.given
        entries = (given[number] for number in conversation.numbers_before(place))
        said = [[one for one in entry.events if one.message_id == entry.head.message_id] for entry in entries]
        if record := conversation.late.get(place.back_to):
            said.append([event for one in events if one.message_id == record for event in told_aside(one)])
        return said

    def find(self, prints: Sequence[Print]) -> RequestPlace | None:
        """The conversation that a request goes on with; None where it shares a beginning with none."""
        return find_conversation(self._all, prints, self._beginnings)

    def named(self, name: str, prints: Sequence[Print], model: str, follows: str) -> RequestPlace:
        """The conversation of a name, whatever it shares with the request; a new one where there is none."""
        for conversation in self._all:
            if conversation.name == name:
                if follows:
                    whole = len(conversation.chain)
                    length = conversation.replies.get(follows, whole)
                    return RequestPlace(conversation, 0, altered=length < whole, after=length)
                shared = shared_links(conversation.chain, chain(0, prints))
                return RequestPlace(conversation, shared, altered=shared < len(conversation.chain))
        return RequestPlace(self.begin(name, model), 0, altered=False)

    def begin(self, name: str, model: str) -> CapturedConversation:
        """A new conversation: the session's first is its primary one."""
        session = self._session
        first = session.root is None or not any(info.entries for info in session.agents.values())
        if first and not name:
            source = "primary"
        else:
            source = CONVERSATION + (name or self._free_name())
        return self.add(agent_of(session, source, language_model=model or None), name)

    def add(self, agent_id: str, name: str) -> CapturedConversation:
        """The conversation of an agent that has said nothing yet."""
        found = CapturedConversation(agent_id, name, self._beginnings)
        self._all.append(found)
        return found

    def __iter__(self) -> Iterator[CapturedConversation]:
        return iter(self._all)

    def _free_name(self) -> str:
        taken = {info.name for info in self._session.agents.values()}
        number = len(self._all) + 1
        while str(number) in taken:
            number += 1
        return str(number)


def _names(line: LogLine) -> Iterator[str]:
    """The names that a provider gave to a reply, or to the conversation in which it stands."""
    said = [about.get(key) for about in _about(line) for key in ("response_id", "thread")]
    yield from (name for name in (line.get("api_id"), *said) if isinstance(name, str))


def _about(line: LogLine) -> Iterator[dict[str, Any]]:
    """The metadata of the entries that a line is."""
    given = line.get(ENTRIES)
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict) and isinstance(about := one.get("metadata"), dict):
            yield about


def mark_missing(session: Session) -> None:
    """Requests that were sent and never answered, because the program died: say so, once."""
    waiting: dict[str, str] = {}
    for line in session.records() if session.registry.records else ():
        if line.get("event_type") == "system" and line.get("subtype") == REQUEST:
            waiting[str(line.get("message_id"))] = str(line.get("agent_id"))
        elif isinstance(cause := line.get("cause"), str):
            waiting.pop(cause, None)
    for cause, agent_id in waiting.items():
        error = Error(agent_id=agent_id, message="the reply is missing: the program ended before it came", cause=cause)
        session.append([error], beside=[{"metadata": {"kind": "missing"}}])
