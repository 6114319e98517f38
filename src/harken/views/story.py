"""A session as a document tells it: passages in reading order, which Markdown, HTML and plain text write alike.

A call stands together with its result, wherever that came. A sub-agent's story stands behind the record that asked for
it; in a session log, where agents speak with each other, all stand in the order of time. What is no conversation is
counted, not told.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from harken.events import (
    AgentCreated,
    AgentTerminated,
    Error,
    Event,
    Metric,
    Output,
    PieceOfText,
    Prompt,
    Recovery,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.events.base import excerpt, split_parts
from harken.events.edits import COMPACTIONS, INSTRUCTIONS, SUMMARIES
from harken.events.tools import tool_and_deed

from .calls import SHORT, arguments
from .passages import AgentBegins, AgentEnds, Aside, Passage, Remark, Speech, Step, SummedUp

USER, ASSISTANT, TASK = "User", "Assistant", "Task"
NAME = 80
"""Characters that are told of a name; whoever wrote the file may have made one as long as he liked."""
_RESERVED = frozenset({"user", "assistant", "task"})


class SessionStory:
    """The passages of a session. `left_out` is whole when the last passage has been taken."""

    def __init__(self, events: Iterable[Event], hold: Callable[[Iterable[Event]], Sequence[Event]] = list) -> None:
        """`hold` keeps the events; beside them no more than their places is remembered."""
        self.created: dict[str, AgentCreated] = {}
        """The agents, in the order in which they were made."""
        self.stories: dict[str, array[int]] = {}
        """The places of each agent's events."""
        self.calls: set[str] = set()
        """The records that have calls in them."""
        self._results: dict[tuple[str, str], deque[int]] = {}
        self._said: dict[str, int] = {}
        self._joined: set[int] = set()
        self._nested = False
        self.told = 0
        """How many events have been told by now."""
        self.left_out: Counter[str] = Counter()
        """What is in the session and in no passage, by what it is."""
        self.events = hold(self._noted(events))

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        for place, event in enumerate(events):
            self.stories.setdefault(event.agent_id, array("Q")).append(place)
            match event:
                case AgentCreated():
                    self.created[event.agent_id] = event
                case ToolCall():
                    self.calls.add(event.message_id)
                case ToolResult():
                    self._results.setdefault((event.agent_id, event.id), deque()).append(place)
            yield event

    def passages(self, first: str | None) -> Iterator[Passage]:
        """The session in reading order. `first` is the agent of the session itself; where there is one, each
        sub-agent's story stands where it was asked for, else all stand in the order of time."""
        self._nested = first is not None
        if first is None:
            for place, event in enumerate(self.events):
                yield from self._passages(place, event, self.name(event.agent_id), top=False)
            return
        yield from _Nesting(self, first).passages()

    def tell(self, place: int, event: Event, *, top: bool) -> Iterator[Passage]:
        """What an event has to say, in the story of its agent; `top` where that is the session's own."""
        return self._passages(place, event, ASSISTANT if top else self.name(event.agent_id), top=top)

    def name(self, agent: str) -> str:
        """What an agent is called."""
        created = self.created.get(agent)
        return shown_name(agent, created.name if created else "")

    def _passages(self, place: int, event: Event, who: str, *, top: bool) -> Iterator[Passage]:
        self.told += 1
        match event:
            case Prompt():
                yield from self._prompt(event, who, top=top)
            case Response() | PieceOfText():
                if event.content.strip():
                    self._said[event.message_id] = place
                    yield Speech(who=who, time=event.time, parts=(event.content,))
            case Thinking():
                if event.content.strip():
                    yield Aside(title="Reasoning", who=who, time=event.time, parts=(event.content,))
                else:
                    self.left_out["sealed reasoning"] += 1
            case ToolCall():
                yield self._step(event, who)
            case ToolResult():
                if place not in self._joined:
                    what = excerpt(event.name or event.id, NAME)
                    title = f"{'Failed result' if event.is_error else 'Result'} {what}".rstrip()
                    parts = tuple(split_parts(event.output, event.images))
                    yield Aside(title=title, who=who, time=event.time, parts=parts)
            case System():
                yield from self._system(event, who)
            case _:
                yield from self._other(event)

    def _prompt(self, event: Prompt, who: str, *, top: bool) -> Iterator[Passage]:
        parts = tuple(split_parts(event.content, event.images))
        if not any(not isinstance(part, str) or part.strip() for part in parts):
            return
        if event.origin in SUMMARIES:
            yield SummedUp(text=event.content, time=event.time)
        elif self._is_told(event):
            yield Remark(text=f"{who} heard it", time=event.time)
        elif event.source != "injected":
            yield Speech(who=_speaker(event, who, top=top), time=event.time, parts=parts, is_user=True)
        elif event.origin in ("agent", "peer") or event.substance is not None:
            yield Speech(who=f"{TASK} for {who}", time=event.time, parts=parts, is_user=True)
        elif len(parts) == 1 and len(event.content) <= SHORT and "\n" not in event.content.strip():
            yield Remark(text=f"{in_words(event.origin) or 'injected'}: {event.content.strip()}", time=event.time)
        else:
            yield Aside(title=f"Injected: {in_words(event.origin) or 'text'}", who=who, time=event.time, parts=parts)

    def _is_told(self, event: Prompt) -> bool:
        """Whether it delivers words that were told already, as they were said."""
        place = self._said.get(event.substance or "")
        before = self.events[place] if place is not None else None
        said = before.content if isinstance(before, Response | PieceOfText) else ""
        # Delivery puts the speaker before the words; a name has at most 80 characters (`events.base.is_name`).
        return bool(said) and event.content.endswith(said) and len(event.content) - len(said) <= 90

    def _step(self, event: ToolCall, who: str) -> Step:
        waiting = self._results.get((event.agent_id, event.id)) if event.id else None
        place = waiting.popleft() if waiting else None
        found = None if place is None else self.events[place]
        result = found if isinstance(found, ToolResult) else None
        if place is not None:
            self._joined.add(place)
        tool, what = tool_and_deed(event)
        return Step(
            who=who,
            time=event.time,
            tool=excerpt(tool, NAME),
            what=what,
            arguments=arguments(event.input),
            answered=result is not None,
            failed=result is not None and result.is_error,
            parts=tuple(split_parts(result.output, result.images)) if result else (),
        )

    def _system(self, event: System, who: str) -> Iterator[Passage]:
        if event.subtype in COMPACTIONS:
            yield SummedUp(text=event.message, time=event.time)
        elif event.subtype == INSTRUCTIONS:
            yield Aside(title="Instructions", who=who, time=event.time, parts=(event.message,))
        elif not event.message.strip():
            self.left_out["notices of the runtime"] += 1
        elif len(event.message) <= SHORT and "\n" not in event.message.strip():
            yield Remark(text=f"{in_words(event.subtype) or 'system'}: {event.message.strip()}", time=event.time)
        else:
            yield Aside(title=f"Notice: {in_words(event.subtype)}", who=who, time=event.time, parts=(event.message,))

    def _other(self, event: Event) -> Iterator[Passage]:
        match event:
            case Error():
                yield Remark(text=f"error: {event.message}", time=event.time, alert=True)
            case TranscriptEdit(action="compact"):
                yield SummedUp(text=event.content, time=event.time)
            case TranscriptEdit():
                yield Remark(text=happened(event, self.name(event.agent_id)), time=event.time)
            case Recovery():
                yield Remark(text=f"the log was torn here: {event.reason}", time=event.time, alert=True)
            case AgentCreated():
                if not self._nested:
                    yield Remark(text=happened(event, self.name(event.agent_id)), time=event.time)
            case AgentTerminated():
                yield Remark(text=happened(event, self.name(event.agent_id)), time=event.time)
            case Output() if event.why:
                yield Remark(text=f"a record that could not be read: {event.why}", time=event.time, alert=True)
            case Output():
                self.left_out["records that are no conversation"] += 1
            case Metric():
                self.left_out["reports of usage"] += 1
            case _:
                self.left_out[event.kind] += 1


