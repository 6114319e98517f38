"""Sub-sessions that do not name their task are about what messages give their agent, where only one can be meant."""

from __future__ import annotations

from typing import Any

import pytest

from harken.events import Prompt
from harken.formats.std.document import dumps, loads, parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import BUILDER, PLANNER, message, with_second

Json = dict[str, Any]


def without_tasks(*places: int) -> Json:
    """A document in which a builder is given two tasks and a checker a review, and sub-sessions say in words alone what
    they were."""
    document = loads(dumps(with_second(200)).replace(b"task-002", b"task-009"))
    for place in places or (0, 1, 2):
        sub = document["sub_sessions"][place]
        sub["task"] = sub["task"]["description"]
        sub["output"] = "done"
    return document


def tasks_of(document: Json) -> list[str]:
    return [sub["task"]["task_id"] for sub in document["sub_sessions"]]


def as_exported(document: Json) -> Json:
    events = events_of(dumps(document))
    return document_of(
        events, SessionFacts(session="s", title="t", name=document["session_id"]), "std-008"
    ).document.data


def test_a_task_has_the_id_that_messages_give_it_for_everybody() -> None:
    document = without_tasks()
    expected = ["task-001", "review-001", "task-009"]

    assert expected == tasks_of(loads(repair(dumps(document)).data))
    assert expected == tasks_of(as_exported(document))
    assert set(expected) == {task.task_id for task in drawing(parse_session(document)).tasks}


def test_what_messages_say_of_a_task_is_told_once() -> None:
    whole, document = without_tasks(0), without_tasks(0)
    whole["sub_sessions"][0]["task"] = {"task_id": "task-001", "description": document["sub_sessions"][0]["task"]}

    heard = [event.content for event in events_of(dumps(document)) if isinstance(event, Prompt)]

    assert [event.content for event in events_of(dumps(whole)) if isinstance(event, Prompt)] == heard


def test_a_made_up_id_is_that_of_no_task_that_messages_are_about() -> None:
    document = without_tasks(1)
    document["messages"] = [
        one | {"message_id": f"msg-{number:03}", "sequence_number": number}
        for number, one in enumerate((one for one in document["messages"] if "review" not in one["message_type"]), 1)
    ]
    document["messages"][-1]["payload"]["task_id"] = document["messages"][-2]["payload"]["task"]["task_id"] = "task-002"
    document["sub_sessions"][2]["task"]["task_id"] = "task-001-b"

    for made in (loads(repair(dumps(document)).data), as_exported(document)):
        assert tasks_of(made)[1] not in ("task-001", "task-002")


@pytest.mark.parametrize("why", ["another agent", "two at a time", "too late"])
def test_a_task_that_cannot_be_meant_stays_one_of_its_own(why: str) -> None:
    document = without_tasks(2)
    last, sub = document["messages"][-2], document["sub_sessions"][2]
    match why:
        case "another agent":
            last["to_agent"] = document["sub_sessions"][1]["agent"]
        case "two at a time":
            again = message(7, 270, PLANNER, BUILDER, "task_assignment", {"task": {"task_id": "task-010"}})
            document["messages"].append(again)
        case "too late":
            last["timestamp"] = "2026-03-04T10:59:00Z"
    sub["task"] = "something else"

    assert tasks_of(loads(repair(dumps(document)).data))[2] not in ("task-009", "task-010", "task-001")
