"""The records of a Claude Code file as events: by the reader of the format, and what only a capture has to know.

The specification's flat shape (`{"type": "tool_use", "tool_name": …}`) is brought into the real one first.
"""

from __future__ import annotations

import json
from typing import Any

from harken.events import Event, Output, System, ToolResult
from harken.events.base import clean
from harken.formats.claude_code.read import RecordReader
from harken.formats.kit.jsonl import Record, take_apart
from harken.formats.session_log.copies import CLAUDE_SESSION

SNAPSHOT = "prompt_snapshot"
"""The attachment that says which instructions the model was given."""
_FLAT = frozenset({"user", "assistant", "tool_use", "tool_result", "system"})


class WrittenRecord:
    """One record: its name, its events, and what else is said of each entry among them."""

    __slots__ = ("about", "agent", "answer", "digest", "events", "nth", "raw", "record", "uuid")

    def __init__(self, record: Record, events: list[Event], raw: bytes) -> None:
        self.record = record
        self.events = events
        self.raw = raw
        self.uuid = text(record, "uuid")
        self.agent = events[0].agent_id if events else ""
        self.about = about_of(record)
        self.answer = ""
        """The record in which the model next speaks, as far as it was read together with this one."""
        self.digest, self.nth = "", 0
        """What its bytes are, and the how manieth of these it is in its file."""


class FileRecords:
    """The records of one file, line by line."""

    def __init__(self) -> None:
        self._reader = RecordReader()

    def of_line(self, line: bytes) -> list[WrittenRecord]:
        """The records on a line; what is none is one that is kept as it is."""
        objects, rest = take_apart(line, 0, len(line))
        found = [self._read(value, line[first:last].rstrip(b"\r\n")) for value, first, last in objects]
        if rest is not None:
            found.append(WrittenRecord({}, [Output(raw=rest.raw, why=rest.why)], rest.raw))
        return found

    def _read(self, record: Record, raw: bytes) -> WrittenRecord:
        shaped = real_shape(record)
        events = self._reader.record(shaped, "", raw)
        if record is not shaped and record.get("type") == "tool_result" and (name := clean(text(record, "tool_name"))):
            events = [event.replace(name=name) if isinstance(event, ToolResult) else event for event in events]
        if record is not shaped and record.get("type") == "system":
            events = [
                event.replace(subtype="instructions", metadata=b"") if isinstance(event, System) else event
                for event in events
            ]
        if (words := snapshot_of(record)) is not None:
            told = events[0].replace(index=1)
            same = {"message_id": told.message_id, "agent_id": told.agent_id, "time": told.time}
            events = [System(subtype="instructions", message=words, **same), told]
        found = WrittenRecord(shaped, events, raw)
        found.about = about_of(record)
        return found


def snapshot_of(record: Record) -> str | None:
    """The instructions that a record says the model was given; None for any other record."""
    data = record.get("attachment") if record.get("type") == "attachment" else None
    if not isinstance(data, dict) or data.get("type") != SNAPSHOT:
        return None
    said = data.get("systemPrompt")
    parts = said if isinstance(said, list) else [said]
    words = [part if isinstance(part, str) else text(part, "text") for part in parts if isinstance(part, str | dict)]
    return clean("\n\n".join(filter(None, words))) or None


def real_shape(record: Record) -> Record:
    """A record of the specification's flat shape as Claude Code has it; any other as it is."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in _FLAT or isinstance(record.get("message"), dict):
        return record
    if kind == "system":
        if "subtype" in record or not ("content" in record or "message" in record):
            return record
        return {**record, "content": "\n".join(_words(record.get("content", record.get("message"))))}
    content: Any = record.get("content", "")
    if isinstance(content, dict) and kind != "tool_use":
        content = json.dumps(content, indent=2)
    role = "user" if kind in ("user", "tool_result") else "assistant"
    if kind == "tool_use":
        given = record.get("input", content if isinstance(content, dict) else {})
        content = [{"type": "tool_use", "id": _call(record), "name": text(record, "tool_name"), "input": given}]
    elif kind == "tool_result":
        said = content if isinstance(content, str | list) else [{"type": "text", "text": str(content)}]
        failed = {"is_error": True} if record.get("is_error") is True else {}
        content = [{"type": "tool_result", "tool_use_id": _call(record), "content": said, **failed}]
    elif not isinstance(content, str | list):
        return record
    session = text(record, "sessionId") or text(record, "session_id")
    return {**record, "type": role, "sessionId": session, "message": {"role": role, "content": content}}


def _call(record: Record) -> str:
    return text(record, "tool_use_id") or text(record, "id")


def _words(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    return [part if isinstance(part, str) else text(part, "text") for part in parts if isinstance(part, str | dict)]


def about_of(record: Record) -> dict[str, Any]:
    """What is said of an entry beyond its event: where it comes from, and what the provider said of the reply."""
    body = record.get("message")
    stop = text(body, "stop_reason") if isinstance(body, dict) else ""
    said = {
        "raw_type": text(record, "type"),
        CLAUDE_SESSION: text(record, "sessionId") or text(record, "session_id"),
        "request_id": text(record, "requestId"),
        "stop_reason": stop,
    }
    return {key: clean(value) for key, value in said.items() if value}


def text(record: Record, key: str) -> str:
    """A field that is text; empty where it is none."""
    value = record.get(key)
    return value if isinstance(value, str) else ""
