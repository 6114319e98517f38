"""A trajectory as events: what `atif-v1` reads.

A step is a record, and what its calls gave is another. The events of an agent inside stand between the call that
started it and its result; where nothing refers to it, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from harken import ids
from harken.clock import parse_instant
from harken.events import (
    AgentCreated,
    Error,
    Event,
    Image,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.events.base import figure, join_parts, text_at, yes_or_no
from harken.events.edits import INSTRUCTIONS
from harken.events.runs import SO_FAR
from harken.events.tally import BOUNDARY, money
from harken.formats.kit.jsonl import Record, encode

from .document import BETWEEN, CACHE_WRITE, SUBAGENTS, inner, items, load, own

COPIED = "copied_context"
"""The origin of prompts that were said in an earlier trajectory and stand here for the model's sake."""
OBSERVATION = "observation"
"""The origin of what an agent was shown that no call asked for."""
DEEPEST = 50
"""Agents within agents beyond this are not told."""
_PROMPT_FIELDS = ("source", "origin", "hook", "label")


class AgentInside(NamedTuple):
    """An agent of a trajectory, the first among them."""

    agent_id: str
    parent: str
    call_id: str
    """The call that started it; empty where nothing says which."""
    document: Record


def read(data: bytes) -> list[Event]:
    """The events in the bytes."""
    return TrajectoryReader(data).events


def read_conversation(data: bytes) -> list[Event]:
    """What the first agent has before it: behind the last compaction, if something is, and its instructions."""
    told = TrajectoryReader(data)
    main = told.agents[0].agent_id if told.agents else ""
    events = [event for event in told.events if event.agent_id == main]
    cuts = [at for at, event in enumerate(events) if isinstance(event, System) and event.subtype == BOUNDARY]
    rest = events[cuts[-1] :] if cuts else events
    if not any(isinstance(event, Prompt | Response) for event in rest):
        return events
    before = events[: len(events) - len(rest)]
    return [*(one for one in before if isinstance(one, System) and one.subtype == INSTRUCTIONS), *rest]


def count_places(data: bytes) -> int:
    """How many records there are; none of them has a name of its own."""
    return TrajectoryReader(data).records


class TrajectoryReader:
    """What a trajectory tells."""

    def __init__(self, data: bytes) -> None:
        self.events: list[Event] = []
        self.agents: list[AgentInside] = []
        self.records = 0
        document, why = load(data)
        if document is not None:
            self._trajectory(document, "", "", None, 0)
        elif why:
            self._record([Output(raw=data, why=why, media_type="text/plain")], "", None)

    def _record(self, events: Sequence[Event], agent_id: str, time: int | None, api_id: str = "") -> str:
        message_id = f"@{self.records}"
        self.records += 1
        for index, event in enumerate(events):
            self.events.append(
                event.replace(message_id=message_id, agent_id=agent_id, time=time, index=index, api_id=api_id)
            )
        return message_id

    def _trajectory(self, document: Record, parent: str, call_id: str, cause: str | None, depth: int) -> None:
        agent_id = f"agent_{len(self.agents) + 1:03d}"
        self.agents.append(AgentInside(agent_id, parent, call_id, document))
        about = inner(document, "agent")
        told = {key: text for key in ("session_id", "trajectory_id") if (text := text_at(document, key))}
        told |= {"version": version} if (version := text_at(about, "version")) else {}
        created = AgentCreated(
            name=text_at(about, "name"),
            language_model=text_at(about, "model_name"),
            role="child" if parent else "root",
            parent=parent,
            cause=cause,
            attributes=encode(told) if told else b"",
        )
        steps = [_Step(step, document) for step in items(document, "steps")]
        self._record([created], agent_id, next((step.time for step in steps if step.time is not None), None))
        inside = {text_at(one, "trajectory_id"): one for one in items(document, SUBAGENTS) if isinstance(one, dict)}
        begun = False
        for step in steps:
            message_id = self._record(events, agent_id, step.time, step.api_id) if (events := step.said(begun)) else ""
            begun = begun or step.source in ("user", "agent")
            for name, call in step.started():
                if (one := inside.pop(name, None)) is not None:
                    self._inside(one, agent_id, call, message_id or None, depth)
            if events := step.shown():
                self._record(events, agent_id, step.time)
        for one in inside.values():
            self._inside(one, agent_id, "", None, depth)
        odd = [one for one in items(document, SUBAGENTS) if not isinstance(one, dict)]
        if odd:
            self._record([Output(raw=encode(one), why="a trajectory is an object") for one in odd], agent_id, None)
        if total := _total(document, steps):
            self._record([total], agent_id, None)

    def _inside(self, document: Record, parent: str, call_id: str, cause: str | None, depth: int) -> None:
        if depth >= DEEPEST or not isinstance(document.get("steps"), list):
            why = "agents within agents too deep" if depth >= DEEPEST else "a trajectory is an object with steps"
            self._record([Output(raw=encode(document), why=why)], parent, None)
            return
        self._trajectory(document, parent, call_id, cause, depth + 1)


