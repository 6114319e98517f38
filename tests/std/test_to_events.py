"""A session document as events: one agent, what it did, and how its own chain tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Output, Response, System, ToolCall, ToolResult
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of, main_events, side_chains
from harken.formats.std.repairing.repair import repair
from support.std_documents import BUILDER, CHECKER, PLANNER, Json, call, multi, single
from support.std_events import message, read, record, told


def test_a_document_of_one_agent_is_its_prompt_its_calls_and_its_end() -> None:
    assert [
        ("main", "agent_created", "main:created"),
        ("main", "prompt", "user_prompt"),
        ("main", "tool_call", "tool-001"),
        ("main", "tool_result", "tool-001:result"),
        ("main", "tool_call", "tool-002"),
        ("main", "tool_result", "tool-002:result"),
        ("main", "system", "completed"),
    ] == told(read(single()))


def test_a_call_has_its_arguments_and_its_result_what_a_person_is_shown() -> None:
    events = read(single())

    made, answered = record(events, "tool-002"), record(events, "tool-002:result")

    assert (b'{"file_path":"src/clock.py"}', "Edit", "tool-002") == (made.input, made.name, made.id)
    assert ("what tool-002 found", "tool-002", False) == (answered.output, answered.cause, answered.is_error)
    assert made.time < answered.time


def test_what_a_result_says_is_its_error_and_its_display_or_all_of_it() -> None:
    outputs: list[Any] = [
        {"status": "failed", "result": {"display": "shown"}, "error": "why"},
        {"status": "failed", "result": {"display": ""}, "error": "why"},
        {"status": "failed", "result": {"lines": 3}, "error": "why"},
        {"status": "failed", "result": {"display": "that\n is why it is so"}, "error": "that is why…"},
        {"status": "failed", "error": "why"},
        {"status": "success", "result": {"lines": 3}},
        {"status": "success"},
        {"status": "error", "result": "a text"},
        "only a text",
    ]
    document = single() | {"tool_calls": [call(f"t{n}", n, output=output) for n, output in enumerate(outputs)]}

    results = [event for event in read(document) if isinstance(event, ToolResult)]

    failed = ["why\nshown", "why", 'why\n{"lines":3}', "that\n is why it is so", "why"]
    assert [*failed, '{"lines":3}', "", "a text", "only a text"] == [event.output for event in results]
    assert [*[True] * 5, False, False, True, False] == [event.is_error for event in results]


@pytest.mark.parametrize(
    ("output", "is_error"),
    [
        ({"status": "失败"}, True),
        ({"status": "Failed"}, True),
        ({"status": "timeout", "error": "too slow"}, True),
        ({"status": "cancelled"}, True),
        ({"status": "完成", "error": ""}, False),
        ({"status": "OK", "error": "a remark"}, False),
        ({"status": "blue", "error": "why"}, True),
        ({"status": "blue"}, False),
    ],
)
def test_a_result_is_a_failure_in_whatever_words_its_status_says_so(output: Json, is_error: bool) -> None:
    document = single() | {"tool_calls": [call("tool-001", 5, output=output)]}

    assert is_error == record(read(document), "tool-001:result").is_error


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("completed", "success"),
        ("已完成", "success"),
        ("error", "failed"),
        ("cancelled", "failed"),
        ("failed", "failed"),
    ],
)
@pytest.mark.parametrize("make", [single, multi])
def test_a_document_is_exported_with_the_status_that_it_says_in_other_words(make: Any, said: str, status: str) -> None:
    events = read(make() | {"status": said})

    data = document_of(events, SessionFacts(session="s", runtime="std-008", title="T"), "std-008").document.data

    assert (status, True) == (data["status"], "completed_at" in data)


@pytest.mark.parametrize("status", ["success", "failed"])
def test_how_a_session_ended_is_told_where_nobody_says_when(status: str) -> None:
    document = single() | {"status": status}
    del document["completed_at"]
    events = read(document)
    made = document_of(events, SessionFacts(session="s", runtime="std-001", title="T")).document.data

    assert status == made["status"]
    assert [] == [event for event in read(document | {"status": "in_progress"}) if isinstance(event, System)]


def test_a_call_without_an_output_has_no_result() -> None:
    unanswered = call("tool-001", 5)
    del unanswered["output"]

    assert [] == [e for e in read(single() | {"tool_calls": [unanswered]}) if isinstance(e, ToolResult)]


def test_a_result_that_came_after_the_next_call_stands_behind_that() -> None:
    slow = call("slow", 5, ended_at="2026-03-04T10:00:30Z")
    document = single() | {"tool_calls": [slow, call("quick", 10)]}

    events = [event for event in read(document) if isinstance(event, ToolCall | ToolResult)]

    assert ["slow", "quick", "quick:result", "slow:result"] == [event.message_id for event in events]


def test_the_model_is_the_agents() -> None:
    assert "claude-sonnet-4-5" == record(read(single()), "main:created").language_model


def test_the_end_is_a_notice_with_the_status() -> None:
    end = record(read(single()), "completed")

    assert ("completed", "success") == (end.subtype, end.message)


def test_remarks_about_phases_are_kept_and_are_no_conversation() -> None:
    remark = {"annotation_id": "a1", "phase_type": "execute", "tool_call_range": {}}
    document = single() | {"phase_annotations": [remark]}

    kept = record(read(document), "a1")

    assert (remark, "") == (json.loads(kept.raw), kept.why)
    assert not any(isinstance(event, Output | System) for event in main_events(json.dumps(document).encode()))


def test_a_summary_that_is_a_text_is_what_the_agent_says_in_the_end() -> None:
    events = read(single() | {"summary": "The clock is right again."})

    assert ["The clock is right again."] == [event.content for event in events if isinstance(event, Response)]


def test_a_summary_that_a_repair_has_put_aside_is_still_what_the_agent_says_in_the_end() -> None:
    document = single() | {"summary": "The clock is right again."}
    repaired = repair(json.dumps(document).encode()).data

    assert record(read(document), "summary") == record(events_of(repaired), "summary")


def test_an_agents_chain_tells_what_the_document_tells_of_it_under_the_same_names() -> None:
    document = multi()
    document["messages"].append(message("feedback", CHECKER, BUILDER, {"content": "Mind the hands."}))
    data = json.dumps(document).encode()
    whole = events_of(data)

    for agent, lines in side_chains(data).items():
        own = [(event.kind, event.message_id) for event in events_of(lines)]
        assert own == [(event.kind, event.message_id) for event in whole if event.agent_id == agent]
    assert {"builder", "checker"} == side_chains(data).keys()


def test_an_agents_chain_has_the_answer_that_only_a_message_tells() -> None:
    document = multi()
    del document["sub_sessions"][0]["output"]
    document["messages"][1]["payload"]["summary"] = "Done, it ticks."
    again = message("task_completion", BUILDER, PLANNER, {"task_id": "task-001", "summary": "Still done."}, 55)
    document["messages"].append(again)
    data = json.dumps(document).encode()

    own = events_of(side_chains(data)["builder"])

    assert "Done, it ticks." == record(own, "sub-001/answer").content
    assert told([event for event in events_of(data) if event.agent_id == "builder"]) == told(own)


@pytest.mark.parametrize("change", ["no id", "an id of a session", "no type of a message"])
def test_an_agents_chain_is_read_as_such_whatever_its_lines_lack_or_have(change: str) -> None:
    document = multi()
    document["messages"].append(message("feedback", CHECKER, BUILDER, {"content": "Mind the hands."}))
    if change == "no id":
        del document["sub_sessions"][0]["sub_session_id"]
    elif change == "an id of a session":
        document["sub_sessions"][0]["session_id"] = document["messages"][-1]["session_id"] = "run-7"
    else:
        del document["messages"][-1]["message_type"]
    data = json.dumps(document).encode()

    own = told(events_of(side_chains(data)["builder"]))

    assert told([event for event in events_of(data) if event.agent_id == "builder"]) == own


def test_an_agent_that_is_named_by_a_text_is_the_one_of_that_id() -> None:
    document = multi()
    document["messages"].append(message("feedback", CHECKER, BUILDER, {"content": "Mind the hands."}))
    expected = told(read(document))
    for sub in document["sub_sessions"]:
        sub["agent"] = sub["agent"]["agent_id"]
    for one in document["messages"]:
        one |= {side: one[side]["agent_id"] for side in ("from_agent", "to_agent")}

    assert [*expected, ("", "output", "@shape")] == told(read(document))


def test_the_conversation_of_a_document_is_that_of_its_own_agent() -> None:
    agents = {event.agent_id for event in main_events(json.dumps(multi()).encode())}

    assert {"lead"} == agents
