"""`claude-stream-v1`: what `claude -p --output-format stream-json` prints, line by line or as one JSON array.

Two shapes are read. The real one nests the API's message (`message.content[]`), repeats its id on every line, and has
an `init` and a `result` line for each turn, whose cost is that of the whole process so far. The specification's flat
one says `{"type":"assistant","subtype":"text","text":…}`. A stream does not echo the prompt it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harken.clock import parse_instant
from harken.events import Error, Event, Metric, Output, Prompt, Response, System, Tokens, ToolCall
from harken.events.base import clean, figure, text_at
from harken.events.messages import signed_thought
from harken.events.runs import AGENT, AGENTS
from harken.events.tally import SYNTHETIC

from .base import Format
from .claude_code.branch import preserved_by
from .claude_code.read import metric_of, run_metric
from .claude_code.records import Compacted, by_fields, by_text, has_result, soften
from .kit.anthropic import assistant_event, tool_result, user_events
from .kit.claims import NO_CLAIM, Claim
from .kit.jsonl import SPACE, NotJson, Record, encode, lines, parse, parse_document, read_head, take_apart

QUIET = frozenset(
    {
        "stream_event", "tool_progress", "tool_use_summary", "auth_status", "rate_limit_event", "elicitation_complete",
        "prompt_suggestion", "conversation_reset", "control_request", "control_response", "control_cancel_request",
        "keep_alive", "command_lifecycle",
    }
)  # fmt: skip
"""Lines that are understood and are no conversation."""


class ClaudeStreamReader:
    """Reads a stream as it comes; one reader per process that is listened to."""

    def __init__(self) -> None:
        self.session_id = ""
        """The session the stream is of, once a line of it has named one."""
        self._offset = 0
        self._totals = Tokens()
        self._used, self._used_by_main = Tokens(), Tokens()
        """What the process has used up to its last result, and how much of that its main conversation."""
        self._agents: dict[str, Tokens] = {}
        """What the requests of sub-agents used, as far as the stream tells."""
        self._run = ""

    def feed(self, line: bytes) -> list[Event]:
        """The events on the next line, which may lack its newline."""
        place = self._offset
        self._offset += len(line) + (not line.endswith(b"\n"))
        objects, rest = take_apart(line, 0, len(line))
        events: list[Event] = []
        for value, first, last in objects:
            events += self.record(value, f"@{place + first}", line[first:last].strip(SPACE))
        if rest is not None:
            events.append(Output(message_id=f"@{place + rest.start}", raw=rest.raw, why=rest.why))
        return events

    def record(self, record: Record, place: str, raw: bytes) -> list[Event]:
        """The events of one record; `place` names it where it has no uuid."""
        if not self.session_id and isinstance(session := record.get("session_id"), str):
            self.session_id = clean(session)
        body = record.get("message")
        inner = body if isinstance(body, dict) else None
        name = text_at(record, "uuid") or place
        agent = text_at(record, "agent_id") or text_at(record, "parent_tool_use_id")
        shared = {
            "message_id": name,
            "agent_id": agent if record.get("parent_tool_use_id") else "",
            "time": parse_instant(record.get("timestamp")),
            "api_id": text_at(inner, "id") if inner is not None else "",
        }
        made = list(self._events(record, inner, raw)) or [Output(raw=raw)]
        if shared["agent_id"]:
            made = [self._of_agent(event, str(shared["api_id"])) for event in made]
        self._run = self._run or name
        return [event.replace(index=index, **shared) for index, event in enumerate(made)]

    def _events(self, record: Record, body: Record | None, raw: bytes) -> Iterator[Event]:
        kind = record.get("type")
        if kind == "system":
            yield System(subtype=text_at(record, "subtype"), message=text_at(record, "message"), metadata=raw)
        elif kind == "assistant":
            yield from _assistant(record, body, raw)
        elif kind == "user":
            yield from _user(record, body, raw)
        elif kind == "tool" and record.get("subtype") == "result":
            yield tool_result(record)
        elif kind == "result":
            yield from self._result(record)
        else:
            known = isinstance(kind, str) and kind in QUIET
            yield Output(raw=raw, why="" if known else f"unknown record type {kind!r}")

    def _of_agent(self, event: Event, api_id: str) -> Event:
        """An event on a sub-agent's line. What its requests used is no part of what the main conversation did."""
        if not isinstance(event, Metric):
            return event
        self._agents[f"{api_id} {event.request_id}"] = event.tokens
        of_agent: Metric = event.replace(scope=AGENT)
        return of_agent

    def _result(self, record: Record) -> Iterator[Event]:
        """A turn's end: the tokens of the turn, and the cost of the whole session so far, as the line has it. Once a
        sub-agent has said something, the turn's are those of the main conversation, and the rest is told beside it."""
        metric = run_metric(record)
        total = _model_totals(record, "modelUsage")
        # Newer builds say what the turn added; the totals of a resumed session begin with those before it.
        added = _model_totals(record, "model_usage_since_last_result")
        if added is None and total is not None:
            added = total.minus(self._totals)
        self._totals = total or self._totals
        by_main = metric.tokens
        self._used += added or Tokens()
        self._used_by_main += by_main
        if added is not None and (not self._agents or by_main.output is None):
            metric = metric.with_tokens(added)
        yield metric
        if self._agents and added is not None:
            known = sum(self._agents.values(), self._used_by_main)
            rest = Metric(scope=AGENTS, request_id=self._run)
            yield rest.with_tokens(self._used.minus(known))
        if record.get("is_error") is True:
            yield Error(message=text_at(record, "result") or text_at(record, "subtype"))


