"""A session as a document tells it: passages in reading order, which Markdown, HTML and plain text write alike.

A call stands together with its result, wherever that came. A sub-agent's story stands behind the record that asked for
it; in a session log, where agents speak with each other, all stand in the order of time. What is no conversation is
counted, not told.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

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
from harken.events.edits import INSTRUCTIONS, SUMMARIES
from harken.events.tools import tool_and_deed

from .calls import SHORT, arguments
from .passages import AgentBegins, AgentEnds, Aside, Passage, Remark, Speech, Step, SummedUp

USER, ASSISTANT, TASK = "User", "Assistant", "Task"
NAME = 80
"""Characters that are told of a name; whoever wrote the file may have made one as long as he liked."""
_RESERVED = frozenset({"user", "assistant", "task"})
_COMPACTIONS = frozenset({"compact_boundary", "microcompact_boundary", "context_truncated", "compact_summary"})


class Transcript:
    """The passages of a session. `left_out` is whole when the last passage has been taken."""

    def __init__(self, events: Sequence[Event], *, first: str | None) -> None:
        """`first` is the agent of the session itself; where there is one, each sub-agent's story stands where it was
        asked for, else all stand in the order of time."""
        self._events = events
        self._first = first
        self._created = {event.agent_id: event for event in events if isinstance(event, AgentCreated)}
        self._results: dict[tuple[str, str], deque[ToolResult]] = {}
        self._said: dict[str, str] = {}
        for event in events:
            if isinstance(event, ToolResult):
                self._results.setdefault((event.agent_id, event.id), deque()).append(event)
        self._joined: set[int] = set()
        self.left_out: Counter[str] = Counter()
        """What is in the session and in no passage, by what it is."""

    def passages(self) -> Iterator[Passage]:
        """The session in reading order."""
        if self._first is None:
            for event in self._events:
                yield from self._passages(event, self.name(event.agent_id), top=False)
            return
        yield from _Nesting(self, self._events, self._first).passages()

    def tell(self, event: Event, *, top: bool) -> Iterator[Passage]:
        """What an event has to say, in the story of its agent; `top` where that is the session's own."""
        return self._passages(event, ASSISTANT if top else self.name(event.agent_id), top=top)

    def name(self, agent: str) -> str:
        """What an agent is called."""
        created = self._created.get(agent)
        name = excerpt((created.name if created else "") or agent, NAME) or ASSISTANT
        # An agent may be called like those that have no name; then it is said that it is one.
        return f"agent {name}" if name.strip().split(" ")[0].casefold() in _RESERVED and agent else name

    def _passages(self, event: Event, who: str, *, top: bool) -> Iterator[Passage]:
        match event:
            case Prompt():
                yield from self._prompt(event, who, top=top)
            case Response() | PieceOfText():
                if event.content.strip():
                    self._said[event.message_id] = event.content
                    yield Speech(who=who, time=event.time, parts=(event.content,))
            case Thinking():
                if event.content.strip():
                    yield Aside(title="Reasoning", who=who, time=event.time, parts=(event.content,))
                else:
                    self.left_out["sealed reasoning"] += 1
            case ToolCall():
                yield self._step(event, who)
            case ToolResult():
                if id(event) not in self._joined:
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
            yield Remark(text=f"{_words(event.origin) or 'injected'}: {event.content.strip()}", time=event.time)
        else:
            yield Aside(title=f"Injected: {_words(event.origin) or 'text'}", who=who, time=event.time, parts=parts)

    def _is_told(self, event: Prompt) -> bool:
        """Whether it delivers words that were told already, as they were said."""
        said = self._said.get(event.substance or "", "")
        # Delivery puts the speaker before the words; a name has at most 80 characters (`events.base.is_name`).
        return bool(said) and event.content.endswith(said) and len(event.content) - len(said) <= 90

    def _step(self, event: ToolCall, who: str) -> Step:
        waiting = self._results.get((event.agent_id, event.id)) if event.id else None
        result = waiting.popleft() if waiting else None
        if result is not None:
            self._joined.add(id(result))
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
        if event.subtype in _COMPACTIONS:
            yield SummedUp(text=event.message, time=event.time)
        elif event.subtype == INSTRUCTIONS:
            yield Aside(title="Instructions", who=who, time=event.time, parts=(event.message,))
        elif not event.message.strip():
            self.left_out["notices of the runtime"] += 1
        elif len(event.message) <= SHORT and "\n" not in event.message.strip():
            yield Remark(text=f"{_words(event.subtype) or 'system'}: {event.message.strip()}", time=event.time)
        else:
            yield Aside(title=f"Notice: {_words(event.subtype)}", who=who, time=event.time, parts=(event.message,))

    def _other(self, event: Event) -> Iterator[Passage]:
        match event:
            case Error():
                yield Remark(text=f"error: {event.message}", time=event.time, alert=True)
            case TranscriptEdit(action="compact"):
                yield SummedUp(text=event.content, time=event.time)
            case TranscriptEdit():
                kept = "all" if event.n is None else f"the first {event.n}"
                yield Remark(text=f"{self.name(event.agent_id)}'s transcript was cut: {kept} entries", time=event.time)
            case Recovery():
                yield Remark(text=f"the log was torn here: {event.reason}", time=event.time, alert=True)
            case AgentCreated():
                if self._first is None:
                    yield Remark(text=f"{self.name(event.agent_id)} was created", time=event.time)
            case AgentTerminated():
                yield Remark(text=f"{self.name(event.agent_id)} was terminated", time=event.time)
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

    def __init__(self, transcript: Transcript, events: Sequence[Event], first: str) -> None:
        self._transcript = transcript
        self._stories: dict[str, list[Event]] = {}
        created: list[AgentCreated] = []
        for event in events:
            self._stories.setdefault(event.agent_id, []).append(event)
            if isinstance(event, AgentCreated):
                created.append(event)
        records = {event.message_id for event in events if event.message_id and not isinstance(event, AgentCreated)}
        self._asked: dict[str, list[AgentCreated]] = {}
        self._unplaced: deque[AgentCreated] = deque()
        for one in (one for one in created if one.agent_id != first):
            cause = next((cause for cause in one.causes() if cause in records), None)
            if cause is not None:
                self._asked.setdefault(cause, []).append(one)
            elif one.time is not None:
                self._unplaced.append(one)  # nobody wrote down who asked for it, but when
        self._first = first
        self._told = {first}

    def passages(self) -> Iterator[Passage]:
        """One story after the other, each inside the one that asked for it; in no more than one place."""
        yield from self._nested(self._first, top=True)
        for agent in list(self._stories):
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
                    yield AgentEnds(name=self._transcript.name(agent))
            elif isinstance(found, str):
                yield self._begin(found)
                stack.append((found, self._story(found, top=False)))
            else:
                yield found

    def _begin(self, agent: str) -> AgentBegins:
        story = self._stories.get(agent) or []
        time = next((event.time for event in story if event.time is not None), None)
        return AgentBegins(name=self._transcript.name(agent), time=time)

    def _story(self, agent: str, *, top: bool) -> Iterator[Passage | str]:
        """The passages of one agent; where another's story belongs, its id."""
        last = ""
        for event in self._stories.get(agent, ()):
            if event.message_id != last:
                yield from self._take(self._asked.pop(last, ()))
                last = event.message_id
            while top and self._unplaced and (self._unplaced[0].time or 0) < (event.time or 0):
                yield from self._take([self._unplaced.popleft()])
            yield from self._transcript.tell(event, top=top)
        yield from self._take(self._asked.pop(last, ()))

    def _take(self, agents: Iterable[AgentCreated]) -> Iterator[str]:
        for one in agents:
            if one.agent_id not in self._told:
                self._told.add(one.agent_id)
                yield one.agent_id


def _speaker(event: Prompt, who: str, *, top: bool) -> str:
    speaker = event.hook or USER
    return speaker if top or who == ASSISTANT else f"{speaker} to {who}"


def _words(name: str) -> str:
    return excerpt(name.replace("_", " ").replace("attachment:", ""), NAME)
