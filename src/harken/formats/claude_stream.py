"""`claude-stream-v1`: what Claude Code prints with `--output-format stream-json`, one line at a time.

The stream says what the session's file says, in other spellings: names with underscores, a sub-agent's lines marked
by the call that started it, and a `result` line at the end of every turn, of which a process may print several. The
flat lines that the specification describes are read as well. Either is put into the shape of the file, and the reader
of the file does the rest.

A `result` has the tokens of its turn's main loop, and the cost of the whole session so far. Its metric has a status,
which is how a fold tells it from the metrics of single messages; those name the output as it was when the message
began, since the stream never says it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harken.events import Error, Event, Metric, Output
from harken.events.text import clean

from .base import Format
from .claude_code.read import RecordReader
from .claude_code.records import lines, read_objects

Record = dict[str, Any]
ASIDE = frozenset(
    {
        "stream_event", "tool_progress", "tool_use_summary", "auth_status", "rate_limit_event", "elicitation_complete",
        "prompt_suggestion", "conversation_reset", "control_request", "control_response", "control_cancel_request",
        "command_lifecycle", "keep_alive", "streamlined_text", "streamlined_tool_use_summary",
    }
)  # fmt: skip
"""Lines that are understood and are no conversation. The set is open; others are kept with a remark."""
FLAT = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"})
"""The subtypes an assistant line has in the specification."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.S)
_SPACE = b" \t\r\n,"


class StreamReader:
    """Feed it lines; it answers with the events of each."""

    def __init__(self) -> None:
        self._records = RecordReader()
        self._offset = 0

    def feed(self, line: bytes, *, time: int | None = None) -> list[Event]:
        """The events of one line; `time` is for those that name none. An empty line says nothing."""
        start = self._offset
        self._offset += len(line) + (not line.endswith(b"\n"))
        events = self._array(line, start) if line.lstrip().startswith(b"[") else self._line(line, start)
        return events if time is None else [e if e.time is not None else e.replace(time=time) for e in events]

    def read(self, data: bytes) -> Iterator[Event]:
        """The events of a whole stream: lines, or one array over many of them."""
        if data.lstrip().startswith(b"["):
            yield from self._array(data, 0)
            return
        for start, end in lines(data):
            yield from self.feed(data[start:end])

    def _line(self, line: bytes, start: int) -> list[Event]:
        objects, behind = read_objects(line)
        events: list[Event] = []
        for value, first, last in objects:
            events += self._record(value, f"@{start + first}", line[first:last].strip())
        if rest := line[behind:].strip():
            why = "something stands behind the record" if objects else "the line is not a JSON object"
            events.append(Output(message_id=f"@{start + behind}", raw=rest, why=why))
        return events

    def _array(self, data: bytes, start: int) -> list[Event]:
        places, behind = elements(data)
        events = [event for first, last in places for event in self._line(data[first:last], start + first)]
        if rest := data[behind:].strip():
            events.append(Output(message_id=f"@{start + behind}", raw=rest, why="the array breaks off or is no array"))
        return events

    def _record(self, record: Record, place: str, raw: bytes) -> list[Event]:
        try:
            events = self._records.record(as_in_the_file(record), place, raw)
        except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as problem:
            return [Output(message_id=place, raw=raw, why=f"damaged line: {type(problem).__name__}")]
        if record.get("type") in ASIDE:
            return [event.replace(why="") if isinstance(event, Output) else event for event in events]
        return _with_reasons(events, record)


def as_in_the_file(record: Record) -> Record:
    """A line of the stream as the record that the session's file would have."""
    made = dict(_unfolded(record))
    if isinstance(request := record.get("request_id"), str):
        made["requestId"] = request
    if agent := _agent(record):
        made["isSidechain"], made["agentId"] = True, agent
    if record.get("isSynthetic") is True:
        made["isMeta"] = True
    if record.get("type") == "system" and not isinstance(record.get("content"), str):
        made["content"] = record.get("message")
        made.pop("message", None)
    body = made.get("message")
    if record.get("type") == "assistant" and isinstance(record.get("error"), str) and isinstance(body, dict):
        made["isApiErrorMessage"] = True
    return made


