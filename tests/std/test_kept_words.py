"""What a document says and no event tells, or what is counted anew: it is written again, or kept beside."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps
from harken.formats.std.exporting.from_events import Exported, SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import Json, multi, single


def exported(given: Json, kind: Any = "std-008") -> Exported:
    facts = SessionFacts(title=given["task_title"], name=given["session_id"])
    made = document_of(events_of(dumps(given)), facts, kind)
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    return made


def again(given: Json, kind: Any = "std-008") -> Json:
    return exported(given, kind).document.data


def test_what_a_call_is_for_stays_where_its_arguments_say_something_else() -> None:
    given = single()
    said: Json = {"params": {"description": "list files", "command": "ls"}, "description": "See what there is"}
    given["tool_calls"][0]["input"] = said

    assert said == again(given)["tool_calls"][0]["input"]


def test_fields_that_nobody_knows_in_the_collaboration_are_written_back() -> None:
    given = multi()
    given["collaboration"] |= {"protocol": "v2", "budget": {"tokens": 9}}

    assert given["collaboration"] == again(given)["collaboration"]


def test_a_pattern_that_the_standard_does_not_have_is_kept_beside() -> None:
    given = multi()
    given["collaboration"]["pattern"] = "swarm"

    assert "swarm" == again(given)["collaboration"]["x_harken_old_pattern"]


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [61, 100, 199])
def test_fields_beside_one_that_lies_deep_are_written_again(levels: int) -> None:
    given = multi() | {"reflection": nested(levels), "mood": "good"}

    found = again(given)

    assert (given["reflection"], "good") == (found.get("reflection"), found.get("mood"))


def test_messages_stay_in_their_words_where_one_lies_deep() -> None:
    given = multi()
    given["messages"][1]["payload"]["notes"] = nested(100)

    assert given["messages"] == again(given)["messages"]


def test_the_tools_that_a_document_counts_of_an_agent_are_written_again() -> None:
    given = multi()
    info = given["tool_calls"][1]["subagent_info"]
    info["tools_breakdown"] = [{"tool_name": "Read", "count": 1}]

    assert info == again(given)["tool_calls"][1]["subagent_info"]


@pytest.mark.parametrize("kind", ["std-001", "std-008"])
def test_an_agent_whose_calls_a_document_counts_otherwise_has_both(kind: str) -> None:
    given, counts = multi(), [{"tool_name": "Read", "count": 9}]
    given["tool_calls"][1]["subagent_info"] |= {"tool_uses": 9, "tools_breakdown": counts}

    info = again(given, kind)["tool_calls"][1]["subagent_info"]

    assert (1, 9, counts) == (info["tool_uses"], info["x_harken_old_tool_uses"], info["x_harken_old_tools_breakdown"])


def test_what_a_document_of_one_agent_calls_it_is_told_as_lost_where_its_place_is() -> None:
    who = {"agent_id": "solo", "agent_type": "architect"}
    how = {"mode": "single", "pattern": "master_worker", "orchestrator": who, "participants": []}
    given = {**single(), "collaboration": how, "sub_sessions": [], "messages": []}

    made = exported(given, None)

    assert ["what a document calls its agents"] == [one.what for one in made.losses]
    assert [] == list(exported(single(), None).losses)


def test_one_call_that_breaks_the_standard_leaves_the_fields_of_the_others_in_place() -> None:
    given = multi()
    given["tool_calls"][0] |= {"mood": "good"}
    wrong = {"context_contribution": {"type": "file_content", "summary": [{"b": 1}]}, "mood": "bad"}
    given["sub_sessions"][0]["tool_calls"][0] |= wrong

    found = again(given)

    assert "good" == found["tool_calls"][0].get("mood")
    assert wrong == found["sub_sessions"][0]["tool_calls"][0]["x_harken_old_call"]


def test_an_error_that_is_an_object_has_its_own_words_beside_those_of_the_result() -> None:
    given = single()
    error = {"code": 2, "message": "no such file"}
    given["tool_calls"][0]["output"] = {
        "status": "failed",
        "error": error,
        "result": {"display": "tried twice", "tries": 2},
    }

    output = again(given)["tool_calls"][0]["output"]

    assert {"display": "tried twice", "tries": 2} == output["result"]
    assert ('{"code":2,"message":"no such file"}', error) == (output["error"], output["x_harken_old_error"])
    assert output == again(again(given))["tool_calls"][0]["output"]


def test_what_a_summary_says_and_no_call_does_is_kept_beside_what_is_counted() -> None:
    given = multi()
    given["summary"] |= {"files_created": ["by/hand.md"], "errors_encountered": 7, "final_verdict": "rejected"}

    summary = again(given)["summary"]

    assert (["by/hand.md"], 7, "rejected") == (
        summary["x_harken_old_files_created"],
        summary["x_harken_old_errors_encountered"],
        summary["x_harken_old_final_verdict"],
    )
    assert summary == again(again(given))["summary"]


@pytest.mark.parametrize("make", [single, multi])
def test_a_summary_that_is_as_it_is_counted_is_written_alone(make: Any) -> None:
    assert [] == [key for key in again(make())["summary"] if key.startswith("x_harken")]


def test_what_a_repair_set_aside_in_a_sub_session_comes_back() -> None:
    document = multi()
    document["sub_sessions"][0] |= {"status": "failed", "x_harken_old_status": "cancelled", "x_harken_mark": 1}

    sub = again(document)["sub_sessions"][0]

    assert "cancelled" == sub["x_harken_old_status"]
    assert "x_harken_mark" not in sub


def test_that_something_was_stopped_is_kept_beside_the_word_that_the_standard_has() -> None:
    document = multi()
    document["status"] = document["sub_sessions"][0]["status"] = "cancelled"

    made = again(document)

    for one in (made, made["sub_sessions"][0]):
        assert ("failed", "cancelled") == (one["status"], one["x_harken_old_status"])
