"""From what a commit says to rows of the index. Everything here is a pure function of events."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harken import ids
from harken.events import Error, Event, PieceOfText, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, excerpt

HUMAN, INJECTED, ASSISTANT, THINKING, CALL, RESULT, SYSTEM, TITLE, SUMMARY = ROLES = (
    "human", "injected", "assistant", "thinking", "call", "result", "system", "title", "summary",
)  # fmt: skip
_WHAT = 120
"""Characters of what a call was called with."""


class MessageRow(NamedTuple):
    """A message, with the text that goes into the index and is not stored."""

    key: int
    agent: str | None
    role: str
    tool: str | None
    model: str | None
    time: int | None
    record: str | None
    event: int
    size: int
    sum: int
    text: str
    call: ToolCall | None = None


class ResultRow(NamedTuple):
    """What a call came to."""

    call_id: str
    time: int | None
    failed: bool


def key_of(scope: str, name: str, index: int) -> int:
    """64 bits of what a message is called, as SQLite's integers have them."""
    return ids.short_key(f"{scope}\0{name}\0{index}")


def message_rows(
    events: Sequence[Event], scope: str, shared: Callable[[str], str], fallback: str
) -> Iterable[MessageRow]:
    """The events that say something, as rows. `shared` gives the name that copies of a record have too, or nothing:
    the record is then one of `scope` alone. Records without any name are numbered within `fallback`."""
    for place, event in enumerate(events):
        said = _said(event)
        if said is None:
            continue
        role, text, tool = said
        text = clean(text)
        name = event.message_id
        if common := name and shared(name):
            key = key_of("", common, event.index)
        else:
            key = key_of(scope, name, event.index) if name else key_of(fallback, "", place)
        yield MessageRow(
            key,
            event.agent_id or None,
            role,
            tool or None,
            (event.model or None) if isinstance(event, Response) else None,
            event.time,
            name or None,
            event.index,
            len(text),
            zlib.crc32(text.encode()),
            text,
            event if isinstance(event, ToolCall) else None,
        )


def _said(event: Event) -> tuple[str, str, str] | None:
    """Role, text and tool of an event; None where it says nothing."""
    match event:
        case ToolResult():
            return (RESULT, event.output, event.name) if event.output else None
        case ToolCall():
            return CALL, f"{event.name} {event.input.decode('utf-8', 'replace')}", event.name
        case Response():
            return (ASSISTANT, event.content, "") if event.content else None
        case Prompt():
            return (INJECTED if event.source == "injected" else HUMAN, event.content, "") if event.content else None
        case Thinking():
            return (THINKING, event.content, "") if event.content else None
        case PieceOfText():
            return (ASSISTANT, event.content, "") if event.content else None
        case System() | Error():
            return (SYSTEM, event.message, "") if event.message else None
    return None


def results(events: Iterable[Event]) -> list[ResultRow]:
    """What calls came to."""
    return [ResultRow(event.id, event.time, event.is_error) for event in events if isinstance(event, ToolResult)]


def what(call: ToolCall) -> str:
    """What a tool was called with, in a few words."""
    return excerpt(clean(call.input.decode("utf-8", "replace")), _WHAT)


def said_row(scope: str, role: str, text: str, time: int | None) -> MessageRow:
    """A text that is no record: a session's title, a commit's summary."""
    text = clean(text)
    key = key_of(scope, role, 0)
    return MessageRow(key, None, role, None, None, time, None, 0, len(text), zlib.crc32(text.encode()), text)
