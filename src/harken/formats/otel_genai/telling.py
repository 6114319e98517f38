"""What spans tell, in order: each message once, in the conversation of the agent that it belongs to.

Every call of a model repeats the history before it, and spans of agents repeat and add up what is inside them. A call
goes on with the conversation that its messages begin with (`events/prints.py`); a span with calls inside it says
nothing of its own. Whoever reads a file and whoever captures spans as they end share all this, and differ in what they
do with it: `begin`, `request`, `reply`, `note`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from harken.events import Error, Event, Response, System, ToolCall, ToolResult
from harken.events.prints import CapturedConversation, Print, RequestPlace, find_conversation, prints_in
from harken.formats.kit.jsonl import Record, encode

from .calls import AGENT, CALL, TOOL, ModelSpan, failure_of, read_span, tool_events
from .messages import message_events
from .spans import TraceSpan

SpanKey = tuple[str, str]
MANY = 50_000
"""Messages that are remembered."""


class AgentRun(msgspec.Struct):
    """One run of an agent: the span around its calls."""

    name: str = ""
    agent: ModelSpan | None = None
    conversations: list[CapturedConversation] = []
    tools: list[ModelSpan] = []
    """Tools that ran, of which no request has told yet."""


class MessageTold(NamedTuple):
    """What a message says, and what is compared of it."""

    events: list[Event]
    prints: list[Print]


class Spans:
    """Which spans there are, and what is inside which."""

    def __init__(self) -> None:
        self.parents: dict[SpanKey, SpanKey | None] = {}
        self.about: dict[SpanKey, ModelSpan] = {}
        self.around_calls: set[SpanKey] = set()
        """Spans with calls inside them."""
        self.around_failures: set[SpanKey] = set()

    def add(self, span: TraceSpan) -> ModelSpan | None:
        """Take a span in; what it says of a model, or None."""
        found = read_span(span)
        self.parents[span.key] = span.parent
        if found is not None:
            self.about[span.key] = found
            for key in self.above(span.key):
                if found.kind == CALL:
                    self.around_calls.add(key)
                if span.failed:
                    self.around_failures.add(key)
        return found

    def place(self, spans: Iterable[TraceSpan]) -> list[ModelSpan]:
        """Take spans in, in whatever order they come: first where each of them is, then what it says."""
        spans = list(spans)
        for span in spans:
            self.parents[span.key] = span.parent
        return [found for span in spans if (found := self.add(span)) is not None]

    def above(self, key: SpanKey) -> Iterator[SpanKey]:
        """The spans around a span, the nearest first."""
        seen = {key}
        while (parent := self.parents.get(key)) is not None and parent not in seen:
            seen.add(parent)
            yield parent
            key = parent

    def tells(self, found: ModelSpan) -> bool:
        """Whether it is a request and its reply. An agent's span is one where there are no calls inside it."""
        if found.span.key in self.around_calls:
            return False
        return found.kind == CALL or (found.kind == AGENT and bool(found.messages or found.outputs))


def moments(spans: Sequence[ModelSpan], placed: Spans) -> list[tuple[ModelSpan, bool]]:
    """Each span twice, as it begins and as it ends, in the order of time; of two at the same instant an end is before
    a beginning, and what began earlier is before what began later. A span ends behind what is inside it."""
    ordered = sorted(spans, key=lambda one: (one.start, -one.end))
    last = {one.span.key: number for number, one in enumerate(ordered)}
    for number, one in enumerate(ordered):
        for key in placed.above(one.span.key):
            if key in last and placed.about[key].end == one.end:
                last[key] = max(last[key], number)
    found = []
    for number, one in enumerate(ordered):
        found.append(((one.start, True, number, 0), one, True))
        found.append(((one.end, False, last[one.span.key], -number), one, False))
    found.sort(key=lambda moment: moment[0])
    return [(one, begins) for _, one, begins in found]


