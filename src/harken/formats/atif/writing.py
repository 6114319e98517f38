"""Events as a trajectory: what `atif-v1` writes.

A step of an agent is one reply of the model: its thoughts, words and calls, what the calls gave, and what it cost. By
the format a result stands in the step of its call, so it goes there however late it came. What the format has no field
for stands under `extra`, so that it is read again; what has no place there either is counted as lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from harken.clock import format_instant
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
from harken.events.base import clean, split_parts
from harken.events.tally import BOUNDARY, MICROS, Tally, money
from harken.formats.base import Loss, Written
from harken.formats.kit.jsonl import Record, encode

from .document import BETWEEN, CACHE_WRITE, COMPACTION, OWN, PICTURES, SOUNDS, SUBAGENTS, VERSION

WHY = {
    "files": "a part is a text, a JPEG, PNG, GIF or WebP picture, or a sound",
    "pictures without content": "a part says where its picture is",
    "figures of runs": "a step has the figures of one reply; what they add up to is in the totals",
    "records that could not be read": "a trajectory has no place for them",
    "records that are no conversation": "a trajectory has no place for them",
    "edits of a transcript": "a trajectory tells what was said, and not what was taken back",
}
UNKNOWN = "unknown"
_THOUGHT, _WORDS, _CALLS = range(3)
"""The order in which a reply says things."""


def write(events: Sequence[Event]) -> Written:
    """The trajectory of these events, and what it could not say."""
    lost: Counter[str] = Counter()
    agents: dict[str, _AgentWriter] = {}
    for event in events:
        if (agent := agents.get(event.agent_id)) is None:
            agent = agents[event.agent_id] = _AgentWriter(lost)
        agent.take(event)
    losses = tuple(Loss(what=what, count=lost[what], why=WHY[what]) for what in WHY if lost[what])
    if not any(agent.steps for agent in agents.values()):
        return Written(data=b"", losses=losses)
    main = "" if "" in agents and agents[""].steps else next(iter(agents))
    return Written(data=encode(_AgentTree(agents, main).trajectory(main)) + b"\n", losses=losses)


class _AgentTree:
    """Who started whom."""

    def __init__(self, agents: dict[str, _AgentWriter], main: str) -> None:
        self._agents = agents
        self._makers: dict[str, Record] = {}
        """Agents to the step with the call that started them."""
        self._below: dict[str, list[str]] = {}
        records = {name: (agent_id, step) for agent_id, one in agents.items() for name, step in one.records.items()}
        parents: dict[str, str] = {}
        for agent_id, agent in agents.items():
            created = agent.created
            cause = created.cause if created is not None and isinstance(created.cause, str) else ""
            maker, step = records.get(cause, ("", None))
            parent = (created.parent if created is not None else "") or maker
            if step is not None and maker == parent:
                self._makers[agent_id] = step
            parents[agent_id] = parent if parent in agents and parent != agent_id else main
        for agent_id in agents:
            if agent_id != main and (agents[agent_id].steps or agents[agent_id].created is not None):
                above = agent_id
                seen = {agent_id}
                while above != main and parents[above] not in seen:
                    above = parents[above]
                    seen.add(above)
                parent = parents[agent_id] if above == main else main  # those that made each other were made by nobody
                self._below.setdefault(parent, []).append(agent_id)

    def trajectory(self, agent_id: str, depth: int = 0) -> Record:
        agent = self._agents[agent_id]
        # All agents far below stand side by side: nothing else is that deep, and readers stop somewhere.
        below = self._below.get(agent_id, []) if depth < 20 else []
        for name in below:
            if (step := self._makers.get(name)) is not None:
                _refer(step, name)
        inside = [self.trajectory(name, depth + 1) for name in below]
        if depth == 19:
            inside += [self.trajectory(name, 20) for under in below for name in self._all_below(under)]
        made = agent.trajectory(agent_id if depth else "")
        return made | ({SUBAGENTS: inside} if inside else {})

    def _all_below(self, agent_id: str) -> list[str]:
        found: list[str] = []
        waiting = [agent_id]
        while waiting:
            more = self._below.get(waiting.pop(), [])
            found += more
            waiting += more
        return found


def _refer(step: Record, name: str) -> None:
    """Where a call started an agent, its result says which. Of several calls in one step the next without one did."""
    results = step.setdefault("observation", {"results": []})["results"]
    ref = [{"trajectory_id": clean(name)}]
    for call in step.get("tool_calls", ()):
        answers = [one for one in results if one.get("source_call_id") == call["tool_call_id"]]
        if not answers:
            results.append({"source_call_id": call["tool_call_id"], "subagent_trajectory_ref": ref})
            return
        if "subagent_trajectory_ref" not in answers[0]:
            answers[0]["subagent_trajectory_ref"] = ref
            return
    results.append({"subagent_trajectory_ref": ref})


class _AgentWriter:
    """The steps of one agent, as far as they have come."""

    def __init__(self, lost: Counter[str]) -> None:
        self._lost = lost
        self.created: AgentCreated | None = None
        self.steps: list[Record] = []
        self.records: dict[str, Record] = {}
        """Records to the step that they are told in."""
        self._events: list[Event] = []
        self._open: Record | None = None
        """The reply that may go on."""
        self._said = _THOUGHT
        self._of: tuple[str, str] = ("", "")
        """The API's name of that reply, and the last record of it."""
        self._waiting: dict[str, list[Record]] = {}
        """Calls without a result to their steps."""
        self._replies: dict[str, Record] = {}
        """The API's names of replies to their steps."""
        self._counted: dict[tuple[str, str], tuple[Record, int]] = {}
        """Requests to the steps that have their figures, and the output there."""

    def take(self, event: Event) -> None:
        """One more event."""
        self._events.append(event)
        match event:
            case Prompt():
                fields = {"source": "" if event.source == "user" else event.source, "origin": event.origin}
                self._step(
                    "user",
                    event,
                    self._shown(event.content, event.images),
                    _some(fields | {"hook": event.hook, "label": event.label}),
                )
            case System():
                step = self._step(
                    "system",
                    event,
                    clean(event.message),
                    _some({"subtype": event.subtype or "notice", "metadata": event.metadata.decode(errors="replace")}),
                )
                if event.subtype == BOUNDARY:
                    step["extra"]["context_management"] = COMPACTION
            case Error():
                self._step("system", event, clean(event.message), {"kind": event.kind})
            case Thinking() | Response() | ToolCall():
                self._reply(event)
            case ToolResult():
                self._result(event)
            case Metric():
                self._usage(event)
            case AgentCreated():
                self.created = event
            case _:
                self._lost[_what(event)] += 1

    def trajectory(self, name: str) -> Record:
        """All of it; a trajectory inside another has a name."""
        about = self.created
        models = [step["model_name"] for step in self.steps if "model_name" in step]
        model = (about.language_model if about is not None else "") or (models[0] if models else "")
        steps = self.steps or [{"source": "system", "message": ""}]  # there is at least one
        return {
            "schema_version": VERSION,
            **({"trajectory_id": clean(name)} if name else {}),
            "agent": {
                "name": clean(about.name) if about is not None and about.name else "agent",
                "version": UNKNOWN,
                **({"model_name": clean(model)} if model else {}),
            },
            "steps": [{"step_id": number, **_tidy(step)} for number, step in enumerate(steps, 1)],
            "final_metrics": self._totals(len(steps)),
        }

    def _totals(self, steps: int) -> Record:
        tally = Tally.of(self._events)
        used, cost = tally.tokens, tally.cost_usd_micros
        totals: Record = {
            "total_prompt_tokens": None if used.input is None else used.prompt,
            "total_completion_tokens": used.output,
            "total_cached_tokens": used.cache_read,
            "total_cost_usd": None if cost is None else cost / MICROS,
        }
        asked = bool(tally.requests or tally.runs.output or tally.unnamed.output or cost is not None)
        return {key: value for key, value in totals.items() if value is not None and asked} | {"total_steps": steps}

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _step(self, source: str, event: Event, message: Any, said: Record) -> Record:
        step: Record = {"source": source, "message": message}
        if event.time is not None:
            step = {"timestamp": format_instant(event.time)} | step
        if said:
            step["extra"] = {OWN: said}
        self.steps.append(step)
        self._open = None
        if event.message_id:
            self.records.setdefault(event.message_id, step)
        return step

    def _begin(self, event: Event) -> Record:
        step = self._step("agent", event, [], {})
        self._open, self._said, self._of = step, _THOUGHT, (event.api_id, event.message_id)
        if event.api_id:
            step["extra"] = {OWN: {"api_id": clean(event.api_id)}}
            self._replies.setdefault(event.api_id, step)
        return step

    def _reply(self, event: Thinking | Response | ToolCall) -> None:
        saying = _THOUGHT if isinstance(event, Thinking) else _WORDS if isinstance(event, Response) else _CALLS
        step = self._open
        if step is None or self._is_another(event, saying, step):
            step = self._begin(event)
        if event.api_id and not self._of[0]:
            step.setdefault("extra", {}).setdefault(OWN, {})["api_id"] = clean(event.api_id)
            self._replies.setdefault(event.api_id, step)
        self._said, self._of = saying, (event.api_id or self._of[0], event.message_id)
        if event.message_id:
            self.records.setdefault(event.message_id, step)
        if isinstance(event, Thinking):
            step.setdefault("thoughts", []).append(event)
        elif isinstance(event, Response):
            step["message"].append({"type": "text", "text": clean(event.content)})
            if event.model:
                step.setdefault("model_name", clean(event.model))
        else:
            step.setdefault("tool_calls", []).append(_call(event))
            self._waiting.setdefault(event.id, []).append(step)

    def _is_another(self, event: Event, saying: int, step: Record) -> bool:
        """Whether it is of another reply than the one that is open."""
        api_id, record = self._of
        if api_id and event.api_id:
            return api_id != event.api_id
        again = saying == self._said == _WORDS and record != event.message_id
        return saying < self._said or again or "observation" in step

    def _result(self, event: ToolResult) -> None:
        made: Record = {"content": self._shown(event.output, event.images)}
        waiting = self._waiting.get(event.id)
        if waiting:
            step = waiting.pop(0)
            made = {"source_call_id": clean(event.id), **made}
            said: Record = {}
        else:  # the call is not here
            step = self.steps[-1] if self._open is not None else self._step("system", event, "", {})
            said = {OWN: {"call_id": clean(event.id)} | ({"name": clean(event.name)} if event.name else {})}
        if extra := said | ({"is_error": True} if event.is_error else {}):
            made["extra"] = extra
        step.setdefault("observation", {"results": []})["results"].append(made)

    def _usage(self, event: Metric) -> None:
        if event.of_process or event.scope:
            self._lost["figures of runs"] += 1
            return
        key, output = event.request_key, event.tokens.possible.output or 0
        if key[0] and key in self._counted:
            step, known = self._counted[key]
            if output <= known:
                return  # the same request once more
        else:
            step = self._step_of(event)
        self._counted[key] = (step, output)
        step["metrics"] = _metrics(event)
        if event.model:
            step.setdefault("model_name", clean(event.model))
        if event.request_id:
            step.setdefault("extra", {}).setdefault(OWN, {})["request_id"] = clean(event.request_id)

    def _step_of(self, event: Metric) -> Record:
        """The step of the reply that the figures are of; without one they are a step of their own."""
        if (step := self._replies.get(event.api_id)) is not None and "metrics" not in step:
            return step
        step = self._open
        if step is not None and "metrics" not in step and not (event.api_id and self._of[0]):
            if event.api_id:
                step.setdefault("extra", {}).setdefault(OWN, {})["api_id"] = clean(event.api_id)
                self._replies.setdefault(event.api_id, step)
                self._of = (event.api_id, self._of[1])
            return step
        return self._begin(event)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _shown(self, text: str, images: Sequence[Image]) -> str | list[Record]:
        """One text as it is, anything else as parts."""
        if not images:
            return clean(text)
        parts = [_text(part) if isinstance(part, str) else self._picture(part) for part in split_parts(text, images)]
        shown = [part for part in parts if part is not None]
        return shown if any(part["type"] != "text" for part in shown) else clean(text)

    def _picture(self, image: Image) -> Record | None:
        kind = image.media_type.lower()
        if kind not in PICTURES and kind not in SOUNDS:
            self._lost["files"] += 1
            return None
        if not image.data and not image.url:
            self._lost["pictures without content"] += 1
            return None
        path = f"data:{kind};base64,{image.data}" if image.data else image.url
        source = {"media_type": kind, "path": clean(path)}
        return {"type": "image" if kind in PICTURES else "audio", "source": source}


