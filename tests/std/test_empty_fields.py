"""A field that holds nothing (`null`, `{}`) says nothing: programs write all of their fields, whatever is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.api.std_show import StdShowRequest, std_show
from harken.events import ToolResult
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_checks import errors_of, findings_of
from support.std_documents import multi, single, task_call

Json = dict[str, Any]
INFO = "subagent_info"
NOTHING = pytest.mark.parametrize(
    "nothing", [None, {}, {"subagent_type": None, "tool_uses": 0, "sub_session_id": None}], ids=["null", "{}", "nulls"]
)


def with_info(document: Json, info: Any) -> Json:
    """The document, every call with a `subagent_info`: where it started no agent, with this one."""
    for part in (document, *document["sub_sessions"]):
        for call in part.get("tool_calls", ()):
            call.setdefault(INFO, info)
    return document


def repaired(document: Json) -> tuple[Json, Repaired]:
    answer = repair(json.dumps(document).encode())
    assert answer.is_valid, answer.findings
    assert answer.data == repair(answer.data).data
    return json.loads(answer.data), answer


@NOTHING
def test_a_call_that_says_nothing_of_an_agent_is_no_task(nothing: Any) -> None:
    expected = std_show(None, StdShowRequest(body=json.dumps(multi()).encode()))

    assert expected == std_show(None, StdShowRequest(body=json.dumps(with_info(multi(), nothing)).encode()))


def test_a_session_of_one_agent_may_have_the_fields_of_several_with_nothing_in_them() -> None:
    fields = dict.fromkeys(("collaboration", "sub_sessions", "messages", "phase_annotations", "phases"))
    document = single()
    document["tool_calls"].append(task_call("tool-009", 100, "", "developer"))
    document["tool_calls"][-1].pop(INFO)
    name = f"{document['session_id']}.json"

    assert findings_of(document, name) == findings_of(document | fields, name)
    assert {"file-name", "file-suffix"} == {finding.rule for finding in findings_of(single() | fields, "x-multi.json")}


def test_a_model_that_nobody_knows_is_not_told_as_left_out() -> None:
    document = multi() | {"agent": None, "collaboration": None}

    assert [] == std_show(None, StdShowRequest(body=json.dumps(document).encode())).left_out


@NOTHING
def test_calls_that_each_agent_numbers_by_itself_get_ids_of_their_own_whatever_else_they_have(nothing: Any) -> None:
    document = multi()
    for sub in document["sub_sessions"]:
        for number, call in enumerate(sub["tool_calls"], 1):
            call["call_id"] = f"tool-{number:03d}"
    expected, _ = repaired(json.loads(json.dumps(document)))

    document, _ = repaired(with_info(document, nothing))

    assert calls_of(expected) == calls_of(document)


def calls_of(document: Json) -> list[list[str]]:
    return [[call["call_id"] for call in part["tool_calls"]] for part in (document, *document["sub_sessions"])]


@pytest.mark.parametrize("nothing", [{}, {"subagent_type": None, "tool_uses": 0, "sub_session_id": None}])
def test_what_says_nothing_of_an_agent_is_set_aside(nothing: Json) -> None:
    document, answer = repaired(with_info(multi(), nothing))

    assert [] == errors_of(document)
    assert nothing == document["sub_sessions"][0]["tool_calls"][0]["x_harken_old_subagent_info"]
    assert not any(
        INFO in call for sub in document["sub_sessions"] for call in sub["tool_calls"] if call["tool_name"] != "Task"
    )
    assert {INFO} == {change.path.rpartition(".")[2] for change in answer.changes} - {"updated_at"}


def test_a_task_call_whose_agent_nobody_describes_gets_what_the_rest_tells() -> None:
    document = multi()
    expected = document["tool_calls"][1][INFO]["subagent_type"]
    document["tool_calls"][1][INFO] = {}

    document, _ = repaired(document)

    assert expected == document["tool_calls"][1][INFO]["subagent_type"]


def test_a_call_of_the_task_tool_without_a_sub_session_says_nothing_of_its_agent_either() -> None:
    document = multi()
    document["tool_calls"].append(task_call("tool-004", 200, "", "developer") | {INFO: {}})

    document, _ = repaired(document)

    assert INFO not in document["tool_calls"][-1]


@pytest.mark.parametrize("result", [{}, {"display": None}])
def test_a_result_that_holds_nothing_is_no_answer(result: Json) -> None:
    document = multi()
    calls = [call for part in (document, *document["sub_sessions"]) for call in part["tool_calls"]]
    for call in calls:
        call["output"] = {"status": "success"}
    expected = results(document)

    for call in calls:
        call["output"] = {"status": "success", "result": result}

    assert ("tool-002", "The clock is right.") in expected
    assert expected == results(document)


def results(document: Json) -> list[tuple[str, str]]:
    found = events_of(json.dumps(document).encode())
    return [(event.id, event.output) for event in found if isinstance(event, ToolResult)]


@NOTHING
def test_a_call_of_another_agent_in_the_one_list_of_calls_may_say_nothing_of_an_agent(nothing: Any) -> None:
    document = multi()
    for sub in document["sub_sessions"]:
        document["tool_calls"] += [call | {"agent_id": sub["agent"]["agent_id"]} for call in sub.pop("tool_calls")]
    expected = std_show(None, StdShowRequest(body=json.dumps(document).encode()))

    assert {1, 3} == {agent.calls for agent in expected.agents}
    assert expected == std_show(None, StdShowRequest(body=json.dumps(with_info(document, nothing)).encode()))


def with_open_calls(where: str) -> Json:
    """A document in which a call goes on, and says so by what it does not know yet."""
    document = multi()
    sub = document["sub_sessions"][1]
    part = sub if where == "sub-session" else document
    part |= {"status": "in_progress", "completed_at": None}
    (sub if where != "session" else document)["tool_calls"][0] |= {
        "ended_at": None,
        "duration_ms": None,
        "output": None,
    }
    if where == "sub-session":
        sub["output"] = None
    return document


OPEN = pytest.mark.parametrize("where", ["session", "sub-session", "sub-session of a session"])


@OPEN
def test_a_call_that_goes_on_may_say_that_it_has_no_end_yet(where: str) -> None:
    document = with_open_calls(where)

    assert [] == errors_of(document)


@OPEN
def test_a_repair_of_something_else_does_not_end_a_call_that_goes_on(where: str) -> None:
    document = with_open_calls(where)
    document["messages"][0].pop("sequence_number")
    call = (document if where == "session" else document["sub_sessions"][1])["tool_calls"][0]

    made, _ = repaired(json.loads(json.dumps(document)))

    assert call == (made if where == "session" else made["sub_sessions"][1])["tool_calls"][0]


def test_a_call_that_is_over_has_an_end_that_says_something() -> None:
    document = multi()
    document["tool_calls"][0] |= {"ended_at": None, "output": None}

    assert {"tool_calls[0].ended_at", "tool_calls[0].output"} == {finding.path for finding in errors_of(document)}


@pytest.mark.parametrize("field", ["ended_at", "output"])
def test_what_stands_there_is_of_its_type_also_while_a_call_goes_on(field: str) -> None:
    document = with_open_calls("session")
    document["tool_calls"][0][field] = 7

    assert [f"tool_calls[0].{field}"] == [finding.path for finding in errors_of(document)]