def _assistant(record: Record, body: Record | None, raw: bytes) -> Iterator[Event]:
    if body is None:
        yield _flat(record, raw)
        return
    content = body.get("content")
    model = text_at(body, "model")
    if not isinstance(content, str | list):
        yield Output(raw=raw, why="an assistant record without content")
        return
    for block in [content] if isinstance(content, str) else content:
        event = assistant_event(block, model)
        yield Error(message=event.content) if record.get("error") and isinstance(event, Response) else event
    if model != SYNTHETIC and (metric := metric_of(record, body)) is not None:
        # Until a message says why it stopped, its output is no more than what it had when it began.
        known = metric if body.get("stop_reason") else metric.replace(output_tokens=None)
        yield known.replace(model=model, request_id=text_at(record, "request_id"))


def _flat(record: Record, raw: bytes) -> Event:
    """The specification's shape: one block, spread over the record."""
    subtype = record.get("subtype")
    if subtype == "text":
        return Response(content=text_at(record, "text"), model=text_at(record, "model"))
    if subtype == "thinking":
        return signed_thought(text_at(record, "thinking"), text_at(record, "signature"), redacted=False)
    if subtype in ("tool_use", "server_tool_use"):
        return ToolCall(
            id=text_at(record, "tool_use_id") or text_at(record, "id"),
            name=text_at(record, "name"),
            input=encode(record.get("input", {})),
            server_tool=subtype == "server_tool_use",
        )
    return Output(raw=raw, why=f"unknown assistant record {subtype!r}")


def _user(record: Record, body: Record | None, raw: bytes) -> Iterator[Event]:
    content = body.get("content") if body is not None else record.get("content")
    if not isinstance(content, str | list):
        yield Output(raw=raw, why="a user record without content")
        return
    if body is None:
        texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        said = content if isinstance(content, str) else "\n".join(text for text in texts if isinstance(text, str))
        yield Prompt(content=clean(said))
        return
    fixed = "beside_result" if has_result(content) else by_fields(record)
    if fixed is None and record.get("parent_tool_use_id"):
        fixed = "agent"
    yield from user_events(content, fixed, by_text)


def _model_totals(record: Record, key: str) -> Tokens | None:
    """The tokens of all models together, sub-agents included."""
    models = record.get(key)
    rows = [row for row in models.values() if isinstance(row, dict)] if isinstance(models, dict) else []
    if not rows:
        return None
    return sum((_row_tokens(row) for row in rows), Tokens())