def _tidy(step: Record) -> Record:
    """A step as it is written: thoughts as a field, and a message that is one text as that text."""
    if step["source"] != "agent":
        return step
    made = {key: value for key, value in step.items() if key != "thoughts"}
    if isinstance(parts := step["message"], list):
        made["message"] = "" if not parts else parts[0]["text"] if len(parts) == 1 else parts
    thoughts: list[Thinking] = step.get("thoughts", [])
    if text := BETWEEN.join(clean(one.content) for one in thoughts if one.content):
        made["reasoning_content"] = text
    if len(thoughts) > 1 or any(one.signature for one in thoughts):
        pieces = [
            {"length": len(clean(one.content))}
            | ({"signature": clean(one.signature)} if one.signature else {})
            | ({} if one.redacted is None else {"redacted": one.redacted})
            for one in thoughts
        ]
        extra = made.get("extra", {})
        made["extra"] = {**extra, OWN: {**extra.get(OWN, {}), "reasoning": pieces}}
    return made


def _some(fields: Record) -> Record:
    return {key: clean(value) for key, value in fields.items() if value}


def _text(words: str) -> Record:
    return {"type": "text", "text": clean(words)}


def _call(event: ToolCall) -> Record:
    """A call; its arguments are an object, so any other text is the only one in it."""
    said: Record = {"server_tool": True} if event.server_tool else {}
    try:
        given = orjson.loads(event.input or b"{}")
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        given = {"input": clean(event.input.decode("utf-8", "replace"))}
        said["text"] = True
    call = {"tool_call_id": clean(event.id), "function_name": clean(event.name), "arguments": given}
    return call | ({"extra": {OWN: said}} if said else {})


def _metrics(event: Metric) -> Record:
    """The counts; what came from the cache and went into it is counted in, by the format."""
    tokens = event.tokens.possible
    metrics: Record = {
        "prompt_tokens": None if tokens.input is None else tokens.prompt,
        "completion_tokens": tokens.output,
        "cached_tokens": tokens.cache_read,
        "cost_usd": money(event.cost_usd),
    }
    extra: Record = {
        CACHE_WRITE: tokens.cache_write,
        "cache_creation_1h_input_tokens": event.cache_write_1h_tokens,
        "reasoning_tokens": event.reasoning_tokens,
        "stop_reason": clean(event.stop_reason) or None,
        "service_tier": clean(event.served) or None,
    }
    found = {key: value for key, value in metrics.items() if value is not None}
    more = {key: value for key, value in extra.items() if value is not None}
    return found | ({"extra": more} if more else {})


def _what(event: Event) -> str:
    """What is lost with an event that has no place."""
    if isinstance(event, Output):
        return "records that could not be read" if event.why else "records that are no conversation"
    return "edits of a transcript" if event.kind == "transcript_edit" else "records that are no conversation"
