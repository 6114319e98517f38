"""How long a call took is told by its times, or by one of them and its duration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Prompt, ToolCall, ToolResult
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi, single


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


@pytest.mark.parametrize("missing", [("ended_at", "duration_ms"), ("started_at", "ended_at"), ("started_at",)])
def test_a_call_without_times_begins_and_ends_with_its_sub_session_after_a_repair(missing: tuple[str, ...]) -> None:
    document = multi()
    expected = [(call["started_at"], call["ended_at"]) for call in document["tool_calls"][1:]]
    for call in document["tool_calls"][1:]:
        for key in missing:
            del call[key]

    mended = repair(json.dumps(document).encode()).data

    assert expected == [(call["started_at"], call["ended_at"]) for call in json.loads(mended)["tool_calls"][1:]]
    assert heard(multi()) == heard(document) == heard(json.loads(mended))


def heard(document: dict[str, Any]) -> list[str]:
    """What each agent was told, by the ids of the records."""
    events = events_of(json.dumps(document).encode())
    return sorted(f"{event.agent_id} {event.message_id}" for event in events if isinstance(event, Prompt | ToolResult))
