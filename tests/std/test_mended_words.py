"""A document that a repair would mend keeps its words when it is exported again, mended as a repair does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import Exported, SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import CHECKER, Json, with_second
from support.std_exported import without_more

FINDING: Json = {
    "finding_id": "F-1",
    "severity": "major",
    "category": "bug",
    "location": {"file": "src/clock.py", "line": 3},
    "description": "It runs backwards.",
}


def exported(data: bytes) -> Exported:
    made = document_of(events_of(data), SessionFacts(session="s", title="Two hands", name=loads(data)["session_id"]))
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    return made


def with_finding() -> Json:
    """A builder with two sub-sessions, and a checker that found something."""
    given = with_second(200)
    given["sub_sessions"][1]["output"]["findings"] = [dict(FINDING)]
    return given


SLIPS: dict[str, Callable[[Json], Any]] = {
    "verdict": lambda given: given["sub_sessions"][1]["output"].update(verdict="LGTM"),
    "priority": lambda given: given["sub_sessions"][0]["task"].update(priority="urgent"),
    "severity": lambda given: given["sub_sessions"][1]["output"]["findings"][0].update(severity="blocker"),
    "status of an output": lambda given: given["sub_sessions"][2]["output"].update(status="done"),
    "number": lambda given: given["messages"][1].pop("sequence_number"),
    "time": lambda given: given["messages"][1].pop("timestamp"),
    "task": lambda given: given["sub_sessions"][1]["task"].pop("task_id"),
    "several hearers": lambda given: given["messages"].append(
        {
            **given["messages"][0],
            "message_id": "msg-007",
            "sequence_number": 7,
            "timestamp": "2026-03-04T10:04:30Z",
            "to_agent": [given["sub_sessions"][0]["agent"], CHECKER],
            "message_type": "feedback",
            "payload": {"feedback_type": "guidance", "content": "Well done."},
        }
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_one_slip_changes_nothing_but_itself(slip: str) -> None:
    given = with_finding()
    given["collaboration"]["budget"] = 9
    SLIPS[slip](given)
    data = dumps(given)
    repaired = repair(data)
    assert repaired.is_valid

    made = exported(data)

    expected = loads(repaired.data)
    for key in ("sub_sessions", "messages", "collaboration", "summary"):
        assert without_more(expected[key]) == without_more(made.document.data[key])
    assert [] == made.losses
    again = exported(dumps(made.document.data)).document.data
    assert again == made.document.data | {"x_harken": again["x_harken"]}


def test_what_a_repair_fills_in_is_listed_as_derived() -> None:
    given = with_finding()
    SLIPS["time"](given)

    assert "messages[1].timestamp" in exported(dumps(given)).derived


def test_a_message_that_no_repair_mends_is_told_in_its_words_and_the_others_as_they_were() -> None:
    given = with_finding()
    wrong = given["messages"][4]
    wrong["payload"]["task"]["task_id"] = given["messages"][5]["payload"]["task_id"] = "task-001"
    wrong["payload"]["content"] = "Once more, please."
    assert not repair(dumps(given)).is_valid

    made = exported(dumps(given))

    data = made.document.data
    for key in ("sub_sessions", "collaboration", "summary"):
        assert given[key] == without_more(data[key])
    told = data["messages"].pop(4)
    assert [one for one in given["messages"] if one is not wrong] == data["messages"]
    assert told == wrong | {
        "message_type": "feedback",
        "payload": {"feedback_type": "guidance", "content": "Once more, please."},
        "x_harken_old_message_type": "task_assignment",
        "x_harken_old_payload": wrong["payload"],
    }
    assert [("messages in the words of the document", 1)] == [(one.what, one.count) for one in made.losses]
    assert {"messages[4].message_type", "messages[4].payload"} <= set(made.derived)


def test_a_task_that_was_given_to_several_is_heard_by_each_in_its_words() -> None:
    given = with_finding()
    given["messages"][4]["to_agent"] = [given["messages"][4]["to_agent"], CHECKER]
    assert not repair(dumps(given)).is_valid

    data = exported(dumps(given)).document.data

    assert ["feedback", "feedback"] == [one["message_type"] for one in data["messages"][4:6]]
    assert ["builder", "checker"] == [one["to_agent"]["agent_id"] for one in data["messages"][4:6]]
    assert given["messages"][:4] == data["messages"][:4]


def test_messages_that_are_none_are_told_as_the_events_have_them_all() -> None:
    given = with_finding()
    given["messages"].append(7)

    made = exported(dumps(given))

    assert [("messages in the words of the document", 7)] == [
        (one.what, one.count) for one in made.losses if one.what.startswith("messages")
    ]


@pytest.mark.parametrize("wrong", [{"status": 5}, {"changes": {"files_created": [["clock.py"]]}}])
def test_an_output_that_no_repair_mends_is_the_data_of_a_generic_one(wrong: Json) -> None:
    given = with_finding()
    output = given["sub_sessions"][2]["output"] = given["sub_sessions"][2]["output"] | wrong
    assert not repair(dumps(given)).is_valid

    made = exported(dumps(given))

    subs = made.document.data["sub_sessions"]
    assert given["messages"] == made.document.data["messages"]
    assert given["sub_sessions"][:2] == without_more(subs[:2])
    assert subs[2]["output"] == {
        "output_type": "generic",
        "task_id": "task-002",
        "status": "completed",
        "summary": "The bell rings.",
        "data": output,
    }
    assert [("outputs as the document has them", 1)] == [(one.what, one.count) for one in made.losses]
    assert "sub_sessions[2].output" in made.derived
