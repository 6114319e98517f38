"""What `opencode run --format json` prints while it works, as events: a line for each part that is done.

The stream says less than the rows: no prompt (the wrapper knows it), and of a message nothing but its id. The instant
in that id is the one at which the message was made, by which what it used is known again in the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harken.events import Error, Event, Output
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, take_apart

from .identifiers import instant_of
from .read import instant, message_events
from .records import MessagePart, RowMessage, inside, number, text

PARTS: Mapping[str, str] = MappingProxyType(
    {"text": "text", "reasoning": "reasoning", "tool_use": "tool", "step_start": "", "step_finish": "step-finish"}
)
"""Types of lines, each with the type of the part it brings; a step that begins says nothing."""


class OpenCodeStreamReader:
    """Feed it lines; it answers with the events of each."""

    def __init__(self, run: str = "") -> None:
        self._run, self._line = run, 0
        self._told: dict[str, int] = {}
        """How many things a message has said so far."""

    def feed(self, line: bytes | str) -> list[Event]:
        """The events of one line; what cannot be read is kept with the reason. An empty line says nothing."""
        raw = line.encode(errors="surrogatepass") if isinstance(line, str) else line
        self._line += 1
        objects, rest = take_apart(raw, 0, len(raw))
        events = [event for record, start, end in objects for event in self._record(record, raw[start:end])]
        if rest is not None:
            events.append(Output(raw=rest.raw, why=rest.why, message_id=self._name))
        return events

    @property
    def _name(self) -> str:
        return f"{self._run}:line_{self._line}" if self._run else f"line_{self._line}"

    def _record(self, record: Record, raw: bytes) -> list[Event]:
        kind, time = text(record.get("type")), instant(record.get("timestamp"))
        if kind == "error":
            name, words = text(inside(record, "error", "name")), text(inside(record, "error", "data", "message"))
            told = ": ".join(filter(None, (name, words)))
            return [Error(message=clean(told) or "the run failed", message_id=self._name, time=time)]
        part = record.get("part")
        if kind not in PARTS or not isinstance(part, dict):
            return [Output(raw=raw.rstrip(b"\r\n"), why=f"unknown line {clean(kind)[:40]!r}", message_id=self._name)]
        return self._part(part, number(record.get("timestamp"))) if PARTS[kind] else []

    def _part(self, part: dict[str, Any], now: int) -> list[Event]:
        name = text(part.get("messageID"))
        info = {"role": "assistant"}
        found = MessagePart(text(part.get("id")), part)
        message = RowMessage(
            id=name, session=text(part.get("sessionID")), info=info, parts=[found], created=instant_of(name, now)
        )
        begun = self._told.get(name, 0)
        events = [event.replace(index=begun + place) for place, event in enumerate(message_events(message))]
        self._told[name] = begun + len(events)
        return events
