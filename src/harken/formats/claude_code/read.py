"""A file as events: one handler per record type, and nothing is dropped.

A record that says several things gives several events under one `message_id` (its uuid, else `@<byte offset>`),
told apart by `index`. Side records are `output` events without a reason, since they were understood and are no
conversation; what nobody can read is an `output` event with one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from msgspec.structs import force_setattr

from harken.clock import parse_instant
from harken.events import (
    Error,
    Event,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.events.base import clean, figure
from harken.events.runs import EMBEDDED, SO_FAR
from harken.events.tally import SYNTHETIC
from harken.formats.facts import prompt_name
from harken.formats.kit.anthropic import assistant_event, blocks_of, served_as, user_events
from harken.formats.kit.jsonl import Record, encode, is_overlong, lines, take_apart

from .attachments import RENDERERS, MessageBlocks, tell
from .branch import Node, choose, survey
from .records import by_fields, by_text, cost_so_far, has_result, known_type, real, take, texts

TASK_TOOLS = ("Task", "Agent")
"""The tools that start a sub-agent; their argument `prompt` is the first that it hears."""
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
            "api_id": clean(_text(body, "id")) if isinstance(body, dict) else "",
        }
        for index, event in enumerate(made):  # nobody has them yet: to make them anew would take three times as long
            force_setattr(event, "index", index)
            for key, value in shared.items():
                if value != "" and not getattr(event, key):
                    force_setattr(event, key, value)
        return made

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
    yield from user_events(content, fixed, by_text, cause=clean(source) or None)


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


def metric_of(record: Record, body: Record) -> Metric | None:
    """What a message cost: its `usage`, or the fields that early builds wrote beside it."""
    usage = body.get("usage")
    cost = real(record.get("costUSD"))
    if isinstance(usage, dict):
        metered = usage_metric(usage, cost_usd=cost)
        # Zeros in a record with this mark say that nobody counted: the program itself takes them so.
        if record.get("isUnmetered") is not True or any(_figures(metered)):
            return metered
    metric = Metric(
        cost_usd=cost,
        input_tokens=figure(record.get("inputTokens")),
        output_tokens=figure(record.get("outputTokens")),
        cache_read_tokens=figure(record.get("cacheReadInputTokens")),
        cache_write_tokens=figure(record.get("cacheCreationInputTokens")),
    )
    return None if metric == Metric() else metric


def _figures(metric: Metric) -> tuple[int | None, ...]:
    return metric.input_tokens, metric.output_tokens, metric.cache_read_tokens, metric.cache_write_tokens


def usage_metric(usage: Record, **rest: Any) -> Metric:
    """A metric with the figures of a `usage` object."""
    written, details = usage.get("cache_creation"), usage.get("output_tokens_details")
    return Metric(
        cache_write_1h_tokens=figure(written.get("ephemeral_1h_input_tokens")) if isinstance(written, dict) else None,
        reasoning_tokens=figure(details.get("thinking_tokens")) if isinstance(details, dict) else None,
        input_tokens=figure(usage.get("input_tokens")),
        output_tokens=figure(usage.get("output_tokens")),
        cache_read_tokens=figure(usage.get("cache_read_input_tokens")),
        cache_write_tokens=figure(usage.get("cache_creation_input_tokens")),
        served=served_as(usage),
        **rest,
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
        yield from user_events(prompt, fixed, by_text)
        return
    turns = render(record)
    if not turns:
        yield Output(raw=raw)
    for blocks in turns:
        yield from user_events(blocks, f"attachment:{kind}", by_text)


def render(record: Record) -> MessageBlocks:
    """What the model is told of an attachment record: word for word what was sent, where the record holds it."""
    written = record.get("rendered")
    if isinstance(written, list):
        return [blocks for item in written if isinstance(item, dict) and (blocks := blocks_of(item.get("content")))]
    data = record.get("attachment")
    if isinstance(data, dict) and isinstance(kind := data.get("type"), str) and kind in RENDERERS:
        return tell(data)
    return []


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
            scope=EMBEDDED,
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
    return usage_metric(
        figures,
        cost_usd=real(record.get("cost_usd")) if cost is None else cost,
        duration_seconds=seconds,
        turn_count=figure(record.get("num_turns")) or 0,
        status=clean(_text(record, "subtype")),
    )


def _cost_state(record: Record, raw: bytes) -> Iterator[Event]:
    """What the session has cost so far, its sub-agents included; each of these records includes the ones before."""
    cost = cost_so_far(record)
    yield Output(raw=raw) if cost is None else Metric(cost_usd=cost, scope=SO_FAR)


RECORDS: dict[str, Callable[[Record, bytes], Iterator[Event]]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
    "progress": _progress,
    "result": _result,
    "cost-state": _cost_state,
}
"""What the records of a type say, by handlers that know nothing but the record."""

LOCAL_COMMAND = "local_command"
"""The one kind of notice, besides a summary, that goes to the model."""
ATTACHED = "attachment:"
"""How the origin of a prompt begins that is an attachment."""


def read_conversation(data: bytes) -> list[Event]:
    """The conversation as it stands, as events in the order the model reads them.

    A file is not in that order: what a compaction preserved stands before the summary it belongs behind, and records
    of one message may have others between them. A translation into another runtime's session begins from this.
    """
    found = survey(data)
    reader = RecordReader()
    order = dict.fromkeys(choose(found).order)
    heard = (_as_heard(event) for index in order for event in _events_at(reader, data, found.nodes[index]))
    return _by_message(_once(heard))


def _as_heard(event: Event) -> Event:
    """A local command and its output are written as a notice, but the model reads them as a prompt."""
    if not isinstance(event, System) or event.subtype != LOCAL_COMMAND or not event.message:
        return event
    return Prompt(
        message_id=event.message_id,
        agent_id=event.agent_id,
        time=event.time,
        index=event.index,
        content=event.message,
        source="injected",
        origin=by_text(event.message) or "local_command_output",
    )


def _once(events: Iterable[Event]) -> Iterator[Event]:
    """Without what is said again: a file may hold the records of a message twice, under other names."""
    seen: set[tuple[str, str, str]] = set()
    for event in events:
        match event:
            case ToolCall() | ToolResult():
                key = (event.kind, event.id, "")
            case Response():
                key = (event.kind, event.api_id, event.content)
            case _:
                yield event
                continue
        if not key[1] or key not in seen:
            yield event
        seen.add(key)


def _by_message(events: Iterable[Event]) -> list[Event]:
    """What one message says in one place, before any result: a tool may have answered while the model still spoke."""
    ordered: list[Event] = []
    message, end = "", 0
    for event in events:
        if isinstance(event, Response | Thinking | ToolCall):
            if not event.api_id or event.api_id != message:
                message, end = event.api_id, len(ordered)
            ordered.insert(end, event)
            end += 1
            continue
        if isinstance(event, Prompt) and not event.origin.startswith(ATTACHED):
            message = ""
        ordered.append(event)
    return ordered


def _events_at(reader: RecordReader, data: bytes, node: Node) -> Iterator[Event]:
    places = [(node.start, node.end)] if node.summary is None else [(node.start, node.end), node.summary]
    for place in places:
        for value, start, end in take_apart(data, *place)[0]:
            # Of two objects on one line each is a record of its own, and told where it belongs.
            if place == node.summary or value.get("uuid") == node.line.uuid:
                yield from reader.record(value, f"@{start}", data[start:end].rstrip(b"\r\n"))


def side_chains(data: bytes) -> dict[str, bytes]:
    """The lines of sub-agents inside their parent's file, verbatim and in order, as the oldest versions wrote them.

    By agent: under its id, which newer records name; or under the uuid of its first record, which is a side-chain
    record whose parent is none, and to which everything below it belongs.
    """
    agents: dict[str, list[bytes]] = {}
    owner: dict[str, str] = {}
    for start, end in lines(data):
        if is_overlong(end - start):
            continue
        text = data[start:end]
        line = take(text)
        if line is None or line.isSidechain is not True or not (line.agentId or line.uuid):
            continue
        agent = line.agentId or owner.get(line.parentUuid or "") or line.uuid or ""
        if line.uuid:
            owner[line.uuid] = agent
        agents.setdefault(agent, []).append(text)
    return {agent: b"".join(texts) for agent, texts in agents.items()}


def asked(record: Record) -> Iterator[tuple[str, str]]:
    """The calls of a record that start sub-agents, and the names of the prompts they give."""
    body = record.get("message")
    content = body.get("content") if isinstance(body, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("name") in TASK_TOOLS and isinstance(block.get("input"), dict):
            call, prompt = block.get("id"), block["input"].get("prompt")
            if isinstance(call, str) and isinstance(prompt, str):
                yield clean(call), prompt_name(prompt)
