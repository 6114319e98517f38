"""How a call went, in whatever words and place a document says so: an import, a drawing and a repair agree."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from harken.events import ToolResult
from harken.formats.std.document import dumps, loads, parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi, single, with_second

FAILED = [
    "failed",
    "error: no such file",
    "❌ 失败：文件不存在",
    "Failed: 3, Passed: 9",
    "Error: 404",
    "error: null reference",
    "error: 0x80070005",
    "timeout: the server did not answer",
    {"result": "Error: no such file"},
    {"result": {"display": "失败: 超时"}},
    {"success": False, "result": {"display": "no"}},
    {"exit_code": 2},
    {"result": {"status": "failed", "stderr": "no such file"}},
    {"result": {"exit_code": 1}},
    {"status": "❌ failed"},
]
WORKED = [
    "success",
    "完成 ✅",
    "120 lines",
    "errors: 0",
    "Failed: 0, Passed: 12",
    "error: none",
    "失败：无",
    {"result": "timeout: 30\nretries: 3"},
    {"result": {"display": "failed: []"}},
    {"result": "done"},
    {"result": {"exit_code": 0, "error": ""}},
    {"status": "success", "result": "Error: handled"},
]


@pytest.mark.parametrize(("output", "failed"), [*((one, 1) for one in FAILED), *((one, 0) for one in WORKED)])
def test_a_call_has_failed_for_everybody_or_for_nobody(output: Any, failed: int) -> None:
    given = multi()
    given["tool_calls"][0]["output"] = output

    answer = repair(dumps(given))

    assert failed == sum(event.is_error for event in events_of(dumps(given)) if isinstance(event, ToolResult))
    assert failed == drawing(parse_session(given)).failed_calls
    assert ("failed" if failed else "success") == loads(answer.data)["tool_calls"][0]["output"]["status"]
    assert answer.is_valid


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ({"status": "error", "output": "no such file"}, 1),
        ({"status": "ok", "output": "Error: handled"}, 0),
        ({"status": "error", "output": {"result": {"display": "no such file"}}}, 1),
        ({"success": False, "output": "no such file"}, 1),
        ({"is_error": True, "output": "no such file"}, 1),
        ({"exit_code": 2, "output": "no such file"}, 1),
        ({"exit_code": 2, "result": "no such file", "output": None}, 1),
        ({"error": "no such file", "output": ["half of it"]}, 1),
        ({"status": "error", "output": {"status": "success"}}, 0),
    ],
)
def test_a_call_that_says_beside_its_output_that_it_failed_has_failed(said: dict[str, Any], failed: int) -> None:
    given = multi()
    given["tool_calls"][0] |= said

    answer = repair(dumps(given))

    results = [event for event in events_of(dumps(given)) if isinstance(event, ToolResult)]
    assert failed == sum(event.is_error for event in results) == drawing(parse_session(given)).failed_calls
    assert ("failed" if failed else "success") == loads(answer.data)["tool_calls"][0]["output"]["status"]
    assert not failed or "no such file" in results[0].output
    assert answer.is_valid


@pytest.mark.parametrize(
    ("said", "expected"),
    [("✅ 完成", "success"), ("已完成 ✅", "success"), ("已失败", "failed"), ("**done**", "success")],
)
def test_marks_around_a_status_are_passed_over(said: str, expected: str) -> None:
    assert expected == loads(repair(dumps(multi() | {"status": said})).data)["status"]


@pytest.mark.parametrize("said", ["PASS", "✅ Approved", "approved with comments", "通过"])
def test_a_verdict_in_other_words_is_the_standards(said: str) -> None:
    given = multi()
    given["sub_sessions"][1]["output"]["verdict"] = said

    assert "approved" == loads(repair(dumps(given)).data)["sub_sessions"][1]["output"]["verdict"]


def exported(document: dict[str, Any]) -> dict[str, Any]:
    return document_of(events_of(dumps(document)), SessionFacts()).document.data


@pytest.mark.parametrize("made", [single, multi])
def test_a_call_of_which_nobody_says_how_it_went_went_as_its_session(made: Callable[[], dict[str, Any]]) -> None:
    document = made()
    del document["tool_calls"][0]["output"]
    failed = copy.deepcopy(document) | {"status": "failed"}

    assert {"status": "success"} == exported(document)["tool_calls"][0]["output"]
    assert 0 == exported(document)["summary"].get("errors_encountered", 0)
    assert "failed" == exported(failed)["tool_calls"][0]["output"]["status"]


@pytest.mark.parametrize("session", ["success", "failed"])
@pytest.mark.parametrize("status", ["success", "failed", "timeout"])
def test_a_call_without_an_outcome_went_as_the_agent_did_that_it_made_or_that_made_it(
    status: str, session: str
) -> None:
    document = multi() | {"status": session}
    sub = document["sub_sessions"][0]
    sub["status"] = status
    call = next(one for one in document["tool_calls"] if one["call_id"] == sub["triggered_by_call_id"])
    del call["output"], sub["tool_calls"][-1]["output"]

    mended = loads(repair(dumps(document)).data)

    for told in (mended, exported(document)):
        one = next(one for one in told["tool_calls"] if one["call_id"] == call["call_id"])
        went = "success" if status == "success" else "failed"
        assert [went] * 2 == [one["output"]["status"], told["sub_sessions"][0]["tool_calls"][-1]["output"]["status"]]


def test_an_agent_that_is_said_to_have_failed_has_failed_with_its_calls_unanswered() -> None:
    document = multi()
    sub = document["sub_sessions"][0]
    call = next(one for one in document["tool_calls"] if one["call_id"] == sub["triggered_by_call_id"])
    sub["status"] = "failed"
    sub["tool_calls"] += [sub["tool_calls"][-1] | {"call_id": f"killed-{number}"} for number in (1, 2)]
    for one in (call, sub, *sub["tool_calls"][-2:]):
        one.pop("output", None)
    document["messages"] = [one for one in document["messages"] if "completion" not in one["message_type"]]

    told = exported(document)

    assert "failed" == told["sub_sessions"][0]["status"]
    failed = [*told["sub_sessions"][0]["tool_calls"][-2:], told["tool_calls"][document["tool_calls"].index(call)]]
    assert ["failed"] * 3 == [one["output"]["status"] for one in failed]


@pytest.mark.parametrize("at_work", ["sub-001", "sub-003"])
def test_a_call_may_lack_its_outcome_in_the_sub_session_that_is_still_at_work(at_work: str) -> None:
    document = with_second(240)
    own = {sub["sub_session_id"]: sub for sub in document["sub_sessions"] if sub["agent"]["agent_id"] == "builder"}
    for sub in own.values():
        del sub["tool_calls"][-1]["output"]
    own[at_work]["status"] = "in_progress"
    del own[at_work]["completed_at"], own[at_work]["output"]

    mended = loads(repair(dumps(document)).data)

    for told in (mended, exported(document)):
        left = {sub["sub_session_id"]: sub["tool_calls"][-1].get("output") for sub in told["sub_sessions"]}
        assert {name: None if name == at_work else {"status": "success"} for name in own} == {
            name: left[name] for name in own
        }


def test_the_type_of_an_agent_may_stand_at_its_call_alone() -> None:
    document = single()
    called = {"tool_name": "Task", "input": {"params": {"prompt": "Look"}}}
    document["tool_calls"][0] |= called | {"subagent_info": {"subagent_type": "Explore", "tool_uses": 3}}

    info = exported(document)["tool_calls"][0]["subagent_info"]

    assert ("Explore", 3) == (info["subagent_type"], info["tool_uses"])


@pytest.mark.parametrize(
    "output",
    [{}, {"status": None, "result": None}, {"status": "in_progress"}, {"status": "pending", "result": {}}],
    ids=["empty", "null", "in progress", "pending"],
)
def test_an_output_that_says_nothing_yet_is_set_aside_where_the_session_goes_on(output: dict[str, Any]) -> None:
    document = single() | {"status": "in_progress", "completed_at": None}
    call = document["tool_calls"][-1]
    call |= {"output": output, "ended_at": None, "duration_ms": None}

    answer = repair(dumps(document))
    made = loads(answer.data)["tool_calls"][-1]

    assert answer.is_valid
    assert (output, None) == (made["x_harken_old_output"], made.get("output"))


@pytest.mark.parametrize("word", ["running", "pending", "in_progress"])
def test_a_call_of_which_the_output_says_that_it_goes_on_has_none(word: str) -> None:
    document = single() | {"status": "in_progress"}
    del document["completed_at"]
    document["tool_calls"][-1]["output"] = {"status": word}

    call = exported(document)["tool_calls"][-1]

    assert "output" not in call
    assert "ended_at" not in call or call["ended_at"] == document["tool_calls"][-1]["ended_at"]
