"""A document from a session: calls, agents, times and what the session does not tell."""

from __future__ import annotations

from typing import Any

import pytest

from harken.events import (
    AgentCreated,
    Metric,
    Prompt,
    Thinking,
    ToolCall,
)
from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps, write
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import multi, single
from support.std_exported import FACTS, exported
from support.std_sessions import START, Told, lone, pair


def test_a_session_of_one_agent_is_a_document_of_std_001() -> None:
    made = exported(lone())

    data = made.document.data
    assert ("std-001", "success") == (made.document.kind, data["status"])
    assert "2026-03-04-001-the-clock" == data["session_id"]
    assert ("The clock", "Mend the clock.") == (data["task_title"], data["user_prompt"])
    assert ("2026-03-04T10:00:00.000000Z", "2026-03-04T10:00:04.000000Z") == (data["created_at"], data["completed_at"])
    assert {"model_id": "claude-opus-5"} == data["agent"]
    assert [
        {
            "call_id": "c2",
            "tool_name": "Read",
            "tool_category": "perception",
            "started_at": "2026-03-04T10:00:02.000000Z",
            "ended_at": "2026-03-04T10:00:03.000000Z",
            "duration_ms": 1000,
            "input": {"params": {"file_path": "clock.py"}},
            "output": {"status": "success", "result": {"display": "done"}},
        }
    ] == data["tool_calls"]
    assert ["status"] == made.derived
    assert {"version": 1, "session": "s-1", "runtime": "claude-code", "derived": ["status"]} == data["x_harken"]


def test_the_model_is_the_main_agents_and_not_that_of_what_others_used() -> None:
    told = lone()
    told.add(Metric(agent_id="main", model="claude-haiku-4-5", scope="embedded"))

    assert {"model_id": "claude-opus-5"} == exported(told).document.data["agent"]


def command(name: str, words: str = "") -> str:
    """A command as Claude Code keeps it."""
    return f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>" + (
        f"\n<command-args>{words}</command-args>" if words else ""
    )


@pytest.mark.parametrize(
    ("prompts", "asked"),
    [
        (
            [("command", command("build", "a small\nclock")), ("meta", "Split it."), (None, "Thanks!")],
            "/build a small\nclock",
        ),
        ([("command", command("think")), ("skill", "Think first."), (None, "Build a clock.")], "Build a clock."),
        ([("command", command("model", "opus")), ("local_command_output", "ok"), (None, "Build it.")], "Build it."),
        ([("command", command("init")), ("meta", "Look around.")], "/init"),
    ],
)
def test_what_a_person_asked_by_a_command_is_what_was_asked(prompts: Any, asked: str) -> None:
    told = Told()
    for origin, words in prompts:
        told.ask(words, **({"source": "injected", "origin": origin} if origin else {}))
    told.say("Done.")

    assert asked == exported(told).document.data["user_prompt"]


def test_a_single_agent_is_told_with_its_call_and_what_is_left_out_is_said() -> None:
    told = Told()
    told.ask("Have it done.")
    made = told.spawn("one")
    told.result(told.call("Read", agent="one"))
    told.add(Metric(agent_id="one", input_tokens=10, output_tokens=5))
    told.answer(made, "one")

    found = exported(told)

    (call,) = found.document.data["tool_calls"]
    assert ("std-001", "Task", "Agent") == (found.document.kind, call["tool_name"], call["x_harken_name"])
    assert {
        "subagent_type": "developer",
        "tool_uses": 1,
        "tokens_used": 15,
        "tools_breakdown": [{"tool_name": "Read", "count": 1}],
    } == call["subagent_info"]
    assert {
        "calls of sub-agents": 1,
        "results of sub-agents": 1,
        "what agents said": 1,
        "what agents heard": 1,
        "counts of tokens": 1,
    } == {loss.what: loss.count for loss in found.losses}


def test_a_type_that_nobody_told_is_said_to_be_filled_in_where_there_are_no_participants() -> None:
    told = Told()
    told.ask("Have it done.")
    made = told.call("spawn_agent", '{"message": "Look."}')
    told.agent("one", made)
    told.answer(made, "one")

    found = exported(told)

    assert "agent" == found.document.data["tool_calls"][0]["subagent_info"]["subagent_type"]
    assert ["status", "tool_calls[0].subagent_info.subagent_type"] == found.derived


