"""When calls ended, and how long they took, as a document says it: what no event tells of that is kept."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi, single
from support.std_exported import without_more

Json = dict[str, Any]
KEYS = ("started_at", "ended_at", "duration_ms")


def exported(document: Json) -> Json:
    facts = SessionFacts(session="s", title="t", name=document["session_id"])
    made = document_of(events_of(dumps(document)), facts, "std-008").document.data
    again = document_of(events_of(dumps(made)), facts, "std-008").document.data
    assert made["tool_calls"] == again["tool_calls"]
    assert made["summary"] == again["summary"]
    return made


def times(calls: list[Json]) -> list[Json]:
    return [{key: call[key] for key in KEYS if key in call} for call in without_more(calls)]


def of_all(document: Json) -> list[list[Json]]:
    return [times(one["tool_calls"]) for one in (document, *document.get("sub_sessions", ()))]


def test_a_duration_that_is_more_exact_than_the_times_is_written_again() -> None:
    given = single()
    given["tool_calls"][0]["duration_ms"] = 815

    assert 815 == exported(given)["tool_calls"][0]["duration_ms"]
    assert 1000 == exported(given)["tool_calls"][1]["duration_ms"]


def test_times_in_whole_minutes_do_not_make_calls_take_none() -> None:
    given = single()
    given["tool_calls"][0] |= {"ended_at": given["tool_calls"][0]["started_at"], "duration_ms": 30_000}

    assert 30_000 == exported(given)["tool_calls"][0]["duration_ms"]


def unanswered(document: Json) -> Json:
    """The same where nobody wrote down what came of the calls; when they ended is there."""
    for one in (document, *document["sub_sessions"]):
        for call in one["tool_calls"]:
            del call["output"]
    return document


@pytest.mark.parametrize("status", ["success", "in_progress"])
def test_a_call_without_an_outcome_ended_when_it_says(status: str) -> None:
    given = unanswered(multi()) | {"status": status}

    made = exported(given)

    assert of_all(given) == of_all(made)
    assert (
        given["summary"]["agents"] | {"architect": made["summary"]["agents"]["architect"]} == made["summary"]["agents"]
    )
    assert (
        given["summary"]["agents"]["architect"]["duration_ms"] == made["summary"]["agents"]["architect"]["duration_ms"]
    )


def test_a_call_without_an_outcome_took_as_long_as_it_says() -> None:
    given = unanswered(multi())
    expected = of_all(given)
    for one in (given, *given["sub_sessions"]):
        for call in one["tool_calls"]:
            del call["ended_at"]

    assert expected == of_all(exported(given))


def test_a_call_of_which_nobody_says_when_it_ended_did_with_its_sub_session() -> None:
    given = multi()
    for key in ("ended_at", "duration_ms", "output"):
        del given["tool_calls"][1][key]

    made = exported(given)

    assert loads(repair(dumps(given)).data)["tool_calls"][1]["ended_at"] == "2026-03-04T10:01:30Z"
    assert of_all(multi()) == of_all(made)
    assert "tool_calls[1].ended_at" in made["x_harken"]["derived"]
