"""What all three say: a record is an object with an id, a time and a role.

{"id", "time", "role": "user", "text"}                {"id", "time", "role": "call", "call", "name", "arguments"}
{"id", "time", "role": "assistant", "text", "tokens"}  {"id", "time", "role": "result", "call", "text", "error"}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harken import clock
from harken.events import Event, Metric, Output, Prompt, Response, ToolCall, ToolResult
from harken.formats import Loss

Record = dict[str, Any]


def parse(line: bytes) -> Record | None:
    """The record in some bytes, if there is one."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def encode(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode()


def events_of(raw: bytes) -> list[Event]:
    """The events of one record; what is no record is kept with the reason."""
    record = parse(raw)
    if record is None:
        return [Output(raw=raw, why="not a JSON object")]
    time, name = record.get("time"), record.get("id")
    known: dict[str, Any] = {"message_id": name if isinstance(name, str) else "", "time": None}
    if isinstance(time, int) and clock.in_calendar(time):
        known["time"] = time
    text = record.get("text") if isinstance(record.get("text"), str) else ""
    call = record.get("call") if isinstance(record.get("call"), str) else ""
    match record.get("role"):
        case "user":
            return [Prompt(content=text, **known)]
        case "assistant":
            return [Response(content=text, **known), *_usage(record.get("tokens"), known)]
        case "call":
            tool = record.get("name") if isinstance(record.get("name"), str) else ""
            return [ToolCall(id=call, name=tool, input=encode(record.get("arguments") or {}), **known)]
        case "result":
            return [ToolResult(id=call, output=text, is_error=record.get("error") is True, **known)]
        case None:
            return []
    return [Output(raw=raw, why=f"no known role: {record.get('role')!r}"[:100])]


def _usage(tokens: object, known: dict[str, Any]) -> list[Event]:
    if isinstance(tokens, list) and len(tokens) == 2 and all(type(n) is int and 0 <= n < 1 << 40 for n in tokens):
        figures = {
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
        }
        return [Metric(api_id=known["message_id"], index=1, **figures, **known)]
    return []


def records_of(events: Sequence[Event]) -> tuple[list[Record], tuple[Loss, ...]]:
    """The records for events, and what they could not say."""
    records: list[Record] = []
    lost = 0
    for number, event in enumerate(events):
        record: Record = {"id": event.message_id or f"r{number}", "time": event.time}
        match event:
            case Prompt():
                record |= {"role": "user", "text": event.content}
            case Response():
                record |= {"role": "assistant", "text": event.content}
            case ToolCall():
                record |= {"role": "call", "call": event.id, "name": event.name, "arguments": parse(event.input) or {}}
            case ToolResult():
                record |= {"role": "result", "call": event.id, "text": event.output, "error": event.is_error}
            case Metric():
                continue
            case _:
                lost += 1
                continue
        records.append(record)
    losses = (Loss(what="other record", count=lost, why="there is no place for it"),) if lost else ()
    return records, losses
