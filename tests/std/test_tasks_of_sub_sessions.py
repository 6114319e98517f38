"""An agent that has several sub-sessions in a document without messages: each of them is a task of its own."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import BUILDER, Json, call, task_call, with_second


def exported(data: Json) -> Json:
    made = document_of(events_of(dumps(data)), SessionFacts(session="s", name=data["session_id"]), "std-008")
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    return made.document.data


def told(data: Json, *kinds: str) -> list[tuple[str, ...]]:
    """Who told whom, in messages of these types, about which task."""
    return [
        (one["from_agent"]["agent_id"], one["to_agent"]["agent_id"], one["message_type"], one["correlation_id"])
        for one in data["messages"]
        if one["message_type"] in kinds
    ]


def unsaid(data: Json) -> Json:
    """The same where nobody wrote down what agents told each other, and what they handed in."""
    for sub in data["sub_sessions"]:
        sub.pop("output", None)
    return data | {"messages": []}


def left_open(sub: Json) -> None:
    """A sub-session as it is where its agent was lost in the middle of a call."""
    del sub["completed_at"]
    sub["status"] = "in_progress"
    for key in ("ended_at", "duration_ms", "output"):
        del sub["tool_calls"][0][key]


@pytest.mark.parametrize("is_open", [False, True], ids=["answered", "left open"])
@pytest.mark.parametrize("second", [200, 50], ids=["one after the other", "overlapping"])
def test_a_sub_session_is_a_task_of_its_own_whatever_became_of_the_one_before(second: int, *, is_open: bool) -> None:
    given = unsaid(with_second(second))
    if is_open:
        left_open(given["sub_sessions"][0])

    again = exported(given)

    ends = 1 if is_open else 2
    assert {"total": 2, "completed": ends, "failed": 0} == again["summary"]["tasks"]
    assert [("lead", "builder", "task_assignment", name) for name in ("task-001", "task-002")] == told(
        again, "task_assignment"
    )
    assert [] == told(again, "feedback")


def test_whoever_calls_an_agent_gives_it_the_task_of_the_sub_session_that_begins_then() -> None:
    given = unsaid(with_second(200))
    nested: dict[str, Any] = task_call("c-002", 140, "sub-004", "developer")
    given["sub_sessions"][1]["tool_calls"].append(nested)
    given["tool_calls"].append(nested | {"x_harken_owner": "checker"})
    task = {"task_id": "task-004", "description": "mend it again", "priority": "medium"}
    third = given["sub_sessions"][0] | {
        "sub_session_id": "sub-004",
        "parent_session_id": "sub-002",
        "triggered_by_call_id": "c-002",
        "agent": dict(BUILDER),
        "task": task,
        "started_at": "2026-03-04T10:02:20Z",
        "completed_at": "2026-03-04T10:03:20Z",
        "tool_calls": [call("b-009", 150)],
    }
    given["sub_sessions"].append(third)

    again = exported(given)

    assert [("lead", "task-001"), ("checker", "task-004"), ("lead", "task-002")] == [
        (giver, task) for giver, _, _, task in told(again, "task_assignment")
    ]
    assert {"total": 3, "completed": 3, "failed": 0} == again["summary"]["tasks"]