def _agent(record: Record) -> str:
    """The sub-agent a line is of: by its own id where the line has it, else by the call that started it."""
    call, agent = record.get("parent_tool_use_id"), record.get("agent_id")
    if not isinstance(call, str) or not call:
        return ""
    return agent if isinstance(agent, str) and agent else call


def _unfolded(record: Record) -> Record:
    """The specification's flat line as one with a message; any other line as it is."""
    kind, subtype = record.get("type"), record.get("subtype")
    if isinstance(record.get("message"), dict):
        return record
    if kind == "assistant" and subtype in FLAT:
        block = {**record, "type": subtype, "id": record.get("tool_use_id") or record.get("id")}
        if subtype == "text" and not isinstance(record.get("text"), str):
            block["text"] = record.get("content")
        return {**record, "message": {"content": [block], "model": record.get("model")}}
    if kind == "tool" and subtype == "result":
        return {**record, "type": "user", "message": {"content": [{**record, "type": "tool_result"}]}}
    if kind == "user" and isinstance(record.get("content"), str | list):
        return {**record, "message": {"content": record["content"]}}
    return record


def _with_reasons(events: list[Event], record: Record) -> list[Event]:
    """A run that failed says why, before the metric that ends it."""
    said = record.get("errors") if record.get("type") == "result" else None
    if not isinstance(said, list) or not events or not isinstance(events[-1], Metric):
        return events
    end = events[-1]
    reasons = [text for text in said if isinstance(text, str)]
    made: list[Event] = [
        Error(message=clean(text), message_id=end.message_id, time=end.time, index=index)
        for index, text in enumerate(reasons)
    ]
    return [*made, end.replace(index=len(made))]


def elements(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Where the elements of a JSON array lie, and where the array ends (or breaks off).

    Only brackets and strings are looked at; whether an element is JSON shows when it is read."""
    found: list[tuple[int, int]] = []
    at = data.find(b"[") + 1
    depth, start = 0, at
    for token in _TOKEN.finditer(data, at):
        sign = token[0][:1]
        if sign in b"{[":
            if depth == 0 and sign == b"{":
                if data[start : token.start()].strip(_SPACE):
                    break
                start = token.start()
            depth += 1
        elif sign in b"}]":
            depth -= 1
            if depth < 0:
                return (found, token.end()) if not data[start : token.start()].strip(_SPACE) else (found, start)
            if depth == 0:
                found.append((start, token.end()))
                start = token.end()
    return found, start


_TYPES = frozenset({"system", "assistant", "user", "result", "tool"}) | ASIDE
_ENOUGH = 40


def detect(head: bytes) -> bool:
    """Whether some early line is one of the stream's: a type it has, and the name of the session as it spells it."""
    if head.lstrip().startswith(b"["):
        places, _ = elements(head)
    else:
        places = list(lines(head))
    for first, last in places[:_ENOUGH]:
        objects, _ = read_objects(head[first:last])
        if any(_is_of_a_stream(value) for value, _, _ in objects):
            return True
    # A first line may be longer than what we were shown.
    return len(places) <= 1 and re.match(rb'\s*\[?\s*\{"type":\s*"system",\s*"subtype":\s*"init"', head) is not None


def _is_of_a_stream(record: Record) -> bool:
    kind, subtype = record.get("type"), record.get("subtype")
    if kind not in _TYPES or "sessionId" in record or "event_type" in record:
        return False
    if kind == "assistant":
        return "session_id" in record or ("message" not in record and subtype in FLAT)
    if kind == "tool":
        return subtype == "result" and "tool_use_id" in record
    return (
        "session_id" in record
        or (kind == "system" and subtype == "init")
        or (kind == "result" and "is_error" in record)
    )


def read(data: bytes) -> Iterator[Event]:
    """Every event of a stream, in its order."""
    return StreamReader().read(data)


FORMAT = Format(
    name="claude-stream-v1",
    media_type="application/jsonl",
    description="What Claude Code prints with `--output-format stream-json`: one JSON object per line, or one array.",
    detect=detect,
    reader=read,
)