def _row_tokens(row: Record) -> Tokens:
    return Tokens(
        input=figure(row.get("inputTokens")),
        output=figure(row.get("outputTokens")),
        cache_read=figure(row.get("cacheReadInputTokens")),
        cache_write=figure(row.get("cacheCreationInputTokens")),
    )


def read(data: bytes) -> Iterable[Event]:
    """Every event of a whole stream, whether lines or the array that claude-code-action writes."""
    reader = ClaudeStreamReader()
    if data.lstrip()[:1] == b"[":
        try:
            items = parse_document(data)
        except NotJson:
            items = None
        if isinstance(items, list):
            return [event for number, item in enumerate(items) for event in _item(reader, item, number)]
    return [event for start, end in lines(data) for event in reader.feed(data[start:end])]


def _item(reader: ClaudeStreamReader, item: Any, number: int) -> list[Event]:
    raw = encode(item)
    if isinstance(item, dict):
        return reader.record(item, f"@{number}", raw)
    return [Output(message_id=f"@{number}", raw=raw, why="an item that is not a JSON object")]


_FLAT = frozenset({"text", "thinking", "tool_use"})
"""Subtypes of the specification's assistant lines."""
_CONTROL = frozenset({"control_request", "control_response", "control_cancel_request"})


def preserved_in(boundary: bytes, order: Sequence[str]) -> set[str]:
    """The ids that a boundary record says were kept, of records that came in this order. A stream spells its fields
    with underscores, a file does not."""
    record = _camel(parse(boundary) or {})
    meta = soften({"compactMetadata": record.get("compactMetadata") or record}).compactMetadata or Compacted()

    def between(head: str | None, tail: str | None) -> list[str]:
        if head not in order or tail not in order:
            return []
        return list(order[order.index(head) : order.index(tail) + 1])

    return set(filter(None, preserved_by(meta, str, between)[1]))


def _camel(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {_WORD.sub(lambda word: word[1].upper(), key): _camel(inner) for key, inner in value.items()}


_WORD = re.compile("_([a-z])")


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, by what only Claude Code puts on such lines: others print the same types and less beside them."""
    found = NO_CLAIM
    for number, record in enumerate(read_head(head), 1):
        if "sessionId" in record or "qwen_code_version" in record or text_at(record, "session_id").startswith("T-"):
            return NO_CLAIM
        score, reason = _judge(record)
        if score > found.score:
            found = Claim(score=score, reason=f"line {number} {reason}")
    return found


def _judge(record: Record) -> tuple[int, str]:
    kind, subtype, has = record.get("type"), record.get("subtype"), record.keys().__contains__
    if kind == "system" and subtype == "init":
        if has("claude_code_version") or all(map(has, ("apiKeySource", "mcp_servers", "permissionMode"))):
            return 95, "is the `init` of Claude Code"
        return (55, "is an `init` with tools and a session") if has("tools") and has("mcp_servers") else (0, "")
    if kind in ("assistant", "user") and isinstance(record.get("message"), dict):
        if has("session_id") and (has("parent_tool_use_id") or has("uuid")):
            return 90, f"is a `{kind}` line with `session_id`, and `parent_tool_use_id` or `uuid`"
        return 0, ""
    if (kind == "assistant" and subtype in _FLAT) or (kind == "tool" and subtype == "result" and has("tool_use_id")):
        return 75, "has the shape of the specification"
    if kind == "result" and has("num_turns") and (has("total_cost_usd") or has("cost_usd")):
        return 85, "is a `result` with turns and cost"
    if kind in _CONTROL and ("request_id" in record or "request_id" in (record.get("response") or ())):
        return 60, f"is a `{kind}`"
    if (kind == "system" or kind in QUIET) and has("session_id") and has("uuid"):
        return 70, f"is a `{kind}` line with `session_id` and `uuid`"
    return 0, ""


FORMAT = Format(
    name="claude-stream-v1",
    media_type="application/jsonl",
    description="What Claude Code prints with `--output-format stream-json`: one JSON object per line.",
    claim=claim,
    reader=read,
)
