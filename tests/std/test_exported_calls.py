"""Calls, times and endings of a session, in the document that is made from it."""

from __future__ import annotations

from typing import Any

import pytest

from harken.events import (
    Error,
    Metric,
    Prompt,
    System,
)
from harken.formats.std.exporting.from_events import SessionFacts
from support.std_exported import exported
from support.std_sessions import START, Told, lone, pair


def test_a_session_whose_last_turn_is_open_is_in_progress() -> None:
    told = lone()
    told.ask("And the bell?")
    told.call("Bash", '{"command": "make test"}')

    data = exported(told).document.data

    assert ("in_progress", False) == (data["status"], "completed_at" in data)
    assert not {"ended_at", "duration_ms", "output"} & data["tool_calls"][-1].keys()


def test_a_call_without_a_result_in_a_session_that_went_on_has_failed() -> None:
    told = Told()
    told.ask("Do it.")
    told.call("Bash")
    told.say("I did.")

    found = exported(told)

    assert {"status": "failed", "error": "no result was recorded"} == found.document.data["tool_calls"][0]["output"]
    assert {"tool_calls[0].output", "tool_calls[0].ended_at"} < set(found.derived)


def test_a_call_of_an_agent_that_still_works_when_the_session_ends_is_open_and_no_error() -> None:
    told = Told()
    told.ask("Have it built.")
    made = told.spawn("one")
    told.result(made, "Async agent launched successfully.")
    told.call("Bash", '{"command": "make"}', "one")
    told.say("It is being built.")

    data = exported(told, "std-008").document.data

    (sub,) = data["sub_sessions"]
    assert ("success", "in_progress") == (data["status"], sub["status"])
    assert not {"ended_at", "duration_ms", "output"} & sub["tool_calls"][0].keys()
    assert "errors_encountered" not in data["summary"]


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (Prompt(agent_id="main", content="[…]", source="injected", origin="interruption"), "failed"),
        (Prompt(agent_id="main", content="[…]", source="injected", origin="local_command_output"), "success"),
        (Prompt(agent_id="main", content="/build", source="injected", origin="command"), "in_progress"),
        (Prompt(agent_id="main", content="make", source="injected", origin="bash_input"), "in_progress"),
        (Prompt(agent_id="main", content="[…]", source="injected", origin="task_notification"), "in_progress"),
        (Error(agent_id="main", message="no"), "failed"),
        (Metric(agent_id="main", status="error_max_turns"), "failed"),
        (Metric(agent_id="main", status="success"), "success"),
        (Prompt(agent_id="main", content="Go on."), "in_progress"),
        (System(agent_id="main", subtype="completed", message="failed"), "failed"),
        (System(agent_id="main", subtype="recording_closed", message="success"), "success"),
    ],
)
def test_how_a_session_ends(last: Any, status: str) -> None:
    told = lone()
    told.add(last)

    assert status == exported(told).document.data["status"]


@pytest.mark.parametrize(
    ("answer", "status"), [("local_command_output", "success"), ("meta", "in_progress"), ("bash_output", "in_progress")]
)
def test_a_command_is_done_where_its_output_follows(answer: str, status: str) -> None:
    told = lone()
    told.add(Prompt(agent_id="main", content="/model opus", source="injected", origin="command"))
    told.add(Prompt(agent_id="main", content="more", source="injected", origin=answer))

    assert status == exported(told).document.data["status"]


def test_a_session_without_times_has_the_given_one() -> None:
    told = Told()
    told.events.clear()
    told.timed = False
    told.ask("Do it.")
    told.result(told.call("Read"))
    told.say("Done.")

    found = exported(told, facts=SessionFacts(time=START))

    data = found.document.data
    (call,) = data["tool_calls"]
    assert {"2026-03-04T10:00:00.000000Z"} == {
        data["created_at"],
        data["completed_at"],
        call["started_at"],
        call["ended_at"],
    }
    assert {"created_at", "completed_at", "tool_calls[0].started_at", "tool_calls[0].ended_at"} < set(found.derived)


def test_agents_without_times_have_the_nearest_ones() -> None:
    told = pair()
    told.events = [one.replace(time=None) if one.agent_id == "deep" else one for one in told.events]

    found = exported(told)

    deep = found.document.data["sub_sessions"][1]
    assert {"sub_sessions[1].tool_calls[0].started_at", "sub_sessions[1].tool_calls[0].ended_at"} < set(found.derived)
    assert deep["started_at"] <= deep["tool_calls"][0]["started_at"] <= deep["completed_at"]


def test_a_time_that_nobody_knows_is_the_nearest_one() -> None:
    told = lone()
    told.events[3] = told.events[3].replace(time=None)

    found = exported(told)

    assert "2026-03-04T10:00:02.000000Z" == found.document.data["tool_calls"][0]["ended_at"]
    assert "tool_calls[0].ended_at" in found.derived


def test_a_result_that_came_before_its_call_took_no_time() -> None:
    told = lone()
    told.events[3] = told.events[3].replace(time=START)

    found = exported(told)

    assert 0 == found.document.data["tool_calls"][0]["duration_ms"]
    assert "tool_calls[0].ended_at" in found.derived


@pytest.mark.parametrize(
    "arguments",
    ["*** Begin Patch", "[1, 2]", '{"a": NaN}', '{"a": 1e999}', '{"a": ', '{"a": 1, "a": 2}', '"x"', "[" * 99],
)
def test_arguments_that_are_no_object_are_kept_as_text(arguments: str) -> None:
    told = Told()
    told.result(told.call("apply_patch", arguments))
    told.say("Done.")

    assert arguments == exported(told).document.data["tool_calls"][0]["x_harken_input"]


def test_arguments_that_are_nested_very_deep_are_kept_as_text() -> None:
    told = Told()
    told.result(told.call("x", '{"a": ' + "[" * 300 + "]" * 300 + "}"))
    told.say("Done.")

    assert {} == exported(told).document.data["tool_calls"][0]["input"]["params"]


def test_calls_with_one_id_get_ids_of_their_own_and_their_own_results() -> None:
    told = Told()
    told.ask("Do it.")
    for words in ("first", "second"):
        told.result(told.call("Read", id="same"), words)
    told.call("Read", id="")
    told.say("Done.")

    calls = exported(told).document.data["tool_calls"]

    assert ["same", "same~2", "call"] == [call["call_id"] for call in calls]
    assert [None, "same", ""] == [call.get("x_harken_id") for call in calls]
    assert ["first", "second"] == [call["output"]["result"]["display"] for call in calls[:2]]


def test_a_failed_call_says_why() -> None:
    told = Told()
    told.result(told.call("Bash"), "exit 1\n" + "x" * 500, is_error=True)
    told.say("Oh.")

    output = exported(told).document.data["tool_calls"][0]["output"]

    assert ("failed", 200) == (output["status"], len(output["error"]))
    assert 507 == len(output["result"]["display"])