class _Step:
    """A step, and the trajectory that it is of."""

    def __init__(self, value: Any, document: Record) -> None:
        self._value = value
        self.record: Record = value if isinstance(value, dict) else {}
        self.source = text_at(self.record, "source")
        self.time = parse_instant(self.record.get("timestamp"))
        self._own = own(self.record)
        self._model = text_at(self.record, "model_name") or text_at(inner(document, "agent"), "model_name")
        self.metrics = {} if self.record.get("is_copied_context") is True else inner(self.record, "metrics")
        self.api_id = ""
        if self.source == "agent":
            # Without a name from the provider, after what it says: a copy of it is called the same.
            names = [text_at(document, key) for key in ("session_id", "trajectory_id")]
            self.api_id = text_at(self._own, "api_id") or f"atif-{ids.short_digest(encode([names, value]))}"

    def said(self, begun: bool) -> list[Event]:
        """What was said in it, and what that cost; `begun` says whether a user or an agent spoke before."""
        if not isinstance(self._value, dict):
            return [Output(raw=encode(self._value), why="a step is an object")]
        match self.source:
            case "user":
                return self._prompt()
            case "agent":
                return [*self._reply(), *self._usage()]
            case "system":
                return self._notice(begun)
        return [Output(raw=encode(self._value), why="a step is of a user, of the system or of an agent")]

    def _prompt(self) -> list[Event]:
        text, images, unread = _content(self.record.get("message"))
        copied = self.record.get("is_copied_context") is True
        fields = {"source": "injected", "origin": COPIED} if copied else {}
        fields |= {key: value for key in _PROMPT_FIELDS if (value := text_at(self._own, key))}
        return [Prompt(content=text, images=images).replace(**fields), *unread]

    def _notice(self, begun: bool) -> list[Event]:
        text, _, unread = _content(self.record.get("message"))
        if text_at(self._own, "kind") == Error.kind:
            return [Error(message=text), *unread]
        if subtype := text_at(self._own, "subtype"):
            metadata = text_at(self._own, "metadata").encode()
            return [System(subtype=subtype, message=text, metadata=metadata), *unread]
        extra = inner(self.record, "extra")
        if text_at(inner(extra, "context_management"), "type") == "compaction":
            return [System(subtype=BOUNDARY, message=text, metadata=encode(extra)), *unread]
        if not text.strip():
            return unread
        return [System(subtype="notice" if begun else INSTRUCTIONS, message=text), *unread]

    def _reply(self) -> Iterator[Event]:
        yield from _thoughts(text_at(self.record, "reasoning_content"), items(self._own, "reasoning"))
        message = self.record.get("message")
        for part in message if isinstance(message, list) else [message]:
            text, images, unread = _content(part if part is None or isinstance(part, str) else [part])
            if text:
                yield Response(content=text, model=self._model)
            if images:
                yield Output(raw=encode(part))
            yield from unread
        for call in items(self.record, "tool_calls"):
            yield _call(call)

    def _usage(self) -> Iterator[Event]:
        if not self.metrics:
            return
        extra = inner(self.metrics, "extra")
        given, read = figure(self.metrics.get("prompt_tokens")), figure(self.metrics.get("cached_tokens"))
        written = figure(extra.get(CACHE_WRITE))
        cached = (read or 0) + (written or 0)
        yield Metric(
            model=self._model,
            # What came from the cache and went into it is counted in, unless it is more than all there is.
            input_tokens=given if given is None or cached > given else given - cached,
            output_tokens=figure(self.metrics.get("completion_tokens")),
            cache_read_tokens=read,
            cache_write_tokens=written,
            cache_write_1h_tokens=figure(extra.get("cache_creation_1h_input_tokens")),
            reasoning_tokens=figure(extra.get("reasoning_tokens")),
            cost_usd=_cost(self.metrics.get("cost_usd")),
            stop_reason=text_at(extra, "stop_reason"),
            served=text_at(extra, "service_tier"),
            request_id=text_at(self._own, "request_id"),
        )

    # -- what its calls gave -------------------------------------------------------------------------------------------

    def _results(self) -> list[Any]:
        return items(inner(self.record, "observation"), "results")

    def started(self) -> Iterator[tuple[str, str]]:
        """The trajectories inside that it refers to, each with the call that started it."""
        for result in self._results():
            for ref in items(result, "subagent_trajectory_ref") if isinstance(result, dict) else ():
                if isinstance(ref, dict) and (name := text_at(ref, "trajectory_id")):
                    yield name, text_at(result, "source_call_id")

    def shown(self) -> list[Event]:
        """What its calls gave, and what the agent was shown besides."""
        calls = [one for one in items(self.record, "tool_calls") if isinstance(one, dict)]
        names = {text_at(call, "tool_call_id"): text_at(call, "function_name") for call in calls}
        results = self._results()
        events: list[Event] = []
        for result in results:
            if not isinstance(result, dict):
                events.append(Output(raw=encode(result), why="a result is an object"))
                continue
            text, images, unread = _content(result.get("content"))
            call = result.get("source_call_id", own(result).get("call_id"))
            if not isinstance(call, str) and len(calls) == len(results) == 1:
                call = text_at(calls[0], "tool_call_id")
            if isinstance(call, str):
                failed = inner(result, "extra").get("is_error") is True
                name = names.get(call) or text_at(own(result), "name")
                events.append(ToolResult(id=call, name=name, output=text, images=images, is_error=failed))
            elif text or images:
                events.append(Prompt(content=text, images=images, source="injected", origin=OBSERVATION))
            events += unread
        return events