class _Nesting:
    """The order of a session whose sub-agents' stories stand where they were asked for."""

    def __init__(self, session: SessionStory, first: str) -> None:
        self._session = session
        self._asked: dict[str, list[AgentCreated]] = {}
        self._unplaced: deque[AgentCreated] = deque()
        for one in (one for one in session.created.values() if one.agent_id != first):
            cause = next((cause for cause in one.causes() if cause in session.calls), None)
            if cause is not None:
                self._asked.setdefault(cause, []).append(one)
            elif one.time is not None:
                self._unplaced.append(one)  # nobody wrote down who asked for it, but when
        self._first = first
        self._told = {first}

    def passages(self) -> Iterator[Passage]:
        """One story after the other, each inside the one that asked for it; in no more than one place."""
        yield from self._nested(self._first, top=True)
        for agent in list(self._session.stories):
            if agent not in self._told:
                self._told.add(agent)
                yield from self._nested(agent, top=False)

    def _nested(self, first: str, *, top: bool) -> Iterator[Passage]:
        # A stack of its own: how deep agents ask for agents is up to whoever wrote the file.
        stack = [(first, self._story(first, top=top))]
        if not top:
            yield self._begin(first)
        while stack:
            agent, story = stack[-1]
            found = next(story, None)
            if found is None:
                stack.pop()
                if stack or not top:
                    yield AgentEnds(name=self._session.name(agent))
            elif isinstance(found, str):
                yield self._begin(found)
                stack.append((found, self._story(found, top=False)))
            else:
                yield found

    def _begin(self, agent: str) -> AgentBegins:
        times = (event.time for _, event in self._events(agent))
        time = next((time for time in times if time is not None), None)
        return AgentBegins(name=self._session.name(agent), time=time)

    def _story(self, agent: str, *, top: bool) -> Iterator[Passage | str]:
        """The passages of one agent; where another's story belongs, its id."""
        last = ""
        for place, event in self._events(agent):
            if event.message_id != last:
                yield from self._take(self._asked.pop(last, ()))
                last = event.message_id
            while top and self._unplaced and (self._unplaced[0].time or 0) < (event.time or 0):
                yield from self._take([self._unplaced.popleft()])
            yield from self._session.tell(place, event, top=top)
        yield from self._take(self._asked.pop(last, ()))

    def _events(self, agent: str) -> Iterator[tuple[int, Event]]:
        return ((place, self._session.events[place]) for place in self._session.stories.get(agent, ()))

    def _take(self, agents: Iterable[AgentCreated]) -> Iterator[str]:
        for one in agents:
            if one.agent_id not in self._told:
                self._told.add(one.agent_id)
                yield one.agent_id


