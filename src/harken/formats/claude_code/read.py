"""A file as events: one handler per record type, and nothing is dropped.

A record that says several things gives several events under one `message_id` (its uuid, else `@<byte offset>`),
told apart by `index`. Side records are `output` events without a reason, since they were understood and are no
conversation; what nobody can read is an `output` event with one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from harken.clock import parse_instant
from harken.events import (
    Error,
    Event,
    Image,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
)
from harken.events.tally import NESTED, SYNTHETIC, figure
from harken.events.text import clean
from harken.formats.kit.jsonl import encode, lines, take_apart

from .attachments import render
from .classify import HUMAN, by_fields, by_text, has_result, kind_of_block, texts
from .records import real, take
from .types import BLOCKS, CALL, RESPONSE, RESULT, THINKING, known_type, says

Record = dict[str, Any]
API_ERROR = "api_error"
"""The subtype of a `system` record about a request that failed."""


def read(data: bytes) -> Iterator[Event]:
    """Every event of the file, in its order."""
    reader = RecordReader(_summarized(data))
    for start, end in lines(data):
        objects, rest = take_apart(data, start, end)
        for value, first, last in objects:
            yield from reader.record(value, f"@{first}", data[first:last].rstrip(b"\r\n"))
        if rest is not None:
            yield Output(message_id=f"@{rest.start}", raw=rest.raw, why=rest.why)


class RecordReader:
    """Turns records into events; remembers which agent a side chain belongs to and where a compaction stands."""

    def __init__(self, summarized: Container[str] = ()) -> None:
        self._owners: dict[str, str] = {}
        self._summarized = summarized
        """The boundaries that have a summary record of their own; a `summary` behind them is a title."""
        self._boundary = ""

    def record(self, record: Record, place: str, raw: bytes) -> list[Event]:
        """The events of one record; `place` names it where it has no uuid."""
        kind = record.get("type")
        handler = RECORDS.get(kind) if isinstance(kind, str) else None
        boundary, self._boundary = self._boundary, _boundary_name(record, place)
        made: list[Event]
        if kind == "summary" and boundary and boundary not in self._summarized:
            made = [Prompt(content=clean(_text(record, "summary")), source="injected", origin="compact_summary")]
        elif handler is not None:
            made = list(handler(record, raw))
        else:
            made = [Output(raw=raw, why="" if known_type(kind) else f"unknown record type {kind!r}")]
        return self._stamp(made or [Output(raw=raw)], record, place)

    def _stamp(self, made: list[Event], record: Record, place: str) -> list[Event]:
        body = record.get("message")
        shared = {
            "message_id": clean(_text(record, "uuid")) or place,
            "agent_id": clean(self._agent(record)),
            "time": parse_instant(record.get("timestamp")),
        }
        if isinstance(body, dict) and isinstance(name := body.get("id"), str):
            shared["api_id"] = clean(name)
        return [
            event.replace(index=index, **{key: value for key, value in shared.items() if not getattr(event, key)})
            for index, event in enumerate(made)
        ]

    def _agent(self, record: Record) -> str:
        """The agent a record is of: the one it names, else the first record of its side chain."""
        named = _text(record, "agentId")
        if record.get("isSidechain") is not True:
            return named if _text(record, "type") in _OWNED else ""
        uuid = _text(record, "uuid")
        agent = named or self._owners.get(_text(record, "parentUuid")) or uuid
        if uuid:
            self._owners[uuid] = agent
        return agent


_OWNED = frozenset({"user", "assistant", "system", "attachment"})


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _boundary_name(record: Record, place: str) -> str:
    is_boundary = record.get("type") == "system" and record.get("subtype") == "compact_boundary"
    return (_text(record, "uuid") or place) if is_boundary else ""


def _summarized(data: bytes) -> set[str]:
    found: set[str] = set()
    at = data.find(b'"isCompactSummary"')
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1 or len(data)
        line = take(data[start:end])
        if line is not None and line.isCompactSummary is True and line.parentUuid:
            found.add(line.parentUuid)
        at = data.find(b'"isCompactSummary"', end)
    return found


def _user(record: Record, raw: bytes) -> Iterator[Event]:
    body = record.get("message")
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(content, str | list):
        yield Output(raw=raw, why="a user record without content")
        return
    fixed = "beside_result" if has_result(content) else by_fields(record)
    source = _text(record, "sourceToolAssistantUUID")
    yield from user_events(content, fixed, cause=clean(source) or None)


def user_events(content: Any, fixed: str | None, *, cause: str | None = None) -> Iterator[Event]:
    """What a user message says: prompts (texts of one kind together) and results, in order.

    `fixed` is the kind of all its texts, where something else than the texts says it.
    """
    blocks: list[Any] = [content] if isinstance(content, str) else content
    if not blocks:
        yield Prompt(source=_source(fixed or HUMAN), origin=fixed or HUMAN)
    waiting: list[tuple[str, str, Image | None]] = []
    for block in blocks:
        if (part := _prompt_part(block, fixed)) is not None:
            waiting.append(part)
            continue
        yield from _prompts(waiting)
        waiting = []
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield tool_result(block, cause)
        else:
            yield Output(raw=encode(block), why=_why_block(block))
    yield from _prompts(waiting)


def _prompt_part(block: Any, fixed: str | None) -> tuple[str, str, Image | None] | None:
    """A text or a picture with its kind; None for any other block."""
    if (kind := kind_of_block(block, fixed)) is None:
        return None
    if isinstance(block, str):
        return kind, block, None
    return (kind, block["text"], None) if block["type"] == "text" else (kind, "", image_of(block))


def _source(kind: str) -> str:
    return "injected" if kind else "user"


def _prompts(parts: list[tuple[str, str, Image | None]]) -> Iterator[Event]:
    """Neighbours of the same kind as one prompt."""
    while parts:
        kind = parts[0][0]
        count = next((place for place, part in enumerate(parts) if part[0] != kind), len(parts))
        texts = [text for _, text, image in parts[:count] if image is None]
        images = tuple(image for _, _, image in parts[:count] if image is not None)
        yield Prompt(content=clean("\n".join(texts)), source=_source(kind), origin=kind, images=images)
        parts = parts[count:]


def image_of(block: Record) -> Image:
    """The picture in an image block."""
    source = block.get("source")
    inner = source if isinstance(source, dict) else {}
    return Image(
        media_type=clean(_text(inner, "media_type")), data=clean(_text(inner, "data")), url=clean(_text(inner, "url"))
    )


def tool_result(block: Record, cause: str | None = None) -> ToolResult:
    """A `tool_result` block."""
    content = block.get("content")
    parts = content if isinstance(content, list) else [content] if content is not None else []
    said: list[str] = []
    images: list[Image] = []
    for part in parts:
        if isinstance(part, str):
            said.append(part)
        elif isinstance(part, dict) and part.get("type") == "text":
            said.append(_text(part, "text"))
        elif isinstance(part, dict) and part.get("type") == "image":
            images.append(image_of(part))
        else:
            said.append(encode(part).decode())
    return ToolResult(
        id=clean(_text(block, "tool_use_id")),
        output=clean("\n".join(said)),
        is_error=block.get("is_error") is True,
        images=tuple(images),
        cause=cause,
    )


def _assistant(record: Record, raw: bytes) -> Iterator[Event]:
    body = record.get("message")
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(content, str | list):
        yield Output(raw=raw, why="an assistant record without content")
        return
    model = clean(_text(body, "model"))
    failed = record.get("isApiErrorMessage") is True
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        event = assistant_event(block, model)
        yield Error(message=event.content) if failed and isinstance(event, Response) else event
    if model != SYNTHETIC and (metric := metric_of(record, body)) is not None:
        # A message that the API gave no id is named by its record, which a fork copies with its uuid.
        name = clean(_text(body, "id") or _text(record, "uuid"))
        yield metric.replace(model=model, request_id=clean(_text(record, "requestId")), api_id=name)


def assistant_event(block: Any, model: str) -> Event:
    """A block of an assistant message."""
    if isinstance(block, str):
        return Response(content=clean(block), model=model)
    if not isinstance(block, dict):
        return Output(raw=encode(block), why=_why_block(block))
    kind = block.get("type")
    said = says(kind)
    if said == RESPONSE:
        return Response(content=clean(_text(block, "text")), model=model)
    if said == THINKING:
        # The sealed kind has nothing but `data`.
        signature = _text(block, "data" if kind == "redacted_thinking" else "signature")
        return Thinking(content=clean(_text(block, "thinking")), signature=clean(signature))
    if said == CALL:
        return ToolCall(
            id=clean(_text(block, "id")),
            name=clean(_text(block, "name")),
            input=encode(block.get("input", {})),
            server_tool=kind != "tool_use",
        )
    if said == RESULT:
        return tool_result(block)
    return Output(raw=encode(block), why=_why_block(block))


def _why_block(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return "" if isinstance(kind, str) and kind in BLOCKS else f"unknown content block {kind!r}"


def metric_of(record: Record, body: Record) -> Metric | None:
    """What a message cost: its `usage`, or the fields that early builds wrote beside it."""
    usage = body.get("usage")
    cost = real(record.get("costUSD"))
    if isinstance(usage, dict):
        return Metric(cost_usd=cost).with_tokens(_tokens(usage))
    metric = Metric(cost_usd=cost).with_tokens(
        Tokens(
            input=figure(record.get("inputTokens")),
            output=figure(record.get("outputTokens")),
            cache_read=figure(record.get("cacheReadInputTokens")),
            cache_write=figure(record.get("cacheCreationInputTokens")),
        )
    )
    return None if metric == Metric() else metric


def _tokens(usage: Record) -> Tokens:
    """The figures of a `usage` object."""
    return Tokens(
        input=figure(usage.get("input_tokens")),
        output=figure(usage.get("output_tokens")),
        cache_read=figure(usage.get("cache_read_input_tokens")),
        cache_write=figure(usage.get("cache_creation_input_tokens")),
    )


def _system(record: Record, raw: bytes) -> Iterator[Event]:
    subtype = clean(_text(record, "subtype"))
    yield System(subtype=subtype, message=clean(_text(record, "content")), metadata=raw)
    if subtype == API_ERROR:
        error = record.get("error")
        yield Error(message=clean(error if isinstance(error, str) else encode(error).decode()))


def _attachment(record: Record, raw: bytes) -> Iterator[Event]:
    data = record.get("attachment")
    kind = clean(_text(data, "type")) if isinstance(data, dict) else ""
    if kind == "queued_command" and isinstance(data, dict) and isinstance(prompt := data.get("prompt"), str | list):
        # Typed by a person while the agent was busy, unless it says otherwise.
        fixed = by_fields(data)
        if fixed is None and data.get("commandMode") not in (None, "prompt"):
            fixed = next(filter(None, map(by_text, texts(prompt))), "queued")
        yield from user_events(prompt, fixed)
        return
    turns, _ = render(record)
    if not turns:
        yield Output(raw=raw)
        return
    for blocks in turns:
        yield from user_events(blocks, f"attachment:{kind}")


def _progress(record: Record, raw: bytes) -> Iterator[Event]:
    yield Output(raw=raw)
    data = record.get("data")
    inner = data.get("message") if isinstance(data, dict) else None
    body = inner.get("message") if isinstance(inner, dict) else None
    if not isinstance(data, dict) or not isinstance(inner, dict) or not isinstance(body, dict):
        return
    if not isinstance(body.get("id"), str) or not isinstance(body.get("usage"), dict) or body.get("model") == SYNTHETIC:
        return
    metric = metric_of({}, body)
    if metric is not None:
        yield metric.replace(
            api_id=clean(body["id"]),
            agent_id=clean(_text(data, "agentId")),
            request_id=clean(_text(inner, "requestId")),
            model=clean(_text(body, "model")),
            status=NESTED,
        )


def _result(record: Record, raw: bytes) -> Iterator[Event]:
    """The end of a run, as the specification has it; real files have it only in the stream."""
    if "subtype" not in record:
        yield Output(raw=raw)
        return
    yield run_metric(record)


def run_metric(record: Record) -> Metric:
    """What a whole run cost, in the real shape (nested `usage`, `total_cost_usd`) or the specification's flat one."""
    usage = record.get("usage")
    figures = usage if isinstance(usage, dict) else record
    seconds = real(record.get("duration_seconds")) or (real(record.get("duration_ms")) or 0.0) / 1000
    cost = real(record.get("total_cost_usd"))
    return Metric(
        cost_usd=real(record.get("cost_usd")) if cost is None else cost,
        duration_seconds=seconds,
        turn_count=figure(record.get("num_turns")) or 0,
        status=clean(_text(record, "subtype")),
    ).with_tokens(_tokens(figures))


RECORDS: dict[str, Callable[[Record, bytes], Iterator[Event]]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
    "progress": _progress,
    "result": _result,
}
"""What the records of a type say, by handlers that know nothing but the record."""
