"""A sub-session that does not say how it went, went as its output says, or the message that tells of its end."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.document import dumps, loads, parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi

Json = dict[str, Any]


def silent(*, with_calls: bool) -> Json:
    """A document whose sub-sessions do not say how they went."""
    document = multi()
    for sub in document["sub_sessions"]:
        del sub["status"]
    if not with_calls:
        document["tool_calls"] = document["tool_calls"][:1]
        for sub in document["sub_sessions"]:
            del sub["triggered_by_call_id"]
    return document


def exported(document: Json) -> Json:
    facts = SessionFacts(session="s", title="t", name=document["session_id"])
    return document_of(events_of(dumps(document)), facts, "std-008").document.data


@pytest.mark.parametrize("with_calls", [True, False])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"status": "failed"}, "failed"),
        ({"status": "aborted"}, "failed"),
        ({"success": False}, "failed"),
        ({"error": "out of memory"}, "failed"),
        ({"status": "completed"}, "success"),
    ],
)
def test_a_message_says_how_a_sub_session_went(*, said: Json, expected: str, with_calls: bool) -> None:
    document = silent(with_calls=with_calls)
    del document["sub_sessions"][0]["output"]
    document["messages"][1]["payload"] = {"task_id": "task-001", **said}

    made = exported(document)

    assert [expected, "success"] == [sub["status"] for sub in made["sub_sessions"]]
    assert int(expected == "failed") == made["summary"]["tasks"]["failed"]
    assert expected == loads(repair(dumps(document)).data)["sub_sessions"][0]["status"]
    assert [expected, "success"] == [task.status for task in drawing(parse_session(document)).tasks]


@pytest.mark.parametrize("said", [{"output": {"status": "failed", "summary": "No."}}, {"state": "error"}])
def test_an_output_or_another_name_says_it_before_messages(said: Json) -> None:
    document = silent(with_calls=False)
    document["sub_sessions"][0] |= said

    made = exported(document)

    assert "failed" == made["sub_sessions"][0]["status"]
    assert "failed" == made["tool_calls"][1]["output"]["status"]
    assert "failed" == loads(repair(dumps(document)).data)["sub_sessions"][0]["status"]


def test_a_sub_session_that_says_how_it_went_is_not_what_a_message_says() -> None:
    document = multi()
    document["messages"][1]["payload"]["status"] = "failed"

    assert "success" == exported(document)["sub_sessions"][0]["status"]


@pytest.mark.parametrize("name", ["agent_messages", "communications"])
def test_messages_under_another_name_are_messages(name: str) -> None:
    document = multi()
    document[name] = document.pop("messages")

    made, answer = exported(document), repair(dumps(document))

    assert multi()["messages"] == made["messages"] == loads(answer.data)["messages"]
    assert answer.is_valid
    assert name not in made


def test_what_is_no_message_is_none() -> None:
    document = multi() | {"communications": ["by mail"], "messages": []}

    assert ["by mail"] == loads(repair(dumps(document)).data)["communications"]


def test_what_stands_beside_a_task_is_the_tasks() -> None:
    document = multi()
    sub = document["sub_sessions"][0]
    sub |= {"task": sub["task"]["description"], "task_id": "task-001", "priority": "high"}
    expected = {"task_id": "task-001", "description": "the work of sub-001", "priority": "high"}

    answer = repair(dumps(document))

    assert expected == exported(document)["sub_sessions"][0]["task"] == loads(answer.data)["sub_sessions"][0]["task"]
    assert answer.is_valid


def test_a_response_is_the_result_of_a_call() -> None:
    document = multi()
    del document["tool_calls"][0]["output"]
    document["tool_calls"][0] |= {"status": "success", "response": "an hour late"}

    for made in (exported(document), loads(repair(dumps(document)).data)):
        assert "an hour late" == made["tool_calls"][0]["output"]["result"]["display"]