def _speaker(event: Prompt, who: str, *, top: bool) -> str:
    speaker = event.hook or USER
    return speaker if top or who == ASSISTANT else f"{speaker} to {who}"


def shown_name(agent: str, name: str) -> str:
    """What an agent is called, by its id and the name that it was given."""
    name = excerpt(name or agent, NAME) or ASSISTANT
    # An agent may be called like those that have no name; then it is said that it is one.
    return f"agent {name}" if name.strip().split(" ")[0].casefold() in _RESERVED and agent else name


def happened(event: AgentCreated | AgentTerminated | TranscriptEdit, who: str) -> str:
    """What became of an agent or of its transcript, in a sentence."""
    if isinstance(event, AgentCreated):
        return f"{who} was created"
    if isinstance(event, AgentTerminated):
        return f"{who} was terminated"
    if event.action == "restore":
        return f"{who}'s transcript has again what had been cut from it"
    if event.action == "place":
        return f"{who}'s transcript has what arrived late at its place, behind {event.n or 0} entries"
    kept = "all" if event.n is None else f"the first {event.n}"
    return f"{who}'s transcript was cut: {kept} entries"


def in_words(name: str) -> str:
    """What a runtime calls a kind of text, for people."""
    return excerpt(name.replace("_", " ").replace("attachment:", ""), NAME)