def test_several_agents_are_sub_sessions_linked_to_their_calls() -> None:
    found = exported(pair())

    data = found.document.data
    assert "std-008" == found.document.kind
    assert data["session_id"].endswith("-multi")
    subs = {sub["agent"]["agent_id"]: sub for sub in data["sub_sessions"]}
    calls = {call["call_id"]: call for call in data["tool_calls"]}
    assert ["one", "deep", "two"] == list(subs)
    for sub in subs.values():
        trigger = calls[sub["triggered_by_call_id"]]
        assert ("Task", "Agent") == (trigger["tool_name"], trigger["x_harken_name"])
        assert sub["sub_session_id"] == trigger["subagent_info"]["sub_session_id"]
        assert len(sub["tool_calls"]) == trigger["subagent_info"]["tool_uses"]
    assert [data["session_id"], "sub-001", data["session_id"]] == [sub["parent_session_id"] for sub in subs.values()]
    assert [None, "one", None] == [calls[sub["triggered_by_call_id"]].get("x_harken_owner") for sub in subs.values()]
    assert 2 == data["summary"]["tool_calls_count"]
    assert "the work of deep" == subs["deep"]["task"]["description"]
    assert ["success"] * 3 == [sub["status"] for sub in subs.values()]
    assert [] == found.losses


def test_what_was_said_rides_beside_the_calls() -> None:
    told = pair()
    told.add(Thinking(agent_id="main", content="Hm."))
    told.say("Good bye.")

    data = exported(told).document.data

    main = data["x_harken_conversation"]
    assert ["agent_created", "prompt", "call", "result", "call", "result", "response", "thinking", "response"] == [
        entry.get("type") or next(iter(entry)) for entry in main
    ]
    assert {"call": "c2", "timestamp": START // 1_000_000 + 2, "message_id": "m2"} == main[2]
    assert "Main" == main[0]["agent_created"]["name"]
    (deep,) = (sub for sub in data["sub_sessions"] if sub["agent"]["agent_id"] == "deep")
    assert ["the work of deep"] == [
        one["prompt"]["content"] for one in deep["x_harken_conversation"] if "prompt" in one
    ]
    assert all("agent_id" not in entry for entry in main)


def test_a_session_of_one_agent_can_be_written_as_several_would_be() -> None:
    found = exported(lone(), "std-008")

    data = found.document.data
    assert ("single", [], []) == (data["collaboration"]["mode"], data["sub_sessions"], data["messages"])
    assert not data["session_id"].endswith("-multi")
    assert ["response"] == [one["type"] for one in data["x_harken_conversation"] if "response" in one]
    assert [] == found.losses


def test_an_agent_that_the_program_made_gets_a_call_that_is_marked() -> None:
    told = pair()
    told.agent("guard", role="hook")
    told.events.append(told.events.pop(-2))  # the last words stay the last

    found = exported(told)

    (sub,) = (one for one in found.document.data["sub_sessions"] if one["agent"]["agent_id"] == "guard")
    (call,) = (one for one in found.document.data["tool_calls"] if one["call_id"] == sub["triggered_by_call_id"])
    assert ("Task", True, "sub-004") == (
        call["tool_name"],
        call["x_harken_derived"],
        call["subagent_info"]["sub_session_id"],
    )
    assert ("hook", "no task is recorded") == (sub["agent"]["agent_type"], sub["task"]["description"])
    assert 2 == found.document.data["summary"]["tool_calls_count"]
    assert "sub_sessions[3].task.description" in found.derived


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False)])
def test_an_agent_that_was_sent_back_to_work_stands_as_its_last_task_does(*, first: bool, second: bool) -> None:
    told = Told()
    told.ask("Have the clock mended.")
    made = told.spawn("one")
    said = told.say("The hour.", "one")
    told.result(made, "The hour.", substance=said.message_id, is_error=first)
    again = told.call("Agent", '{"resume": "one", "prompt": "The minutes, too."}')
    told.ask("The minutes, too.", "one", source="injected", origin="agent", cause=again.message_id)
    said = told.say("The minutes.", "one")
    told.result(again, "The minutes.", substance=said.message_id, is_error=second)
    told.say("So be it.")

    (sub,) = exported(told, "std-008").document.data["sub_sessions"]

    assert ("failed" if second else "success") == sub["status"]
    assert ("failed" if second else "completed", "The minutes.") == (sub["output"]["status"], sub["output"]["summary"])