def _content(value: Any) -> tuple[str, tuple[Image, ...], list[Event]]:
    """Words and pictures of a message or a result, and the parts that nobody could read."""
    if value is None or isinstance(value, str):
        return text_at({"": value}, ""), (), []
    if not isinstance(value, list):
        return "", (), [Output(raw=encode(value), why="content is a text or a list of parts")]
    parts: list[str | Image] = []
    unread: list[Event] = []
    for part in value:
        read = _part(part) if isinstance(part, dict) else None
        if read is None:
            unread.append(Output(raw=encode(part), why="a part is a text, an image or audio"))
        else:
            parts.append(read)
    text, images = join_parts(parts)
    return text, images, unread


def _part(part: Record) -> str | Image | None:
    if isinstance(part.get("text"), str) and part.get("type", "text") == "text":
        return text_at(part, "text")
    source = inner(part, "source")
    path = text_at(source, "path")
    if not path:
        return None
    head, comma, data = path.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(media_type=head[5:-7] or text_at(source, "media_type"), data=data)
    return Image(media_type=text_at(source, "media_type"), url=path)


def _thoughts(text: str, pieces: list[Any]) -> list[Event]:
    """The reasoning in the pieces in which it was thought, as far as those are told and fit."""
    told = [
        (figure(one.get("length")) or 0, text_at(one, "signature"), yes_or_no(one.get("redacted")))
        for one in pieces
        if isinstance(one, dict)
    ]
    left = text
    found: list[Event] = []
    for length, signature, redacted in told:
        left = left.removeprefix(BETWEEN) if length and len(left) < len(text) else left
        found.append(Thinking(content=left[:length], signature=signature, redacted=redacted))
        left = left[length:]
    if found and not left:
        return found
    return [Thinking(content=text)] if text else []


def _call(call: Any) -> Event:
    if not isinstance(call, dict):
        return Output(raw=encode(call), why="a call is an object")
    given = call.get("arguments")
    if own(call).get("text") is True and isinstance(given, dict):
        given = given.get("input")
    return ToolCall(
        id=text_at(call, "tool_call_id"),
        name=text_at(call, "function_name"),
        input=text_at({"": given}, "").encode() if isinstance(given, str) else encode({} if given is None else given),
        server_tool=own(call).get("server_tool") is True,
    )


def _cost(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return money(float(value)) if abs(value) < 2**60 else None


def _total(document: Record, steps: Sequence[_Step]) -> Metric | None:
    """What the whole used, where that is more than its steps tell. The total of a trajectory that goes on from another
    is of both, and one with agents inside may be of all: those tell themselves."""
    total = inner(document, "final_metrics")
    if not total or document.get(SUBAGENTS) or any(step.record.get("is_copied_context") is True for step in steps):
        return None
    used = [event for step in steps for event in step._usage() if isinstance(event, Metric)]
    given, output = figure(total.get("total_prompt_tokens")), figure(total.get("total_completion_tokens"))
    read, cost = figure(total.get("total_cached_tokens")), _cost(total.get("total_cost_usd"))
    spent = sum(one.cost_usd or 0 for one in used)
    if (output or 0) <= sum(one.output_tokens or 0 for one in used) and (cost or 0) <= spent + 1e-6:
        return None
    return Metric(
        model=text_at(inner(document, "agent"), "model_name"),
        input_tokens=given if given is None or (read or 0) > given else given - (read or 0),
        output_tokens=output,
        cache_read_tokens=read,
        cost_usd=cost,
        scope=SO_FAR,
    )
