"""An agent that has several sub-sessions in a document without messages: each of them is a task of its own."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps, parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import BUILDER, CHECKER, Json, call, multi, sub_session, task_call, with_second


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


def retried(*, has_outputs: bool) -> Json:
    """An agent that failed at its task and is called again for the same one."""
    given = with_second(200) if has_outputs else unsaid(with_second(200))
    given["messages"] = []
    first, _, second = given["sub_sessions"]
    second["task"]["task_id"] = "task-001"
    first["status"] = "failed"
    trigger = next(one for one in given["tool_calls"] if one["call_id"] == "tool-002")
    trigger["output"] = {"status": "failed", "error": "tests red"}
    if has_outputs:
        first["output"]["status"] = "failed"
        second["output"]["task_id"] = "task-001"
    return given


def parts_of(data: Json) -> list[tuple[str, ...]]:
    """The sub-sessions, with what they are about and how they went."""
    return [
        (one["sub_session_id"], one["agent"]["agent_id"], one["task"]["task_id"], one["status"])
        for one in data["sub_sessions"]
    ]


@pytest.mark.parametrize("has_outputs", [False, True], ids=["without outputs", "with outputs"])
def test_a_second_attempt_at_a_task_is_a_sub_session_and_not_another_task(*, has_outputs: bool) -> None:
    given = retried(has_outputs=has_outputs)

    again = exported(given)

    assert parts_of(given) == parts_of(again)
    assert {"total": 1, "completed": 1, "failed": 0} == again["summary"]["tasks"]
    assert [("lead", "builder", "task_assignment", "task-001")] == told(again, "task_assignment")
    assert [("lead", "builder", "feedback", "task-001")] == told(again, "feedback")
    ends = [one["payload"]["status"] for one in again["messages"] if one["message_type"] == "task_completion"]
    assert ["failed", "completed"] == ends
    if has_outputs:
        assert [one["output"] for one in given["sub_sessions"]] == [one["output"] for one in again["sub_sessions"]]
    # the message that tells the attempt in words says so, and is still there when it is exported again
    (place,) = (at for at, one in enumerate(again["messages"]) if one["message_type"] == "feedback")
    assert "the work of sub-003" == again["messages"][place]["payload"]["content"]
    assert f"messages[{place}].message_type" in again["x_harken"]["derived"]
    twice = exported(again)
    assert (parts_of(again), again["messages"], again["summary"]) == (
        parts_of(twice), twice["messages"], twice["summary"],
    )  # fmt: skip


def test_two_agents_may_have_one_task() -> None:
    given = with_second(35)
    given["messages"] = []
    other = {"agent_id": "builder2", "agent_type": "developer"}
    given["collaboration"]["participants"].append(other)
    given["sub_sessions"][2]["agent"] = other
    given["sub_sessions"][2]["task"]["task_id"] = given["sub_sessions"][2]["output"]["task_id"] = "task-001"

    again = exported(given)

    assert parts_of(given) == parts_of(again)
    assert [one["output"] for one in given["sub_sessions"]] == [one["output"] for one in again["sub_sessions"]]
    assert {"total": 1, "completed": 1, "failed": 0} == again["summary"]["tasks"]
    assert [("lead", "builder", "task_assignment", "task-001")] == told(again, "task_assignment")


def test_a_task_whose_review_is_called_like_it_is_counted() -> None:
    given = multi() | {"messages": []}
    given["sub_sessions"][1]["task"]["task_id"] = "task-001"
    given["sub_sessions"][1]["output"]["review_id"] = "task-001"

    again = exported(given)

    assert parts_of(given) == parts_of(again)
    assert {"total": 1, "completed": 1, "failed": 0} == again["summary"]["tasks"]
    assert 1 == again["summary"]["review_iterations"]


def test_a_review_that_is_held_again_under_its_id_has_the_verdict_of_each_time() -> None:
    given = multi() | {"messages": []}
    first = given["sub_sessions"][1]["output"]
    again = first | {"summary": "Now it is."}
    first["verdict"] = "changes_requested"
    given["tool_calls"].append(task_call("tool-005", 200, "sub-004", "reviewer"))
    given["sub_sessions"].append(
        sub_session("sub-004", CHECKER, "tool-005", "review-001", 200, call("c-002", 210), again)
    )

    made = exported(given)

    verdicts = [one["payload"]["verdict"] for one in made["messages"] if one["message_type"] == "review_result"]
    assert ["changes_requested", "approved"] == verdicts
    assert "approved" == made["summary"]["final_verdict"]


@pytest.mark.parametrize("name", ["review-001", "review-002"])
def test_the_last_review_is_what_it_came_to_though_its_call_has_no_answer(name: str) -> None:
    given = multi() | {"messages": []}
    first = given["sub_sessions"][1]["output"]
    again = first | {"review_id": name, "summary": "Now it is."}
    first["verdict"] = "changes_requested"
    given["tool_calls"].append(task_call("tool-005", 200, "sub-004", "reviewer"))
    del given["tool_calls"][-1]["output"]
    given["sub_sessions"].append(sub_session("sub-004", CHECKER, "tool-005", name, 200, call("c-002", 210), again))

    made = exported(given)

    verdicts = [one["payload"]["verdict"] for one in made["messages"] if one["message_type"] == "review_result"]
    assert "changes_requested" == verdicts[0]
    assert "approved" == made["summary"]["final_verdict"]
    assert "approved" == drawing(parse_session(given)).verdict