def test_an_agent_in_the_middle_of_its_second_task_is_in_progress() -> None:
    told = Told()
    told.ask("Have the clock mended.")
    told.answer(told.spawn("one"), "one")
    again = told.call("Agent", '{"resume": "one", "prompt": "The minutes, too."}')
    told.ask("The minutes, too.", "one", source="injected", origin="agent", cause=again.message_id)
    told.call("Read", agent="one")

    data = exported(told, "std-008").document.data

    (sub,) = data["sub_sessions"]
    assert ("in_progress", "in_progress") == (data["status"], sub["status"])
    assert set() == {"completed_at", "output"} & sub.keys()
    assert ["in_progress"] == [row["status"] for row in data["summary"]["agents"]["developers"]]


def test_an_empty_session_is_a_document() -> None:
    found = document_of([], SessionFacts())

    assert ("in_progress", [], "session") == (
        found.document.data["status"],
        found.document.data["tool_calls"],
        found.document.data["task_title"],
    )


def test_an_agent_that_never_came_back_is_in_progress() -> None:
    told = Told()
    told.ask("Start two.")
    for name in ("one", "two"):
        told.result(told.spawn(name), "launched")
        told.call("Read", agent=name)
    told.say("Both are at it.")

    data = exported(told).document.data

    assert ["in_progress", "in_progress"] == [sub["status"] for sub in data["sub_sessions"]]
    assert all("completed_at" not in sub and "output" not in sub for sub in data["sub_sessions"])


def test_an_agent_whose_own_records_are_gone_is_told_by_its_call_and_the_result() -> None:
    told = pair()
    call = told.call("Task", '{"subagent_type": "looker", "prompt": "Look."}')
    told.add(Metric(agent_id="a9a05d4", output_tokens=7, scope="embedded", api_id="x", request_id="y"))
    told.result(call, "All quiet.\nagentId: a9a05d4")
    told.say("Done.")

    found = exported(told)

    sub = found.document.data["sub_sessions"][-1]
    trigger = found.document.data["tool_calls"][-1]
    assert (call.id, "Look.", "success", []) == (
        sub["triggered_by_call_id"],
        sub["task"]["description"],
        sub["status"],
        sub["tool_calls"],
    )
    assert {"subagent_type": "looker", "sub_session_id": "sub-004", "tool_uses": 0, "tokens_used": 7} == trigger[
        "subagent_info"
    ]
    assert "tool_calls[3].subagent_info.tool_uses" in found.derived
    assert "task_completion" == found.document.data["messages"][-1]["message_type"]
    assert sub["output"]["summary"].startswith("All quiet.")


def test_a_task_that_repeats_its_call_is_given_by_it_and_answered() -> None:
    told = Told()
    told.ask("Have it done.")
    made = told.call("Task", '{"subagent_type": "developer", "prompt": "Do it."}')
    told.agent("one", made)
    told.ask("Do it.", "one", source="injected", substance=made.message_id)
    told.answer(made, "one")

    data = exported(told, "std-008").document.data

    assert ["task_assignment", "task_completion"] == [one["message_type"] for one in data["messages"]]
    assert "one is done" == data["messages"][-1]["payload"]["summary"]


def test_one_call_that_made_two_agents_names_the_first() -> None:
    told = Told()
    made = told.spawn("one")
    told.agent("two", made)
    told.answer(made, "one")
    told.say("Done.")

    data = exported(told).document.data

    triggers = [sub["triggered_by_call_id"] for sub in data["sub_sessions"]]
    assert [made.id, "spawn-002"] == triggers
    assert set(triggers) == {call["call_id"] for call in data["tool_calls"]}


def test_many_derived_values_of_one_kind_are_told_as_one() -> None:
    told = Told()
    for number in range(20):
        told.answer(told.spawn(f"a{number}"), f"a{number}")
    told.say("All are back.")

    assert ["status", "collaboration.pattern", "collaboration.orchestrator.agent_type"] == exported(told).derived[:3]
    assert "sub_sessions[*].task.priority" in exported(told).derived


def test_a_type_of_the_main_agent_that_is_told_stands() -> None:
    told = pair()
    told.events[0] = told.events[0].replace(attributes=b'{"agent_type": "product_owner"}')

    found = exported(told)

    assert "product_owner" == found.document.data["collaboration"]["orchestrator"]["agent_type"]
    assert "collaboration.orchestrator.agent_type" not in found.derived


