"""The lines of a rollout, read leniently: wrapped, bare (before 0.32), drifted or broken.

A line is a record only when it is exactly one JSON object, as `kit/jsonl.py` says. Of two objects on one line both are
read as events, but Codex itself passes over such a line: it neither cuts nor belongs to the conversation as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harken.formats.kit.jsonl import is_blank, is_overlong, lines, parse
from harken.formats.kit.openai import ITEMS, Record, parts_of

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


class Line(NamedTuple):
    """One line of a file: `data[start:end]`, the newline included."""

    start: int
    end: int
    record: Record | None
    """None where it is not exactly one JSON object, or empty."""
    blank: bool = False


def iter_lines(data: bytes, start: int = 0) -> Iterator[Line]:
    """Every line from `start` on; the last one may lack its newline."""
    for begin, end in lines(data, start):
        if is_overlong(end - begin):
            yield Line(begin, end, None)
            continue
        line = data[begin:end]
        record = parse(line)
        yield Line(begin, end, record, record is None and is_blank(line))


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
