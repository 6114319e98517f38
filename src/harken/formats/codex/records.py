"""The lines of a rollout, read leniently: wrapped, bare (before 0.32), drifted or broken.

A line is a record only when it is exactly one JSON object. That is decided by RFC 8259 alone: what the fast parser
refuses for reasons of its own (a lone surrogate in an escape) is asked again of the standard library's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import orjson

Record = dict[str, Any]

SESSION_META = "session_meta"
ITEM = "response_item"
EVENT = "event_msg"
TURN_CONTEXT = "turn_context"
COMPACTED = "compacted"
STATE = "state"
"""A bare `{"record_type": "state"}` line of the first versions."""

WRAPPED = frozenset(
    {
        SESSION_META,
        ITEM,
        EVENT,
        TURN_CONTEXT,
        COMPACTED,
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "token_usage_record",
    }
)

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Items that wait for an output with the same `call_id`."""
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
SERVED = frozenset({"web_search_call", "image_generation_call"})
"""Calls the provider answers within its own response."""
SEALED = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""A summary only the provider can read."""
ITEMS = CALLS | OUTPUTS | SERVED | SEALED | {"message", "reasoning", "agent_message", "ghost_snapshot"}


class Line(NamedTuple):
    """One line of a file: `data[start:end]`, the newline included."""

    start: int
    end: int
    record: Record | None
    """None where it is not exactly one JSON object, or empty."""
    blank: bool = False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def parse(line: bytes) -> Record | None:
    """The object the line is, or None."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = _parse_again(line)
    return value if isinstance(value, dict) else None


def _parse_again(line: bytes) -> object:
    # Only a backslash-u can be the reason for a second opinion; everything else is broken for both.
    if b"\\u" not in line:
        return None
    try:
        return json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def encode(value: object) -> bytes:
    """A value as compact JSON text; what the fast encoder refuses (a lone surrogate, deep nesting) is escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def iter_lines(data: bytes, start: int = 0) -> Iterator[Line]:
    """Every line from `start` on; the last one may lack its newline."""
    size = len(data)
    while start < size:
        end = data.find(b"\n", start) + 1 or size
        line = data[start:end]
        record = parse(line)
        yield Line(start, end, record, record is None and not line.strip())
        start = end


def kind_of(record: Record) -> tuple[str, Record]:
    """What a record is and what it says: its type and payload, the bare shapes of old files brought to today's."""
    name, payload = record.get("type"), record.get("payload")
    if isinstance(name, str) and isinstance(payload, dict):
        return name, payload
    return _bare(record)


def _bare(record: Record) -> tuple[str, Record]:
    if record.get("record_type") == STATE:
        return STATE, record
    name = record.get("type")
    if isinstance(name, str):
        return (ITEM, record) if name in ITEMS else (name, record)
    if isinstance(role := record.get("role"), str):
        words = record.get("content", record.get("message"))
        kind = "output_text" if role == "assistant" else "input_text"
        return ITEM, {"type": "message", "role": role, "content": parts_of(words, kind)}
    if isinstance(record.get("id"), str) and "timestamp" in record:
        return SESSION_META, record
    return "", record


def text_of(value: object) -> str:
    """The text in one field, or nothing where it is not text."""
    return value if isinstance(value, str) else ""


def parts_of(content: object, kind: str = "input_text") -> list[Record]:
    """The parts of a message's content; a bare string is one part, of that kind."""
    if isinstance(content, str):
        return [{"type": kind, "text": content}]
    if isinstance(content, list):
        return [part for part in content if isinstance(part, dict)]
    return []


def joined_text(content: object) -> str:
    """The text of a message's content: its parts on lines of their own."""
    return "\n".join(part["text"] for part in parts_of(content) if isinstance(part.get("text"), str))
