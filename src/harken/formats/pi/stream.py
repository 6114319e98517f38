"""What `pi --mode json` prints while it works, as events: the session's header, then what happens.

A `message_end` line has a message just as the session's file has it, but for the entry around it. The other lines tell
of its parts as they come, or repeat messages, and say nothing more. The first user's message is the prompt that the
program was started with, which whoever started it knows.
"""

from __future__ import annotations

from typing import Any

from harken.events import Error, Event, Output, System
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, take_apart

from .read import events_of
from .records import MESSAGE, SESSION, USER, message_of, text_of

_REPEATED = frozenset(
    {
        *("agent_start", "agent_end", "agent_settled", "turn_start", "turn_end", "message_start", "message_update"),
        *("tool_execution_start", "tool_execution_update", "tool_execution_end", "queue_update", "compaction_start"),
        *("auto_retry_start", "auto_compaction_start", "auto_compaction_end", "session_info_changed", "entry_appended"),
        *("thinking_level_changed", "cache_warm_start", "cache_warm_end"),
    }
)


class PiStreamReader:
    """Feed it lines; it answers with the events of each."""

    def __init__(self, run: str = "") -> None:
        self._run = run
        self._session = ""
        self._line = 0
        self._asked = False

    def feed(self, line: bytes) -> list[Event]:
        """The events of one line; what cannot be read is kept with the reason. An empty line says nothing."""
        objects, rest = take_apart(line, 0, len(line))
        events: list[Event] = []
        for record, start, end in objects:
            self._line += 1
            events += self._named(self._events(record, line[start:end]))
        if rest is not None:
            self._line += 1
            events += self._named([Output(raw=rest.raw, why=rest.why)])
        return events

    def _named(self, events: list[Event]) -> list[Event]:
        """The events under the name of the line; no line of the stream has an id."""
        name = ":".join(part for part in (self._session, self._run, f"line_{self._line}") if part)
        return [event.replace(message_id=name, index=index) for index, event in enumerate(events)]

    def _events(self, record: Record, raw: bytes) -> list[Event]:
        kind = record.get("type")
        if kind == SESSION:
            self._session = clean(text_of(record.get("id")))
            return events_of(record, 0, raw)
        if kind == "message_end":
            return self._message(record, raw)
        if kind == "compaction_end":
            return self._compaction(record, raw)
        if kind == "auto_retry_end":
            return [Error(message=clean(text_of(record.get("finalError"))))] if record.get("success") is False else []
        if isinstance(kind, str) and kind in _REPEATED:
            return []
        return [Output(raw=raw.rstrip(b"\r\n"), why=f"unknown line {text_of(kind)[:80]!r}")]

    def _message(self, record: Record, raw: bytes) -> list[Event]:
        message = message_of(record)
        if message is not None and message.get("role") == USER and not self._asked:
            self._asked = True
            return []
        return events_of({"type": MESSAGE, "message": message}, 0, raw)

    def _compaction(self, record: Record, raw: bytes) -> list[Event]:
        result = record.get("result")
        if not isinstance(result, dict):
            why = clean(text_of(record.get("errorMessage")))
            return [Error(message=why)] if why else [System(subtype="compaction_aborted")]
        entry: dict[str, Any] = {**result, "type": "compaction"}
        return events_of(entry, 0, raw)
