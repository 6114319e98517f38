"""Repair of what sub-agents hand in, as models write it: half of a verification, findings in words, files by other
names. Nothing that was said gets lost, and nothing is found that nobody found."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harken.formats.std.document import dumps, loads
from harken.formats.std.repairing.repair import Repaired, repair
from harken.formats.std.summary import computed_summary
from harken.formats.std.verdicts import final_verdict
from support.std_documents import PLANNER, multi, single

Json = dict[str, Any]


def handed_in(place: int, **said: Any) -> tuple[Json, Repaired]:
    """What is made of an output whose fields are like this; `-` is a field that is missing."""
    document = copy.deepcopy(multi())
    output = {**document["sub_sessions"][place]["output"], **said}
    document["sub_sessions"][place]["output"] = {key: value for key, value in output.items() if value != "-"}
    answer = repair(dumps(document))
    assert answer.is_valid, [one.message for one in answer.findings if one.level == "error"]
    assert answer.data == repair(answer.data).data
    return loads(answer.data)["sub_sessions"][place]["output"], answer


def developed(**said: Any) -> Json:
    return handed_in(0, **said)[0]


def reviewed(**said: Any) -> Json:
    return handed_in(1, **said)[0]


def one_finding(**said: Any) -> Json:
    finding = {"finding_id": "F1", "severity": "major", "category": "bug", "file": "a.py", "description": "Too coupled"}
    found = {key: value for key, value in {**finding, **said}.items() if value != "-"}
    made: Json = reviewed(findings=[found])["findings"][0]
    return made


@pytest.mark.parametrize(
    "said", [{"tests_passed": True}, {"tests_passed": True, "type_check_passed": None}, {}, {"tests": {"passed": True}}]
)
def test_a_review_that_says_half_of_what_it_verified_is_any_agents_output(said: Json) -> None:
    made = reviewed(verification=said)

    assert ("generic", said, "approved") == (made["output_type"], made["verification"], made["verdict"])


def test_a_check_that_nobody_ran_is_kept_and_was_not_passed() -> None:
    made = reviewed(verification={"tests_passed": True, "type_check_passed": "n/a"})

    assert "generic" == made["output_type"]
    assert {"tests_passed": True, "x_harken_old_type_check_passed": "n/a"} == made["verification"]


def test_how_a_check_went_may_be_said_in_a_word() -> None:
    said = {"tests_passed": "passed", "type_check_passed": "failed", "custom_checks": {"lint": "passed"}}

    assert {"tests_passed": True, "type_check_passed": False, "custom_checks": {"lint": True}} == reviewed(
        verification=said
    )["verification"]
    assert {"tests": {"passed": True}, "type_check": {"passed": False}} == {
        key: value
        for key, value in reviewed(verification={"tests": True, "type_check": "failed"})["verification"].items()
        if not key.startswith("x_harken")
    }


@pytest.mark.parametrize(
    "said", [{"tests_run": True}, {"lint_passed": True}, {"tests_run": "n/a", "tests_passed": True}]
)
def test_a_self_review_that_does_not_say_all_of_it_stands_beside(said: Json) -> None:
    made = developed(self_review=said)

    assert "self_review" not in made
    assert said == made["x_harken_old_self_review"]


def test_findings_that_are_none_are_none() -> None:
    for said in ("none", "No issues found.", "未发现问题", None, "-"):
        assert [] == reviewed(findings=said)["findings"]
    assert "No issues found." == reviewed(findings="No issues found.")["x_harken_old_findings"]
    assert [] == developed(blockers="none")["blockers"]


def test_findings_by_their_severity_are_a_list_of_them() -> None:
    said = {"critical": [], "major": [{"description": "A race", "file": "a.py"}], "low": ["Naming in a.py"]}

    made = reviewed(findings=said)["findings"]

    assert [("major", "A race", "a.py"), ("minor", "Naming in a.py", "a.py")] == [
        (one["severity"], one["description"], one["file"]) for one in made
    ]


def test_a_change_is_about_findings_that_are_there() -> None:
    finding = {"finding_id": "F1", "severity": "major", "category": "bug", "file": "a.py", "description": "Late"}
    change = {"change_id": "C1", "priority": "must_fix", "description": "Hurry", "related_findings": ["F1", "F7", "F8"]}
    made = reviewed(findings=[finding], required_changes=[change])["required_changes"][0]

    assert (["F1"], ["F1", "F7", "F8"]) == (made["related_findings"], made["x_harken_old_related_findings"])


def test_the_only_finding_without_an_id_is_the_one_that_a_change_is_about() -> None:
    finding = {"severity": "major", "category": "bug", "file": "a.py", "description": "Late"}
    change = {"change_id": "C1", "priority": "must_fix", "description": "Hurry", "related_findings": ["F1"]}
    made = reviewed(findings=[finding, {**finding, "finding_id": "F2"}], required_changes=[change])

    assert ["F1", "F2"] == [one["finding_id"] for one in made["findings"]]
    assert change == made["required_changes"][0]


def test_a_finding_is_where_it_says_it_is() -> None:
    assert "b.py" == one_finding(file="-", files=["b.py", "c.py"])["file"]
    assert {"file": "src/b.py", "line_start": 12} == one_finding(file="-", location="src/b.py:12")["location"]


def test_words_for_a_finding_that_the_standard_does_not_know_are_kept_beside_the_nearest() -> None:
    made = one_finding(category="architecture", severity="cosmic")

    assert ("logic", "architecture") == (made["category"], made["x_harken_old_category"])
    assert ("minor", "cosmic") == (made["severity"], made["x_harken_old_severity"])  # it was approved


def test_a_verdict_that_is_missing_is_that_of_the_message_else_there_is_none() -> None:
    document = multi()
    del document["sub_sessions"][1]["output"]["verdict"]
    assert "approved" == loads(repair(dumps(document)).data)["sub_sessions"][1]["output"]["verdict"]

    for message in document["messages"]:
        message["payload"].pop("verdict", None)
    answer = repair(dumps(document))
    made = loads(answer.data)["sub_sessions"][1]["output"]
    assert answer.is_valid
    assert ("generic", False) == (made["output_type"], "verdict" in made)


def two_reviews() -> Json:
    """A document in which one agent reviews twice, and says something else each time."""
    document = multi()
    sub, trigger = copy.deepcopy(document["sub_sessions"][1]), copy.deepcopy(document["tool_calls"][2])
    asked, told = copy.deepcopy(document["messages"][-2:])
    sub |= {"sub_session_id": "sub-003", "triggered_by_call_id": "tool-004"}
    sub["task"]["task_id"] = sub["output"]["review_id"] = "review-002"
    sub["tool_calls"][0]["call_id"] = "c-002"
    trigger |= {"call_id": "tool-004"}
    trigger["subagent_info"]["sub_session_id"] = "sub-003"
    for number, one in ((5, asked), (6, told)):
        one |= {"message_id": f"msg-{number:03}", "sequence_number": number}
        one["payload"]["review_id"] = "review-002"
    document["sub_sessions"][1]["output"]["verdict"] = "changes_requested"
    document["messages"][-1]["payload"]["verdict"] = "changes_requested"
    document["sub_sessions"].append(sub)
    document["tool_calls"].append(trigger)
    document["messages"] += [asked, told]
    document["summary"] = computed_summary(document)
    assert repair(dumps(document)).is_valid
    return document


@pytest.mark.parametrize(("place", "expected"), [(1, "changes_requested"), (2, "approved")])
def test_a_missing_verdict_is_that_of_the_same_review(place: int, expected: str) -> None:
    document = two_reviews()
    output = document["sub_sessions"][place]["output"]
    del output["verdict"]
    answer = repair(dumps(document))

    assert answer.is_valid
    assert expected == loads(answer.data)["sub_sessions"][place]["output"]["verdict"]


def test_what_an_agent_says_of_one_review_is_not_the_verdict_of_another() -> None:
    document = two_reviews()
    del document["sub_sessions"][2]["output"]["verdict"]
    del document["messages"][-1]["payload"]["verdict"]
    answer = repair(dumps(document))
    made = loads(answer.data)["sub_sessions"][2]["output"]

    assert answer.is_valid
    assert ("generic", False) == (made["output_type"], "verdict" in made)


@pytest.mark.parametrize("kind", ["review_result", "review_response"])
def test_the_verdict_of_a_message_may_be_in_another_word(kind: str) -> None:
    document = multi()
    del document["sub_sessions"][1]["output"]["verdict"]
    document["messages"][-1]["payload"]["verdict"] = "LGTM"
    document["messages"][-1]["message_type"] = kind
    answer = repair(dumps(document))

    assert answer.is_valid
    assert "approved" == loads(answer.data)["sub_sessions"][1]["output"]["verdict"]
    assert "approved" == final_verdict(loads(answer.data))


def test_changed_files_may_have_other_names_or_be_told_in_words() -> None:
    assert [{"file": "a.py", "path": "a.py", "change": "mended"}] == developed(
        changes=[{"file": "a.py", "change": "mended"}]
    )["changes"]["files_modified"]
    made = developed(changes="Changed clock.py")
    assert ("generic", "Changed clock.py") == (made["output_type"], made["changes"])


def test_an_agent_that_gave_up_says_why() -> None:
    document = multi()
    document["sub_sessions"][0] |= {"output": {"error": "out of time"}, "status": "failed"}
    document["tool_calls"][1]["output"] = {"status": "failed"}
    answer = repair(dumps(document))

    assert answer.is_valid
    made = loads(answer.data)["sub_sessions"][0]["output"]
    assert ("failed", "out of time") == (made["status"], made["summary"])


@pytest.mark.parametrize("said", [{"Read": 3, "Bash": 2}, [{"tool": "Read", "uses": 3}, {"name": "Bash", "count": 2}]])
def test_how_often_each_tool_was_used_may_stand_by_the_names_of_the_tools(said: Any) -> None:
    document = multi()
    document["tool_calls"][1]["subagent_info"]["tools_breakdown"] = said

    answer = repair(dumps(document))

    assert answer.is_valid
    made = loads(answer.data)["tool_calls"][1]["subagent_info"]["tools_breakdown"]
    assert [("Read", 3), ("Bash", 2)] == [(one["tool_name"], one["count"]) for one in made]


def test_a_number_of_lines_that_is_a_text_is_a_number() -> None:
    made = developed(changes={"files_created": [{"path": "a.py", "lines_added": "12"}]})

    assert [{"path": "a.py", "lines_added": 12}] == made["changes"]["files_created"]


@pytest.mark.parametrize(("status", "expected"), [("cancelled", "failed"), ("done", "success")])
def test_a_task_call_without_an_output_went_as_its_sub_session_did(status: str, expected: str) -> None:
    document = multi() | {"status": "aborted"}
    document["sub_sessions"][0]["status"] = status
    document["tool_calls"][1]["output"] = None

    assert expected == loads(repair(dumps(document)).data)["tool_calls"][1]["output"]["status"]


def test_the_last_call_of_a_session_that_failed_has_no_result() -> None:
    document = single() | {"status": "aborted"}
    for call in document["tool_calls"]:
        call["output"] = None
    answer = repair(dumps(document))

    made = [call["output"] for call in loads(answer.data)["tool_calls"]]
    assert [None, {"status": "failed"}] == made
    assert ["tool_calls[0].output"] == [one.path for one in answer.findings if one.level == "error"]


def test_levels_and_verdicts_in_other_languages_are_known() -> None:
    document = multi()
    document["sub_sessions"][0]["task"]["priority"] = "Hoch"
    document["sub_sessions"][1]["output"]["verdict"] = "genehmigt"
    made = loads(repair(dumps(document)).data)["sub_sessions"]

    assert ("high", "approved") == (made[0]["task"]["priority"], made[1]["output"]["verdict"])


def test_a_session_that_ended_and_does_not_say_how_went_as_its_last_call_did() -> None:
    for said in ("-", None, "", "N/A"):
        document = {key: value for key, value in {**single(), "status": said}.items() if value != "-"}
        answer = repair(dumps(document))
        assert answer.is_valid
        assert "success" == loads(answer.data)["status"]
        assert [True] == [change.derived for change in answer.changes if change.path == "status"]

        document["tool_calls"][-1]["output"] = {"status": "failed", "error": "no"}
        assert "failed" == loads(repair(dumps(document)).data)["status"]

    assert "N/A" == loads(answer.data)["x_harken_old_status"]
    del document["completed_at"]
    assert not repair(dumps(document)).is_valid


def test_tasks_of_the_summary_are_counted_where_a_number_is_missing() -> None:
    document = multi()
    whole = dict(document["summary"]["tasks"])
    for key in whole:
        document["summary"]["tasks"] = {**whole, key: None}
        answer = repair(dumps(document))
        assert answer.is_valid
        assert whole == loads(answer.data)["summary"]["tasks"]


def test_an_agent_that_names_no_model_stands_beside() -> None:
    for said in ({"provider": "somebody"}, {"model_id": None}):
        answer = repair(dumps(single() | {"agent": said}))
        assert answer.is_valid
        assert said == loads(answer.data)["x_harken_old_agent"]


def test_an_agent_that_names_no_model_and_leads_is_the_orchestrator() -> None:
    document = multi() | {"agent": {"agent_id": "lead", "agent_type": "architect"}, "messages": []}
    del document["collaboration"]["orchestrator"]
    answer = repair(dumps(document))

    assert answer.is_valid
    assert PLANNER == loads(answer.data)["collaboration"]["orchestrator"]


def test_a_verdict_that_says_nothing_is_as_good_as_missing() -> None:
    document = multi()
    document["sub_sessions"][1]["output"]["verdict"] = "N/A"
    answer = repair(dumps(document))

    assert answer.is_valid
    assert "approved" == loads(answer.data)["sub_sessions"][1]["output"]["verdict"]  # as the message says
