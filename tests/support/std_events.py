"""Session documents read as events, and what tests ask of these."""

from __future__ import annotations

import json
from typing import Any

from harken.events import Event
from harken.formats.std.importing.to_events import events_of
from support.std_documents import Json


def read(document: object) -> list[Event]:
    return events_of(json.dumps(document).encode())


def told(events: list[Event]) -> list[tuple[str, str, str]]:
    """Who, what kind, and which record."""
    return [(event.agent_id, event.kind, event.message_id) for event in events]


def without_fields(events: list[Event]) -> list[Event]:
    """All but the record of fields that no event tells: a repair adds one, `updated_at`, and what nobody leads
    is counted otherwise than the summary says."""
    return [event for event in events if event.message_id != "fields"]


def record(events: list[Event], name: str) -> Any:
    return next(event for event in events if event.message_id == name)


def message(kind: str, sender: Json, hearer: Json, payload: Any, second: int = 50) -> Json:
    return {
        "message_id": "msg-009",
        "timestamp": f"2026-03-04T10:00:{second:02}Z",
        "sequence_number": 9,
        "from_agent": sender,
        "to_agent": hearer,
        "message_type": kind,
        "payload": payload,
    }


def linked(event: Event) -> tuple[str, ...]:
    """The records that an event names."""
    return (event.substance,) if event.substance else event.causes()