class Teller(ABC):
    """Goes through spans and tells what is new in each."""

    def __init__(self) -> None:
        self.spans = Spans()
        self.runs: dict[SpanKey, AgentRun] = {}
        self.named: dict[tuple[str, str], list[CapturedConversation]] = {}
        """Conversations by the name of their agent and the agent above it."""
        self.threads: dict[tuple[str, str], CapturedConversation] = {}
        """Conversations by the id that spans give them and the name of the agent."""
        self.calls: dict[str, str] = {}
        """By the id of a call, the record in which it stands."""
        self.callers: dict[str, CapturedConversation] = {}
        """By the id of a call, the conversation in which it stands."""
        self.latest: dict[str, int] = {}
        """By agent: when the latest of its requests was sent."""
        self.answered: set[tuple[str, str]] = set()
        """Agents, and calls whose result they have heard."""
        self._unanswered: dict[tuple[str, str], list[str]] = {}
        """By agent and tool: calls whose result it has not heard."""
        self._names: dict[str, str] = {}
        self.current: ModelSpan | None = None
        """The span that is telling."""
        self._said: dict[bytes, MessageTold] = {}
        self.begun: set[SpanKey] = set()
        """Requests that were told."""

    def said(self, message: Record) -> MessageTold:
        """What a message says and what of it is compared; a history is sent again and again."""
        key = encode(message)
        if (known := self._said.get(key)) is None:
            events = message_events(message)
            prints = [one for event, one in prints_in(events) if not isinstance(event, System)]
            if len(self._said) > MANY:
                self._said.clear()
            known = self._said[key] = MessageTold(events, prints)
        return known

    # What is done with it

    @abstractmethod
    def begin(self, name: str, parent: str, cause: str, found: ModelSpan) -> CapturedConversation:
        """A conversation that was not there yet; `parent` is the agent above, `cause` the call that made it."""

    @abstractmethod
    def request(self, found: ModelSpan) -> None:
        """A request was sent; `place` says where it belongs."""

    @abstractmethod
    def reply(self, found: ModelSpan) -> None:
        """The reply to it came."""

    @abstractmethod
    def note(self, conversation: CapturedConversation, event: Event, time: int | None) -> None:
        """Something happened that no request or reply tells."""

    # Going through

    def tell(self, spans: Sequence[ModelSpan]) -> None:
        """Tell all of these spans, as they began and ended."""
        for found, begins in moments(spans, self.spans):
            if begins:
                self._begin(found)
            else:
                self.end(found)

    def _begin(self, found: ModelSpan) -> None:
        self.current = found
        if self.spans.tells(found) and found.span.key not in self.begun:
            self.begun.add(found.span.key)
            self._told_tools(found)
            self.current = found
            self.request(found)

    def end(self, found: ModelSpan) -> None:
        """A span ended; where it was not seen to begin it does so now."""
        self.current = found
        if self.spans.tells(found):
            self._begin(found)
            self.reply(found)
        elif found.kind == TOOL:
            self.run_of(found).tools.append(found)
        if found.kind == AGENT:
            self._end_run(found)

    def finish(self) -> None:
        """What is left when nothing more comes: tools that no request told of."""
        for run in list(self.runs.values()):
            self._note_tools(run, run.tools)
            run.tools = []

    def _end_run(self, found: ModelSpan) -> None:
        run = self.run_of(found)
        self._note_tools(run, run.tools)
        run.tools = []
        self.current = found
        inside = found.span.key in self.spans.around_failures
        if found.span.failed and run.conversations and not inside and not self.spans.tells(found):
            self.note(run.conversations[-1], _error(found), found.end or None)

    # Whose a span is

    def run_of(self, found: ModelSpan) -> AgentRun:
        """The run that a span belongs to: that of the nearest agent around it."""
        agent = found if found.kind == AGENT else self._agent_above(found.span.key)
        key = self._run_above(found) if agent is None else agent.span.key
        if (run := self.runs.get(key)) is None:
            name = found.agent_name if agent is None else agent.agent_name
            run = self.runs[key] = AgentRun(name, agent, [], [])
        run.agent = run.agent or agent
        return run

    def _run_above(self, found: ModelSpan) -> SpanKey:
        """The run of which an earlier process has told, where the span of its agent does not come again."""
        return next((key for key in self.spans.above(found.span.key) if key in self.runs), ("", found.agent_name))

    def _agent_above(self, key: SpanKey) -> ModelSpan | None:
        for above in self.spans.above(key):
            if (found := self.spans.about.get(above)) is not None and found.kind == AGENT:
                return found
        return None

    def _above(self, run: AgentRun) -> tuple[str, str]:
        """The agent above a run, the nearest that has spoken, and the call of it that the run is within."""
        cause = ""
        for key in self.spans.above(run.agent.span.key) if run.agent is not None else ():
            found = self.spans.about.get(key)
            if found is not None and found.kind == TOOL and not cause:
                cause = self.calls.get(tool_events(found)[0].id, "")
            outer = self.runs.get(key)
            if outer is not None and outer.conversations:
                return outer.conversations[-1].agent_id, cause
        return "", ""

    def place(self, found: ModelSpan, prints: Sequence[Print]) -> RequestPlace:
        """Where a request belongs: in a conversation of its run, in one of an earlier run of the same agent that its
        messages begin with or that it names, or in a new one."""
        run = self.run_of(found)
        parent, cause = self._above(run)
        kin = self.named.setdefault((run.name, parent), [])
        place = self._known(found, run, kin, prints)
        if place is None:
            place = RequestPlace(self.begin(run.name, parent, cause, found), 0, altered=False)
            kin.append(place.conversation)
        place = self._in_time(found, prints, place)
        if place.conversation in run.conversations:
            run.conversations.remove(place.conversation)
        run.conversations.append(place.conversation)  # the last one is the one that is spoken in
        if found.conversation:
            self.threads[found.conversation, run.name] = place.conversation
        return place

    def _in_time(self, found: ModelSpan, prints: Sequence[Print], place: RequestPlace) -> RequestPlace:
        """The place of a request that arrived behind later ones, which tell what it tells: nothing is taken back."""
        agent_id, latest = place.conversation.agent_id, self.latest.get(place.conversation.agent_id, 0)
        if place.altered and place.shared == len(prints) and found.start < latest:
            return place._replace(altered=False, late=True)
        self.latest[agent_id] = max(found.start, latest)
        return place

    def _known(
        self, found: ModelSpan, run: AgentRun, kin: Sequence[CapturedConversation], prints: Sequence[Print]
    ) -> RequestPlace | None:
        thread = self.threads.get((found.conversation, run.name)) if found.conversation else None
        if found.only_new or not prints:
            known = run.conversations[-1] if run.conversations else None if found.only_new and run.agent else thread
            return None if known is None else RequestPlace(known, 0, altered=False)
        if (place := self._in_named(found, thread, find_conversation(run.conversations, prints), prints)) is not None:
            return place
        if (bare := next((one for one in run.conversations if not one.chain), None)) is not None:
            return RequestPlace(bare, 0, altered=False)  # nothing is known of it that could be compared
        earlier = self._in_named(found, thread, find_conversation(kin, prints), prints)
        if earlier is not None and (not earlier.altered or run.agent is None or earlier.conversation is thread):
            return earlier
        return None if thread is None else RequestPlace(thread, 0, altered=False)

    def _in_named(
        self,
        found: ModelSpan,
        thread: CapturedConversation | None,
        place: RequestPlace | None,
        prints: Sequence[Print],
    ) -> RequestPlace | None:
        """The place in the conversation that a span names, where it fits there as well as elsewhere. One of another
        name may go on under this one once it has a reply, and is not altered by it: people begin in the same words."""
        own = find_conversation([thread], prints) if thread is not None else None
        if own is not None and not own.altered and (place is None or place.altered or own.shared >= place.shared):
            return own
        if place is None or not found.conversation:
            return place
        if not place.altered and self._has_reply(found, place.shared):
            return place
        names = {name for (name, _), one in self.threads.items() if one is place.conversation}
        return own if names and found.conversation not in names else place

    def _has_reply(self, found: ModelSpan, shared: int) -> bool:
        """Whether a model spoke in what a request shares with a conversation. Before that, equal words may be said by
        two people, or be asked twice by a test."""
        for message in found.messages:
            told = self.said(message)
            shared -= len(told.prints)
            if shared < 0:
                return False
            if any(isinstance(event, Response | ToolCall) for event in told.events):
                return True
        return False

    # Tools

    def _told_tools(self, found: ModelSpan) -> None:
        """Tools of which this request tells are told by it; of the others their spans do."""
        run = self.run_of(found)
        if not run.tools:
            return
        events = [event for message in found.messages for event in self.said(message).events]
        names = {event.id: event.name for event in events if isinstance(event, ToolCall)}
        told = {event.id for event in events if isinstance(event, ToolResult)}
        told_names = {names.get(event.id, event.name) for event in events if isinstance(event, ToolResult)}
        waiting = [tool_events(one)[0] for one in run.tools]
        left = [
            one
            for one, call in zip(run.tools, waiting, strict=True)
            if call.id not in told and not (call.name in told_names and call.id not in self.calls)
        ]
        if run.conversations:
            run.tools = []
            self._note_tools(run, left)
        else:
            run.tools = left

    def _note_tools(self, run: AgentRun, tools: Iterable[ModelSpan]) -> None:
        for one in tools:
            self.current = one
            call, result = tool_events(one)
            if not run.conversations and (caller := self.callers.get(call.id)) is not None:
                run.conversations.append(caller)  # of a run that an earlier process told of
            if not run.conversations:
                parent, cause = self._above(run)
                run.conversations.append(self.begin(run.name, parent, cause, one))
            conversation = run.conversations[-1]
            waiting = self._unanswered.get((conversation.agent_id, call.name))
            call_id = call.id or (waiting[0] if waiting else one.span.span_id)
            if call_id not in self.calls:
                self.note(conversation, call.replace(id=call_id), one.start or None)
            if (conversation.agent_id, call_id) not in self.answered:
                self.note(conversation, result.replace(id=call_id), one.end or None)

    def heard(self, conversation: CapturedConversation, events: Iterable[Event], message_id: str) -> None:
        """What was logged, so that no span of a tool tells it again."""
        for event in events:
            if isinstance(event, ToolCall):
                self.calls[event.id] = message_id
                self.callers[event.id] = conversation
                self._names[event.id] = event.name
                self._unanswered.setdefault((conversation.agent_id, event.name), []).append(event.id)
            elif isinstance(event, ToolResult):
                self.answered.add((conversation.agent_id, event.id))
                waiting = self._unanswered.get((conversation.agent_id, self._names.get(event.id, event.name)), [])
                if event.id in waiting:
                    waiting.remove(event.id)


def _error(found: ModelSpan) -> Event:
    return Error(message=failure_of(found))
