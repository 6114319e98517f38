"""A sub-session of which only its call tells how it went: an export and a repair take it alike."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import CHECKER, multi, sub_session, task_call
from support.std_documents import call as tool_call

Json = dict[str, Any]


def exported(document: Json) -> Json:
    facts = SessionFacts(session="s", title="t", name=document["session_id"])
    return document_of(events_of(dumps(document)), facts, "std-008").document.data


def repaired(document: Json) -> Json:
    answer = repair(dumps(document))
    assert answer.is_valid
    return loads(answer.data)


def silent(**changed: Any) -> Json:
    """A document that was written down in a hurry: nobody says how sub-sessions went, nor what came of their calls."""
    document = multi() | {"messages": []}
    del document["summary"]
    for sub in document["sub_sessions"]:
        del sub["status"], sub["output"]
    for call in document["tool_calls"][1:]:
        del call["output"]
    return document | changed


def statuses(document: Json) -> list[str]:
    return [sub["status"] for sub in document["sub_sessions"]]


@pytest.mark.parametrize("has_end", [True, False])
def test_it_went_as_the_session_did(*, has_end: bool) -> None:
    document = silent()
    for sub in document["sub_sessions"] if not has_end else ():
        del sub["completed_at"]

    made = exported(document)

    assert ["success", "success"] == statuses(repaired(document)) == statuses(made)
    assert {"total": 1, "completed": 1, "failed": 0} == made["summary"]["tasks"]


def test_it_failed_where_its_call_was_the_last_of_a_session_that_failed() -> None:
    document = silent(status="failed")
    document["tool_calls"][1]["output"] = {"status": "success"}

    assert ["success", "failed"] == statuses(repaired(document)) == statuses(exported(document))


def test_it_is_at_work_while_the_session_goes_on() -> None:
    document = silent(status="in_progress")
    del document["completed_at"]
    for sub in document["sub_sessions"]:
        del sub["completed_at"]

    assert ["in_progress", "in_progress"] == statuses(exported(document))


def nested(**changed: Any) -> Json:
    """The builder has a helper, whose call has no outcome either."""
    document = silent()
    call = task_call("b-002", 70, "sub-003", "reviewer")
    del call["output"]
    helper = {**CHECKER, "agent_id": "helper"}
    document["sub_sessions"][0]["tool_calls"].append(call)
    sub = sub_session("sub-003", helper, "b-002", "task-003", 71, tool_call("h-001", 75), {})
    del sub["status"], sub["output"]
    document["sub_sessions"].append(sub | {"parent_session_id": "sub-001"})
    document["collaboration"]["participants"].append(helper)
    document["sub_sessions"][0] |= changed
    return document


@pytest.mark.parametrize("status", ["success", "failed"])
def test_one_inside_another_went_as_that_did(status: str) -> None:
    document = nested(status=status)

    assert [status, "success", status] == statuses(repaired(document)) == statuses(exported(document))


def test_one_inside_another_follows_what_that_is_found_to_have_been() -> None:
    assert ["success"] * 3 == statuses(repaired(nested())) == statuses(exported(nested()))


def test_a_call_that_is_listed_twice_is_repaired_alike_in_both_places() -> None:
    document = nested(status="failed")
    call = document["sub_sessions"][0]["tool_calls"][1]
    document["tool_calls"].append(call | {"x_harken_owner": "builder"})
    document["sub_sessions"][2]["status"] = "in_progress"

    made = repaired(document)

    assert "failed" == made["sub_sessions"][0]["tool_calls"][1]["output"]["status"]
    assert "failed" == made["tool_calls"][3]["output"]["status"]