def test_a_thousand_agents_at_once_are_a_document() -> None:
    told = Told()
    made = [told.spawn(f"a{number}") for number in range(1000)]
    for number, call in enumerate(made):
        told.answer(call, f"a{number}")
    told.say("All are back.")

    data = exported(told).document.data

    assert (1000, 1000) == (len(data["sub_sessions"]), data["summary"]["tool_calls_count"])


def test_agents_that_a_document_only_lists_are_listed_again_and_nothing_is_made_up() -> None:
    listed = [
        {"agent_id": "builder", "agent_type": "developer", "role_category": "worker"},
        {"agent_id": "checker", "agent_type": "reviewer"},
    ]
    leader = {"agent_id": "lead", "agent_type": "architect"}
    collaboration = {"mode": "single", "pattern": "master_worker", "orchestrator": leader, "participants": listed}
    events = events_of(dumps({**single(), "collaboration": collaboration}))

    made = document_of(events, FACTS)

    data = made.document.data
    assert collaboration == data["collaboration"]
    assert ([], [], 2) == (data["sub_sessions"], data["messages"], len(data["tool_calls"]))
    assert "review_iterations" not in data["summary"]
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    again = events_of(write(made.document))
    for kind in (AgentCreated, ToolCall, Prompt):
        assert [event.agent_id for event in events if isinstance(event, kind)] == [
            event.agent_id for event in again if isinstance(event, kind)
        ]
    plain = document_of(events, FACTS, "std-001").document.data
    assert ["tool-001", "tool-002"] == [call["call_id"] for call in plain["tool_calls"]]


def test_who_was_given_nothing_has_no_sub_session_while_another_is_at_work() -> None:
    document = multi()
    document["collaboration"]["participants"].reverse()
    del document["tool_calls"][2:], document["sub_sessions"][1:], document["completed_at"]
    document |= {"status": "in_progress", "messages": []}
    for left_open in (document["tool_calls"][1], document["sub_sessions"][0]):
        for key in ("ended_at", "completed_at", "output"):
            left_open.pop(key, None)
    document["sub_sessions"][0]["status"] = "in_progress"

    data = document_of(events_of(dumps(document)), FACTS).document.data

    assert [("builder", "tool-002")] == [
        (sub["agent"]["agent_id"], sub["triggered_by_call_id"]) for sub in data["sub_sessions"]
    ]
    assert {"builder", "checker"} == {agent["agent_id"] for agent in data["collaboration"]["participants"]}
    assert ["builder"] == [message["to_agent"]["agent_id"] for message in data["messages"]]


def test_a_remark_to_an_agent_that_is_done_gives_it_no_task() -> None:
    document = multi()
    payload = {"feedback_type": "guidance", "subject": "style", "content": "Shorter.", "action_required": False}
    remark = {**document["messages"][0], "message_id": "msg-009", "sequence_number": 9, "payload": payload}
    document["messages"].append({**remark, "message_type": "feedback", "timestamp": "2026-03-04T10:04:30Z"})

    data = document_of(events_of(dumps(document)), FACTS).document.data

    assert document["summary"]["tasks"] == data["summary"]["tasks"]
    last = data["messages"][-1]
    assert ("feedback", "builder") == (last["message_type"], last["to_agent"]["agent_id"])


def test_who_was_given_nothing_has_no_sub_session_beside_those_who_worked() -> None:
    document = multi()
    anna = {"agent_id": "anna", "agent_type": "reviewer", "role_category": "validator", "team": 7}
    odd = {"agent_id": "bob", "agent_type": "developer", "role_category": "boss"}
    document["collaboration"]["participants"] += [anna, odd]
    events = events_of(dumps(document))

    made = document_of(events, FACTS)

    data = made.document.data
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    assert len(document["sub_sessions"]) == len(data["sub_sessions"]) == made.agents
    assert [] == [call for call in data["tool_calls"] if call.get("x_harken_derived")]
    kept = {"agent_id": "bob", "agent_type": "developer", "x_harken_old_role_category": "boss"}
    assert [anna, kept] == data["collaboration"]["participants"][-2:]
    again = events_of(write(made.document))
    assert {event.agent_id for event in events} == {event.agent_id for event in again}
