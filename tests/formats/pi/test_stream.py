"""What `pi --mode json` prints, line by line."""

from __future__ import annotations

import json
from typing import Any

from harken.events import Error, Event, Metric, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.formats import get
from harken.formats.pi.stream import PiStreamReader
from support import pi_lines
from support.pi_lines import MODEL, PiSession, call, line

STARTED = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-15T13:34:45.377Z", "cwd": "/x"}


def fed(*records: dict[str, Any]) -> list[Event]:
    reader = PiStreamReader("run")
    return [event for record in (STARTED, *records) for event in reader.feed(line(record))][1:]


def ended(role: str, **about: Any) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": role, **about}}


def test_messages_are_told_when_they_end_and_the_first_prompt_is_known() -> None:
    answer = {**MODEL, "usage": pi_lines.USAGE, "stopReason": "toolUse", "timestamp": 5, "responseId": "r"}
    events = fed(
        {"type": "agent_start"},
        ended("user", content="Go."),
        {"type": "message_update", "message": {}},
        ended("assistant", content=[{"type": "text", "text": "I go."}, call("t1")], **answer),
        ended("toolResult", toolCallId="t1", toolName="bash", content=[], isError=False),
        ended("user", content="More."),
        {"type": "agent_end", "messages": []},
    )

    assert [Response, ToolCall, Metric, ToolResult, Prompt] == [type(event) for event in events]
    assert ["s:run:line_5"] * 3 == [event.message_id for event in events[:3]]


def test_a_request_has_the_key_that_it_has_in_the_file() -> None:
    made = PiSession().user("Go.").answer("I go.")
    [filed] = [event for event in get("pi-v1").read(made.data) if isinstance(event, Metric)]
    message = {"message": json.loads(made.lines[-1])["message"]}

    [live] = [event for event in fed({"type": "message_end", **message}) if isinstance(event, Metric)]

    assert filed.request_key == live.request_key


def test_failures_and_compactions_are_told() -> None:
    events = fed(
        {"type": "compaction_end", "result": {"summary": "All.", "firstKeptEntryId": "a", "tokensBefore": 5}},
        {"type": "compaction_end", "aborted": True},
        {"type": "auto_retry_end", "success": False, "finalError": "no"},
        {"type": "auto_retry_end", "success": True},
        ended("assistant", content=[], stopReason="error", errorMessage="overloaded"),
    )

    assert [System, Prompt, System, Error, Error] == [type(event) for event in events]


def test_what_nobody_knows_is_kept() -> None:
    reader = PiStreamReader()

    events = [*reader.feed(b'{"type":"surprise"}\n'), *reader.feed(b"{torn\n"), *reader.feed(b"\n")]

    assert ["unknown line 'surprise'", "the line is not a JSON object"] == [
        event.why for event in events if isinstance(event, Output)
    ]
