"""A session document that is imported and written again says what it said, also where it is an odd one."""

from __future__ import annotations

import copy

import pytest

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps
from harken.formats.std.exporting.from_events import Exported, SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import Json, multi, single, with_second


def exported(data: Json) -> Exported:
    """The document again, which is valid."""
    facts = SessionFacts(session="s", title="Two hands", name=data["session_id"])
    made = document_of(events_of(dumps(data)), facts, "std-008")
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    return made


def tasks_of(data: Json) -> list[str]:
    return [sub["task"]["task_id"] for sub in data["sub_sessions"]]


def test_a_task_keeps_its_id_where_several_sub_sessions_are_about_it() -> None:
    given = with_second(200)
    given["sub_sessions"][1]["task"]["task_id"] = "task-001"

    again = exported(given).document.data

    assert ["task-001", "task-001", "task-002"] == tasks_of(given) == tasks_of(again)
    assert [one["payload"] for one in given["messages"]] == [one["payload"] for one in again["messages"]]


@pytest.mark.parametrize("names", [("work/1", "work/2"), ("work", "work/2"), ("a/b/c", "a/b")])
def test_sub_sessions_of_one_agent_stay_apart_where_their_ids_hold_a_slash(names: tuple[str, str]) -> None:
    given = with_second(200)
    for place, name in zip((0, 2), names, strict=True):
        given["sub_sessions"][place]["sub_session_id"] = name
        caller = next(one for one in given["tool_calls"] if one["call_id"] == ("tool-002", "", "tool-004")[place])
        caller["subagent_info"]["sub_session_id"] = name

    again = exported(given).document.data

    assert [(names[0], ["b-001"]), ("sub-002", ["c-001"]), (names[1], ["b-002"])] == [
        (one["sub_session_id"], [call["call_id"] for call in one["tool_calls"]]) for one in again["sub_sessions"]
    ]


def test_what_a_document_says_is_not_derived() -> None:
    given = multi()

    again = exported(given)

    assert ([], []) == (again.derived, again.document.data["x_harken"]["derived"])


def test_what_an_export_has_filled_in_stays_derived_when_it_is_imported_and_exported_again() -> None:
    given = multi()
    given["x_harken"] = {"derived": ["status", "sub_sessions[*].task.priority", "messages[1].to_agent", 7]}

    again = exported(given).derived

    assert ["messages[1].to_agent", "status", "sub_sessions[0].task.priority"] == sorted(again)[:3]
    assert ["sub_sessions[1].task.priority"] == sorted(again)[3:]


@pytest.mark.parametrize("status", ["success", "failed"])
def test_how_a_session_of_one_agent_ended_is_not_derived_where_its_document_says_so(status: str) -> None:
    given = single() | {"status": status}
    facts = SessionFacts(session="s", title=given["task_title"], name=given["session_id"])

    first = document_of(events_of(dumps(given)), facts)
    listed = document_of(events_of(dumps(given | {"x_harken": {"derived": ["status"]}})), facts)

    assert (status, []) == (first.document.data["status"], first.derived)
    assert (status, ["status"]) == (listed.document.data["status"], listed.derived)


def test_a_review_result_has_the_verdict_that_its_sub_session_hands_in_also_where_there_were_no_messages() -> None:
    given = with_second(200)
    again = given["sub_sessions"][2]
    for place, verdict in ((1, "changes_requested"), (2, "approved")):
        output = copy.deepcopy(given["sub_sessions"][1]["output"])
        name = f"review-{place}"
        given["sub_sessions"][place] |= {"output": output | {"review_id": name, "verdict": verdict}}
        given["sub_sessions"][place]["task"]["task_id"] = name
    again["agent"] = dict(given["sub_sessions"][1]["agent"])
    given["messages"] = []

    told = [one for one in exported(given).document.data["messages"] if one["message_type"] == "review_result"]

    assert [("review-1", "changes_requested"), ("review-2", "approved")] == [
        (one["payload"]["review_id"], one["payload"].get("verdict")) for one in told
    ]
