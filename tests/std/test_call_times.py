"""How long a call took is told by its times, or by one of them and its duration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import ToolCall, ToolResult
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import single


def times(document: dict[str, Any]) -> list[tuple[int | None, int | None]]:
    """When each call was made, and when it was answered."""
    events = events_of(json.dumps(document).encode())
    ended = {event.id: event.time for event in events if isinstance(event, ToolResult)}
    return [(event.time, ended[event.id]) for event in events if isinstance(event, ToolCall)]


@pytest.mark.parametrize("missing", ["started_at", "ended_at"])
def test_a_time_that_is_missing_follows_from_the_other_and_the_duration(missing: str) -> None:
    document = single()
    expected = times(document)
    for call in document["tool_calls"]:
        del call[missing]

    assert expected == times(document)


def test_an_export_has_the_duration_that_a_document_without_ends_says() -> None:
    document = single()
    for call in document["tool_calls"]:
        del call["ended_at"]
        call["duration_ms"] = 120_000

    made = document_of(events_of(json.dumps(document).encode()), SessionFacts()).document

    assert {120_000} == {call["duration_ms"] for call in made.data["tool_calls"]}


@pytest.mark.parametrize("odd", [-5, 0, 1e30, float("inf"), "soon", None, True])
def test_a_duration_that_cannot_be_tells_nothing(odd: object) -> None:
    document = single()
    for call in document["tool_calls"]:
        del call["ended_at"]
        call["duration_ms"] = odd

    assert {None} == {ended for _, ended in times(document)}
