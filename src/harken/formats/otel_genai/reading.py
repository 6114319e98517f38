"""Spans as events: what `otel-genai-v1` reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harken.events import AgentCreated, Error, Event, Output, Response, System
from harken.events.edits import is_entry, transcript
from harken.events.prints import CapturedConversation, print_of
from harken.events.session import TranscriptEdit
from harken.formats.kit.jsonl import encode

from .calls import ModelSpan, failure_of, output_events
from .spans import SpanDocument, TraceSpan, read_documents
from .telling import Teller
from .usage import usage_of


def read(data: bytes) -> list[Event]:
    """The events in the bytes; agents are numbered on from document to document."""
    events: list[Event] = []
    agents = records = 0
    for document in read_documents(data):
        told = _SpanReader(agents, records)
        events += told.run(document)
        agents, records = told.agents, told.records
    return events


def read_conversation(data: bytes) -> list[Event]:
    """What the first agent of the file has before it: its transcript after every edit."""
    events = read(data)
    main = next((event.agent_id for event in events if isinstance(event, AgentCreated)), "")
    return [event for entry in transcript(event for event in events if event.agent_id == main) for event in entry]


def spans_by_agent(data: bytes) -> dict[str, list[TraceSpan]]:
    """The spans that tell of each agent, in the order in which the agents began."""
    found: dict[str, list[TraceSpan]] = {}
    agents = 0
    for document in read_documents(data):
        told = _SpanReader(agents, 0)
        told.run(document)
        agents = told.agents
        found |= told.tellers()
    return found


def count_places(data: bytes) -> int:
    """How many records there are that no span names."""
    return len({event.message_id for event in read(data) if event.message_id.startswith("@")})


class _SpanReader(Teller):
    """Makes events of spans."""

    def __init__(self, agents: int, records: int) -> None:
        super().__init__()
        self.agents = agents
        self.records = records
        self.events: list[Event] = []
        self._open: dict[tuple[str, str], CapturedConversation] = {}
        self._named: dict[str, int] = {}
        self._replies: set[str] = set()
        """The ids of the replies that were told."""
        self._tellers: dict[str, dict[tuple[str, str], TraceSpan]] = {}
        """By agent: the spans that tell of it, and its own."""

    def run(self, document: SpanDocument) -> list[Event]:
        self.tell(self.spans.place(document.spans))
        self.finish()
        self.current = None
        for output in document.unread:
            self._record([output], "", None)
        return self.events

    def _record(self, events: Sequence[Event], agent_id: str, time: int | None, api_id: str = "") -> str:
        """One more record, named after the span that tells it; one without a span by its place."""
        if span := self.current.span.span_id if self.current is not None else "":
            number = self._named[span] = self._named.get(span, 0) + 1
            message_id = f"{span}.{number}"
        else:
            message_id = f"@{self.records}"
            self.records += 1
        if agent_id:
            self._note_teller(agent_id)
        for index, event in enumerate(events):
            own = {"message_id": message_id, "agent_id": agent_id, "time": time, "index": index}
            self.events.append(event.replace(**own, api_id=event.api_id or api_id))
        return message_id

    def _say(
        self, conversation: CapturedConversation, events: Sequence[Event], time: int | None, api_id: str = ""
    ) -> str:
        if not events:
            return ""
        message_id = self._record(events, conversation.agent_id, time, api_id)
        if any(map(is_entry, events)):
            conversation.say([events])
        self.heard(conversation, events, message_id)
        return message_id

    def _note_teller(self, agent_id: str) -> None:
        """What is being told is told by the present span, within that of its agent."""
        if (found := self.current) is not None:
            agent = self.run_of(found).agent
            spans = [found.span] if agent is None else [agent.span, found.span]
            self._tellers.setdefault(agent_id, {}).update({one.key: one for one in spans})

    def tellers(self) -> dict[str, list[TraceSpan]]:
        """By agent, the spans that tell of it."""
        return {agent_id: list(spans.values()) for agent_id, spans in self._tellers.items()}

    def begin(self, name: str, parent: str, cause: str, found: ModelSpan) -> CapturedConversation:
        self.agents += 1
        agent_id = f"agent_{self.agents:03d}"
        attributes = {"gen_ai.agent.id": found.agent_id, "gen_ai.conversation.id": found.conversation}
        told = {key: value for key, value in attributes.items() if value}
        created = AgentCreated(
            name=name,
            language_model=found.asked or found.model,
            role="child" if parent else "root",
            parent=parent,
            cause=cause or None,
            attributes=encode(told) if told else b"",
        )
        self._record([created], agent_id, found.start or None)
        return CapturedConversation(agent_id, name)

    def request(self, found: ModelSpan) -> None:
        said = [self.said(message) for message in found.messages]
        place = self.place(found, [one for own in said for one in own.prints])
        conversation, time = place.conversation, found.start or None
        shared, cut = conversation.cut_back(place, [one.prints for one in said], lambda at: said[at].events)
        if cut is not None:
            self._record([TranscriptEdit(action="truncate", n=cut)], conversation.agent_id, time)
        self._instruct(
            found, (System(subtype="instructions", message=text) for text in found.instructions), conversation
        )
        instructed = 0  # instructions stand where the request has them; those among what is shared, before what follows
        for at, again in conversation.rest([one.prints for one in said], shared):
            self._instruct(found, (event for own in said[instructed : at + 1] for event in own.events), conversation)
            instructed = at + 1
            if again is not None:
                edit = TranscriptEdit(action="restore", start=again.start, n=again.stop)
                self._record([edit], conversation.agent_id, time)
                continue
            rest = [event for event in said[at].events if not isinstance(event, System)]
            if said[at].prints or found.only_new or _is_odd(rest):
                self._say(conversation, rest, time)
        self._instruct(found, (event for own in said[instructed:] for event in own.events), conversation)
        self._open[found.span.key] = conversation

    def _instruct(self, found: ModelSpan, events: Iterable[Event], conversation: CapturedConversation) -> None:
        """Say the instructions among these that the conversation was not given before."""
        for event in events:
            if isinstance(event, System) and (print_of(event) not in conversation.instructions or found.only_new):
                self._say(conversation, [event], found.start or None)

    def reply(self, found: ModelSpan) -> None:
        conversation, time = self._open.pop(found.span.key), found.end or None
        events = output_events(found)
        usage = usage_of(found)
        # Some servers draw their ids from a thousand (Ollama): then the id is the first reply's. A trace of ours may
        # tell one reply in several spans.
        name = "" if found.response_id in self._replies and not found.only_new else found.response_id
        self._replies.add(name)
        message_id = self._say(conversation, events, time, name)
        if usage is not None:
            self._record([usage.replace(cause=message_id or None)], conversation.agent_id, time)
        if found.span.failed:
            self._record([Error(message=failure_of(found))], conversation.agent_id, time)

    def note(self, conversation: CapturedConversation, event: Event, time: int | None) -> None:
        self._say(conversation, [event], time)


def _is_odd(events: Sequence[Event]) -> bool:
    """Whether a message that cannot be compared holds something that nobody could read; a model's own comes with its
    reply."""
    return any(isinstance(event, Output) for event in events) and not any(isinstance(one, Response) for one in events)
