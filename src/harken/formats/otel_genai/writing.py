"""Events as spans: what `otel-genai-v1` writes.

Each agent is a span (`invoke_agent`), each reply of a model one inside it (`chat`), each tool that answered another
(`execute_tool`). A call says only what is new in it, and says that it does: a history that is repeated in each call
would make the file grow with its square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
import orjson

from harken import ids
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
from harken.events.cbor import encode_events
from harken.events.tally import RequestUsage
from harken.formats.base import Loss, Written
from harken.formats.kit.jsonl import Record, encode

from .calls import NEW, REQUEST
from .spans import TraceSpan

WHY = {
    "notices": "they are for people, not for the model",
    "figures of runs": "a span has the figures of one call",
    "records that could not be read": "a span has no place for them",
    "records that are no conversation": "a span has no place for them",
    "edits of a transcript": "a trace tells what was sent, and not what was taken back",
}
_PROVIDERS = (
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("gemini", "gcp.gemini"),
)
_REASONS = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "refusal", "safety"), "content_filter"),
    **dict.fromkeys(("tool_call", "tool_calls", "tool_use", "function_call"), "tool_call"),
    "error": "error",
}
"""Why a model stopped, in the provider's words, to those of the conventions; the span has the provider's."""


class _Exchange(msgspec.Struct):
    """A call that is being put together."""

    inputs: list[Record] = []
    outputs: list[Record] = []
    api_id: str = ""
    message_id: str = ""
    """The last record of the reply."""
    model: str = ""
    usage: Metric | None = None
    failure: str | None = None
    start: int = 0
    end: int = 0

    @property
    def is_answered(self) -> bool:
        return bool(self.outputs) or self.usage is not None or self.failure is not None


class _Speaker(msgspec.Struct):
    """An agent, and what of its calls there is so far."""

    created: AgentCreated | None = None
    now: int = 0
    """The latest instant of its events: spans follow each other."""
    current: _Exchange | None = None
    spans: list[Record] = []
    calls: dict[str, tuple[str, int]] = {}
    """Calls without a result: the tool and the instant."""


def write(events: Sequence[Event]) -> Written:
    """A trace with these events, and what it could not say."""
    return _TraceWriter(events).run()


def _reported_once(events: Iterable[Event]) -> list[Event]:
    """The events with one report of each request, the one that counts, where the first of them stood. A runtime reports
    a request again with every record of its reply, behind results of its first calls: a span of such a report would
    part these from the others."""
    kept: list[Event] = []
    places: dict[tuple[str, ...], int] = {}
    for event in events:
        if isinstance(event, Metric) and event.api_id and not (event.of_process or event.scope):
            place = places.setdefault((event.agent_id, *event.request_key), len(kept))
            if place < len(kept):
                kept[place] = _better_report(cast("Metric", kept[place]), event)
                continue
        kept.append(event)
    return kept


def _better_report(first: Metric, again: Metric) -> Metric:
    better = again if RequestUsage.of(again).beats(RequestUsage.of(first)) else first
    reason = better.stop_reason or first.stop_reason or again.stop_reason
    return msgspec.structs.replace(better, time=first.time, stop_reason=reason)


class _TraceWriter:
    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._lost: Counter[str] = Counter()
        self._speakers: dict[str, _Speaker] = {}
        self._trace = ids.artifact_id(encode_events(events))[:32]
        self._count = 0

    def run(self) -> Written:
        for event in _reported_once(self._events):
            self._take(event)
        for speaker in self._speakers.values():
            self._close(speaker)
        spans = [span for agent_id in self._speakers for span in self._of_agent(agent_id)]
        losses = tuple(Loss(what=what, count=count, why=WHY[what]) for what, count in self._lost.items() if count)
        if not spans:
            return Written(data=b"", losses=losses)
        scope = {"scope": {"name": "harken"}, "spans": spans}
        resource = {"attributes": _attributes({"service.name": "harken"})}
        data = encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})
        return Written(data=data + b"\n", losses=losses)

    def _span_id(self) -> str:
        self._count += 1
        return ids.artifact_id(f"{self._trace}{self._count}".encode())[:16]

    def _take(self, event: Event) -> None:
        speaker = self._speakers.setdefault(event.agent_id, _Speaker(None, 0, None, [], {}))
        speaker.now = max(speaker.now, event.time or 0)
        match event:
            case Prompt():
                self._heard(event, speaker, "user", _shown(event.content, event.images))
            case System(subtype="instructions"):
                self._heard(event, speaker, "system", [_text(event.message)])
            case ToolResult():
                self._heard(event, speaker, "tool", [_result(event)])
                self._used(event, speaker)
            case Response() | Thinking() | ToolCall():
                self._said(event, speaker)
            case Metric():
                self._counted(event, speaker)
            case Error():
                exchange = self._exchange(event, speaker, begins=True)
                exchange.failure = event.message
            case AgentCreated():
                speaker.created = event
            case _:
                self._lost[_what(event)] += 1

    def _exchange(self, event: Event, speaker: _Speaker, *, begins: bool) -> _Exchange:
        """The call that is being put together; `begins` where what comes is no part of one that was answered."""
        current = speaker.current
        if current is not None and begins and current.is_answered:
            self._close(speaker)
            current = None
        if current is None:
            current = speaker.current = _Exchange([], [], start=speaker.now)
        current.end = speaker.now
        return current

    def _heard(self, event: Event, speaker: _Speaker, role: str, parts: list[Record]) -> None:
        exchange = self._exchange(event, speaker, begins=True)
        exchange.start = speaker.now
        exchange.inputs.append({"role": role, "parts": parts})

    def _said(self, event: Response | Thinking | ToolCall, speaker: _Speaker) -> None:
        current = speaker.current
        other = current is not None and bool(current.api_id and event.api_id) and current.api_id != event.api_id
        failed = current is not None and current.failure is not None
        exchange = self._exchange(event, speaker, begins=other or failed)
        exchange.api_id = exchange.api_id or event.api_id
        exchange.message_id = event.message_id
        if isinstance(event, Response):
            exchange.model = exchange.model or event.model
            exchange.outputs.append(_text(event.content))
        elif isinstance(event, Thinking):
            sealed: Record = {"signature": event.signature} if event.signature else {}
            kind = {} if event.redacted is None else {"redacted": event.redacted}
            exchange.outputs.append({"type": "reasoning", "content": clean(event.content), **sealed, **kind})
        else:
            exchange.outputs.append(_call(event))
            speaker.calls[event.id] = (event.name, speaker.now)

    def _counted(self, event: Metric, speaker: _Speaker) -> None:
        if event.of_process or event.scope:
            self._lost["figures of runs"] += 1
            return
        current = speaker.current
        other = current is not None and bool(current.api_id and event.api_id) and current.api_id != event.api_id
        if current is not None and event.message_id and event.message_id == current.message_id:
            other = False  # a report in the record of the reply is its own, by whatever name
        taken = current is not None and current.usage is not None
        exchange = self._exchange(event, speaker, begins=other or taken)
        exchange.usage = event
        exchange.api_id = exchange.api_id or event.api_id

    def _used(self, event: ToolResult, speaker: _Speaker) -> None:
        """The span of a tool that answered; the words are in the messages."""
        name, begun = speaker.calls.pop(event.id, ("", 0))
        if name and event.id:
            about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": event.id}
            span = self._span(f"execute_tool {name}", 1, begun, speaker.now, about)
            speaker.spans.append(span | ({"status": {"code": 2}} if event.is_error else {}))

    def _close(self, speaker: _Speaker) -> None:
        """The span of the call that was put together."""
        exchange = speaker.current
        speaker.current = None
        if exchange is None:
            return
        usage = exchange.usage
        model = (usage.model if usage else "") or exchange.model
        about: Record = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": self._trace, NEW: "new"}
        provider = next((name for start, name in _PROVIDERS if model.lower().startswith(start)), "")
        named = {"gen_ai.provider.name": provider, "gen_ai.request.model": model, "gen_ai.response.model": model}
        about |= {key: value for key, value in named.items() if value}
        # By the name of its report a request is known again elsewhere, and counts once.
        if api_id := (usage.api_id if usage else "") or exchange.api_id:
            about["gen_ai.response.id"] = api_id
        if exchange.inputs:
            about["gen_ai.input.messages"] = encode(exchange.inputs).decode()
        if exchange.outputs:
            reason = _REASONS.get((usage.stop_reason if usage else "").lower()) or _reason(exchange.outputs)
            said = {"role": "assistant", "parts": exchange.outputs, "finish_reason": reason}
            about["gen_ai.output.messages"] = encode([said]).decode()
        about |= _usage(usage) if usage is not None else {}
        span = self._span(f"chat {model}".strip(), 3, exchange.start, exchange.end, about)
        if exchange.failure is not None:
            span["status"] = {"code": 2, "message": clean(exchange.failure)}
        speaker.spans.append(span)

    def _span(self, name: str, kind: int, start: int, end: int, about: Record) -> Record:
        return {
            "traceId": self._trace,
            "spanId": self._span_id(),
            "name": clean(name),
            "kind": kind,
            "startTimeUnixNano": str(start * 1000),
            "endTimeUnixNano": str(end * 1000),
            "attributes": _attributes(about),
        }

    def _of_agent(self, agent_id: str) -> Iterator[Record]:
        """The spans of an agent, below its own where it has one."""
        speaker = self._speakers[agent_id]
        created = speaker.created
        if not agent_id or (created is None and not speaker.spans):
            yield from speaker.spans
            return
        about: Record = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": agent_id}
        name = created.name if created is not None else ""
        about |= {"gen_ai.agent.name": name} if name else {}
        times = [int(span[key]) for span in speaker.spans for key in ("startTimeUnixNano", "endTimeUnixNano")]
        begun = (created.time or 0) if created is not None else min(times, default=0) // 1000
        own = self._span(f"invoke_agent {name}".strip(), 1, begun, max(times, default=begun * 1000) // 1000, about)
        own["spanId"] = self._agent_span(agent_id)
        if created is not None and created.parent and created.parent in self._speakers:
            own["parentSpanId"] = self._agent_span(created.parent)
        yield own
        yield from ({**span, "parentSpanId": own["spanId"]} for span in speaker.spans)

    def _agent_span(self, agent_id: str) -> str:
        return ids.artifact_id(f"{self._trace} {agent_id}".encode())[:16]


def trace_of(spans: Sequence[TraceSpan]) -> bytes:
    """Spans that were read, written again: what they say, whoever wrote them first."""
    made = [_written(span) for span in spans]
    return encode({"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}) + b"\n" if made else b""


def _written(span: TraceSpan) -> Record:
    status = {"status": {"code": 2, "message": span.failure}} if span.failed else {}
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **({"parentSpanId": span.parent_id} if span.parent_id else {}),
        "name": span.name,
        "startTimeUnixNano": str((span.start or 0) * 1000),
        "endTimeUnixNano": str((span.end or 0) * 1000),
        "attributes": _attributes(span.attributes),
        "events": [
            {"name": one.name, "timeUnixNano": str((one.time or 0) * 1000), "attributes": _attributes(one.attributes)}
            for one in span.events
        ],
        **status,
    }


def _what(event: Event) -> str:
    """What is lost with an event that no span has a place for."""
    if isinstance(event, Output):
        return "records that could not be read" if event.why else "records that are no conversation"
    if isinstance(event, System):
        return "notices"
    return "edits of a transcript" if event.kind == "transcript_edit" else "records that are no conversation"


# -- parts -------------------------------------------------------------------------------------------------------------


def _text(words: str) -> Record:
    return {"type": "text", "content": clean(words)}


def _shown(text: str, images: Sequence[Image]) -> list[Record]:
    parts = [_text(part) if isinstance(part, str) else _picture(part) for part in split_parts(text, images)]
    return parts or [_text("")]


def _picture(image: Image) -> Record:
    about: Record = {"modality": image.media_type.partition("/")[0] or "image"}
    about |= {"mime_type": image.media_type} if image.media_type else {}
    if image.data:
        return {"type": "blob", **about, "content": image.data}
    return {"type": "uri", **about, "uri": clean(image.url)}


def _call(event: ToolCall) -> Record:
    given: Any = _arguments(event.input)
    about: Record = {"id": clean(event.id), "name": clean(event.name)}
    if event.server_tool:
        inner = {"type": clean(event.name)} | ({} if given is None else {"arguments": given})
        return {"type": "server_tool_call", **about, "server_tool_call": inner}
    return {"type": "tool_call", **about} | ({} if given is None else {"arguments": given})


def _arguments(text: bytes) -> Any:
    """The arguments as an object where nothing of how they were written is lost by that, else as text."""
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return clean(text.decode("utf-8", "replace"))
    return value if isinstance(value, dict) and encode(value) == text else clean(text.decode("utf-8", "replace"))


def _result(event: ToolResult) -> Record:
    response: Any = _shown(event.output, event.images) if event.images else clean(event.output)
    about: Record = {"id": clean(event.id), "response": response}
    about |= {"name": clean(event.name)} if event.name else {}
    return {"type": "tool_call_response", **about} | ({"is_error": True} if event.is_error else {})


def _reason(parts: Sequence[Record]) -> str:
    return "tool_call" if any(part["type"] == "tool_call" for part in parts) else "stop"


def _usage(usage: Metric) -> Record:
    """The counts; what came from the cache and went into it is counted in, by the conventions."""
    tokens = usage.tokens.possible
    given = None if tokens.input is None else tokens.prompt
    counts: Record = {
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": tokens.output,
        "gen_ai.usage.cache_read.input_tokens": tokens.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": tokens.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "gen_ai.usage.cost": usage.cost_usd,
    }
    found = {key: count for key, count in counts.items() if count is not None}
    if usage.api_id and usage.request_id:
        found[REQUEST] = usage.request_id
    return found | ({"gen_ai.response.finish_reasons": [usage.stop_reason]} if usage.stop_reason else {})


def _attributes(about: Record) -> list[Record]:
    return [{"key": key, "value": _value(value)} for key, value in about.items()]


def _value(value: Any) -> Record:
    if isinstance(value, bool):
        return {"boolValue": value}
    if value is None:
        return {}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _attributes(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": clean(value)}
