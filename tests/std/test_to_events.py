"""A session document as events: agents, what they did, what they told each other, and what does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.events import AgentCreated, Event, Output, PieceOfText, Prompt, Response, System, ToolCall, ToolResult
from harken.formats.std.document import dumps
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.in_order import ToldRecord, in_order
from harken.formats.std.importing.to_events import events_of, main_events, side_chains
from harken.formats.std.repairing.repair import repair
from support.std_documents import BUILDER, CHECKER, PLANNER, call, multi, single, sub_session, task_call

Json = dict[str, Any]


def read(document: object) -> list[Event]:
    return events_of(json.dumps(document).encode())


def told(events: list[Event]) -> list[tuple[str, str, str]]:
    """Who, what kind, and which record."""
    return [(event.agent_id, event.kind, event.message_id) for event in events]


def without_fields(events: list[Event]) -> list[Event]:
    """All but the record of fields that no event tells: a repair adds one, `updated_at`, and what nobody leads
    is counted otherwise than the summary says."""
    return [event for event in events if event.message_id != "fields"]


def record(events: list[Event], name: str) -> Any:
    return next(event for event in events if event.message_id == name)


def message(kind: str, sender: Json, hearer: Json, payload: Any, second: int = 50) -> Json:
    return {
        "message_id": "msg-009",
        "timestamp": f"2026-03-04T10:00:{second:02}Z",
        "sequence_number": 9,
        "from_agent": sender,
        "to_agent": hearer,
        "message_type": kind,
        "payload": payload,
    }


# -- a session of one agent --------------------------------------------------------------------------------------------


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


def test_a_document_without_an_orchestrator_has_the_same_agents_before_and_after_its_repair() -> None:
    roles = [{"agent_type": "product_owner"}, {"agent_type": "developer"}]
    document = single() | {"collaboration": {"mode": "multi_agent", "pattern": "pipeline", "participants": roles}}
    repaired = repair(json.dumps(document).encode()).data

    assert told(read(document)) == told(without_fields(events_of(repaired)))
    assert {"product_owner", "developer"} == {agent for agent, _, _ in told(read(document))}


def test_where_nobody_is_listed_whoever_gives_the_first_task_is_the_main_agent() -> None:
    document = multi()
    leader = document.pop("collaboration")["orchestrator"]["agent_id"]
    repaired = repair(json.dumps(document).encode()).data

    assert told(without_fields(read(document))) == told(without_fields(events_of(repaired)))
    assert leader == read(document)[0].agent_id


@pytest.mark.parametrize("is_odd", [False, True])
def test_an_orchestrator_that_nobody_named_gives_the_tasks_where_participants_were_given_theirs(is_odd: bool) -> None:
    document = multi()
    leader = document["collaboration"].pop("orchestrator")
    if is_odd:
        document["sub_sessions"] = {one["sub_session_id"]: one for one in document["sub_sessions"]}
        names = {"from_agent": "from", "to_agent": "to", "message_type": "type"}
        document["messages"] = [{names.get(key, key): one[key] for key in one} for one in document["messages"]]
    repaired = repair(json.dumps(document).encode()).data

    heard = [event for event in without_fields(read(document)) if event.message_id != "@shape"]

    assert leader == json.loads(repaired)["collaboration"]["orchestrator"]
    assert told(read(multi())) == told(heard) == told(without_fields(events_of(repaired)))


@pytest.mark.parametrize("said", [None, "", {}, {"description": "plans"}])
@pytest.mark.parametrize("is_odd", [False, True])
def test_a_worker_that_gives_the_first_task_to_a_worker_of_its_own_does_not_lead(said: Any, is_odd: bool) -> None:
    document = multi()
    leader, document["collaboration"]["orchestrator"] = document["collaboration"]["orchestrator"], said
    document["messages"].insert(0, message("task_assignment", BUILDER, CHECKER, {"task": {"task_id": "task-007"}}))
    if is_odd:
        document["messages"] = [{"type" if key == "message_type" else key: one[key] for key in one}
                                for one in document["messages"]]  # fmt: skip
    repaired = json.loads(repair(json.dumps(document).encode()).data)["collaboration"]["orchestrator"]

    assert leader == {key: repaired[key] for key in leader}
    assert leader["agent_id"] == read(document)[0].agent_id


@pytest.mark.parametrize("said", [None, "", {}])
def test_of_agents_that_nobody_listed_and_that_were_given_work_none_leads(said: Any) -> None:
    document = multi() | {"messages": []}
    document["collaboration"] |= {"orchestrator": said, "participants": None}

    repaired = json.loads(repair(json.dumps(document).encode()).data)["collaboration"]

    assert ("main", "architect") == (repaired["orchestrator"]["agent_id"], repaired["orchestrator"]["agent_type"])
    assert [BUILDER, CHECKER] == repaired["participants"]
    assert "main" == read(document)[0].agent_id


def test_an_orchestrator_that_is_the_only_one_in_a_list_is_the_main_agent() -> None:
    document = multi()
    document["collaboration"]["orchestrator"] = [document["collaboration"]["orchestrator"]]

    assert PLANNER["agent_id"] == read(document)[0].agent_id


def test_whoever_is_named_by_a_message_alone_is_an_agent() -> None:
    document = multi()
    document["collaboration"]["orchestrator"] = {"agent_type": "lead architect"}
    repaired = events_of(repair(json.dumps(document).encode()).data)

    made = {event.agent_id for event in read(document) if isinstance(event, AgentCreated)}

    assert {"lead architect", "builder", "checker", "lead"} == made
    assert made == {event.agent_id for event in repaired if isinstance(event, AgentCreated)}


@pytest.mark.parametrize("key", ["from_agent", "to_agent"])
def test_messages_that_name_their_agents_by_a_text_are_read_as_a_repair_writes_them(key: str) -> None:
    document = multi()
    document["messages"] = [{**one, key: one[key]["agent_id"]} for one in document["messages"]]
    repaired = events_of(repair(json.dumps(document).encode()).data)

    assert record(repaired, "document") == record(read(document), "document")


# -- several agents ----------------------------------------------------------------------------------------------------


def test_a_task_call_makes_an_agent_that_hears_its_task_works_and_answers() -> None:
    assert [
        ("lead", "tool_call", "tool-002"),
        ("builder", "agent_created", "builder:created"),
        ("builder", "prompt", "sub-001/task"),
        ("builder", "tool_call", "sub-001/b-001"),
        ("builder", "tool_result", "sub-001/b-001:result"),
        ("builder", "response", "sub-001/answer"),
        ("lead", "tool_result", "tool-002:result"),
    ] == [one for one in told(read(multi())) if one[0] == "builder" or "tool-002" in one[2]][:7]


def test_agents_are_created_by_their_calls_with_what_the_standard_says_of_them() -> None:
    document = multi()
    document["sub_sessions"][0]["agent"] = BUILDER | {"instance_id": "b-1", "role_category": "worker"}

    made = record(read(document), "builder:created")

    assert ("builder", "lead", "child", "tool-002") == (made.name, made.parent, made.role, made.cause)
    said = {"agent_type": "developer", "instance_id": "b-1", "role_category": "worker"}
    assert said == json.loads(made.attributes)
    assert "root" == record(read(document), "lead:created").role


def test_a_participant_that_did_nothing_is_created_all_the_same() -> None:
    document = multi()
    document["collaboration"]["participants"].append({"agent_id": "idle", "agent_type": "developer"})

    made = record(read(document), "idle:created")

    assert ("lead", None) == (made.parent, made.cause)


def test_a_result_without_words_is_the_agents_answer_and_one_with_others_comes_from_it() -> None:
    document = multi()
    document["tool_calls"][1]["output"] = {"status": "success"}
    events = read(document)

    silent, worded = record(events, "tool-002:result"), record(events, "tool-003:result")

    assert ("The clock is right.", "sub-001/answer") == (silent.output, silent.substance)
    assert ("what tool-003 found", ("tool-003", "sub-002/answer")) == (worded.output, worded.cause)


def test_a_result_that_only_says_that_the_agent_was_launched_is_not_its_answer() -> None:
    document = multi()
    document["tool_calls"][1] |= {"ended_at": "2026-03-04T10:00:31Z", "duration_ms": 1000}

    assert "tool-002" == record(read(document), "tool-002:result").cause


def test_an_agent_made_by_a_sub_agent_is_below_that_one() -> None:
    document = multi()
    document["sub_sessions"][0]["tool_calls"].append(call("b-002", 45, "Task", "interaction"))
    document["sub_sessions"][1] |= {"parent_session_id": "sub-001", "triggered_by_call_id": "b-002"}

    made = record(read(document), "checker:created")

    assert ("builder", "sub-001/b-002") == (made.parent, made.cause)


def test_an_agent_is_below_the_one_whose_sub_session_is_its_parent_also_where_the_call_is_a_main_one() -> None:
    document = multi()
    document["sub_sessions"][1]["parent_session_id"] = "sub-001"

    made = record(read(document), "checker:created")

    assert ("builder", "tool-003") == (made.parent, made.cause)


@pytest.mark.parametrize("parents", [("sub-002", "sub-001"), ("sub-001", "sub-002")])
def test_agents_that_are_below_each_other_or_themselves_are_below_the_main_one(parents: tuple[str, str]) -> None:
    document = multi()
    for sub, parent in zip(document["sub_sessions"], parents, strict=True):
        sub["parent_session_id"] = parent

    events = read(document)

    assert ["lead", "lead"] == [record(events, f"{name}:created").parent for name in ("builder", "checker")]


def test_agents_side_by_side_are_told_in_the_order_of_time() -> None:
    document = multi()
    document["tool_calls"][2]["started_at"] = "2026-03-04T10:00:31Z"
    document["sub_sessions"][1] |= {"started_at": "2026-03-04T10:00:31Z", "tool_calls": [call("c-001", 35)]}

    order = [name for _, kind, name in told(read(document)) if kind == "tool_call"]

    assert ["tool-001", "tool-002", "tool-003", "sub-002/c-001", "sub-001/b-001"] == order


def test_sub_sessions_of_one_agent_are_told_in_the_order_in_which_they_began() -> None:
    document = multi()
    document["sub_sessions"][1]["agent"] = dict(BUILDER)
    in_time = read(document)
    document["sub_sessions"].reverse()

    events = read(document)

    assert told(in_time) == told(events)
    assert "tool-002" == record(events, "builder:created").cause


def test_without_any_times_an_agent_works_between_its_call_and_the_result() -> None:
    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if not k.endswith("_at") and k != "timestamp"}
        return [timeless(item) for item in value] if isinstance(value, list) else value

    names = [name for _, _, name in told(read(timeless(multi())))]

    for first, second in (
        ("tool-002", "builder:created"),
        ("sub-001/answer", "tool-002:result"),
        ("tool-002:result", "tool-003"),
        ("sub-002/answer", "tool-003:result"),
    ):
        assert names.index(first) < names.index(second)


def test_calls_of_the_same_ids_in_several_sub_sessions_are_several_records() -> None:
    document = multi()
    for sub in document["sub_sessions"]:
        sub["tool_calls"] = [call("tool-001", 40)]

    names = [name for _, kind, name in told(read(document)) if kind == "tool_call"]

    assert len(set(names)) == len(names) == 5


def with_second_sub_session(second: int) -> Json:
    """The builder has one from 10:00:30 to 10:01:30, and another of a minute that begins at the given second."""
    document = multi()
    document["tool_calls"].insert(2, task_call("tool-010", second, "sub-010", "developer"))
    output = {"output_type": "generic", "task_id": "task-010", "status": "completed", "summary": "That too."}
    more = sub_session("sub-010", BUILDER, "tool-010", "task-010", second, call("b-010", second + 10), output)
    document["sub_sessions"].insert(1, more)
    return document


_FIRST = ["sub-001/task", "sub-001/b-001", "sub-001/b-001:result", "sub-001/answer", "sub-001/output"]
_SECOND = ["sub-010/task", "sub-010/b-010", "sub-010/b-010:result", "sub-010/answer", "sub-010/output"]


@pytest.mark.parametrize(
    ("second", "order"),
    [
        (50, [*_FIRST[:3], *_SECOND[:3], *_FIRST[3:], *_SECOND[3:]]),
        (90, [*_FIRST, *_SECOND]),
        (100, [*_FIRST, *_SECOND]),
    ],
)
def test_sub_sessions_of_one_agent_are_told_by_time(second: int, order: list[str]) -> None:
    document = with_second_sub_session(second)
    chain = side_chains(json.dumps(document).encode())["builder"]

    both = [
        [name for who, _, name in told(events) if who == "builder"] for events in (read(document), events_of(chain))
    ]

    assert [["builder:created", *order]] * 2 == both


def test_a_sub_session_without_times_is_told_behind_the_one_before_it() -> None:
    document = with_second_sub_session(50)
    for holder in (document["sub_sessions"][1], document["sub_sessions"][1]["tool_calls"][0]):
        for key in ("started_at", "completed_at", "ended_at"):
            holder.pop(key, None)

    assert ["builder:created", *_FIRST, *_SECOND] == [name for who, _, name in told(read(document)) if who == "builder"]


# -- messages ----------------------------------------------------------------------------------------------------------


def test_messages_that_repeat_calls_and_outputs_are_not_told_twice() -> None:
    assert [] == [event for event in read(multi()) if event.message_id.startswith("msg-")]


def test_other_messages_are_said_by_one_agent_and_heard_by_another() -> None:
    document = multi()
    document["messages"].append(message("feedback", PLANNER, BUILDER, {"content": "Mind the hands."}))
    events = read(document)

    said, heard = record(events, "msg-009"), record(events, "msg-009:heard")

    assert ("lead", "Mind the hands.") == (said.agent_id, said.content)
    assert ("builder", "[lead]: Mind the hands.", "msg-009") == (heard.agent_id, heard.content, heard.substance)
    assert isinstance(said, PieceOfText)
    assert isinstance(heard, Prompt)
    names = [event.message_id for event in events]
    assert names.index("sub-001/b-001:result") < names.index("msg-009:heard") < names.index("sub-001/answer")


def test_what_an_agent_sent_is_in_its_conversation_once_as_words_of_its_own() -> None:
    document = multi()
    document["messages"] += [
        message("feedback", PLANNER, BUILDER, "Mind it."),
        message("feedback", BUILDER, PLANNER, "Yes."),
    ]
    data = json.dumps(document).encode()

    def words(events: list[Event]) -> list[str]:
        return [event.content for event in events if isinstance(event, Response | PieceOfText)]

    main, chain = main_events(data), main_events(side_chains(data)["builder"])

    assert ["Mind it."] == words(main)
    assert ["Yes."] == [said for said in words(chain) if said == "Yes."]
    assert not any(isinstance(event, PieceOfText) for event in (*main, *chain))


def test_text_that_a_call_made_for_others_is_told_by_the_call() -> None:
    document = multi()
    piece = {"type": "piece_of_text", "message_id": "m1", "piece_of_text": {"content": "Hear me."}}
    document["x_harken_conversation"] = [{**piece, "cause": "tool-001"}, {**piece, "message_id": "m2"}]
    said = [event for event in main_events(json.dumps(document).encode()) if isinstance(event, Response)]
    assert ["m2"] == [event.message_id for event in said]


def test_a_second_assignment_of_a_task_is_heard() -> None:
    document = multi()
    document["messages"].append(message("task_assignment", PLANNER, BUILDER, {"task": {"task_id": "task-001"}}))

    assert 'task_assignment: {"task":{"task_id":"task-001"}}' == record(read(document), "msg-009").content


def test_a_task_that_a_message_alone_gives_is_heard_in_its_own_words() -> None:
    document = multi()
    task = {"task_id": "task-009", "task_description": "Write the docs, too."}
    document["messages"].append(message("task_assignment", PLANNER, BUILDER, {"task": task}))

    assert "Write the docs, too." == record(read(document), "msg-009").content


def test_a_completion_with_words_is_the_answer_where_the_output_has_none() -> None:
    document = multi()
    del document["sub_sessions"][0]["output"]
    document["messages"][1]["payload"]["summary"] = "Done, it ticks."

    assert "Done, it ticks." == record(read(document), "sub-001/answer").content


def test_a_completion_is_heard_where_the_call_only_launched() -> None:
    document = multi()
    document["tool_calls"][1] |= {"ended_at": "2026-03-04T10:00:31Z", "duration_ms": 1000}

    heard = record(read(document), "msg-002:heard")

    assert ("lead", "[builder]: The clock is right.") == (heard.agent_id, heard.content)
    assert "sub-001/answer" == heard.substance


def test_a_completion_in_words_of_its_own_comes_from_the_answer() -> None:
    document = multi()
    del document["tool_calls"][1]["output"]
    document["messages"][1]["payload"]["message"] = "Ready for review."

    heard = record(read(document), "msg-002:heard")

    assert ("[builder]: Ready for review.", "sub-001/answer") == (heard.content, heard.cause)


# -- an agent's own chain ----------------------------------------------------------------------------------------------


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


# -- what does not fit -------------------------------------------------------------------------------------------------


def test_parts_of_the_wrong_type_are_told_with_the_reason() -> None:
    document = multi() | {"phase_annotations": 3}
    document["tool_calls"].append("not a call")
    document["sub_sessions"] += [None, {"status": "success"}]
    document["messages"] += ["hello", {"message_type": "feedback"}]

    reasons = [event.why for event in read(document) if isinstance(event, Output) and event.why]

    assert [
        "`phase_annotations` is a number, not a list",
        "a call is a text, not an object",
        "a message is a text, not an object",
        "a message names neither of its agents",
        "a sub-session is null, not an object",
        "a sub-session names neither itself nor its agent",
    ] == sorted(reasons)


def test_calls_and_sub_sessions_without_ids_belong_to_nobody_else() -> None:
    document = multi()
    del document["tool_calls"][1]["call_id"]
    del document["tool_calls"][1]["subagent_info"]["sub_session_id"]
    del document["sub_sessions"][0]["triggered_by_call_id"]

    made = record(read(document), "builder:created")

    assert ("lead", None) == (made.parent, made.cause)


def test_entries_of_a_conversation_that_do_not_fit_are_told_with_the_reason() -> None:
    entries: list[Any] = [
        {"type": "prompt", "timestamp": 0, "prompt": {"content": "Go."}, "message_id": "m1"},
        {"call": "tool-001", "message_id": "m2", "index": 10**30},
        {"call": "no-such"},
        {"result": 5},
        {"type": "agent_created", "timestamp": 0, "agent_created": {"attributes": {"n": 10**30}}},
        {"type": "dance"},
        "word",
    ]
    events = read(single() | {"x_harken_conversation": entries})

    assert "Go." == record(events, "m1").content
    assert 6 == sum(isinstance(event, Output) and bool(event.why) for event in events)
    assert ["tool-001", "tool-002"] == [
        event.id for event in events if isinstance(event, ToolCall)
    ]  # told all the same


def test_what_is_no_json_is_told_with_the_reason() -> None:
    found = events_of(b'{"session_id": "s", "user_prompt": "say "hi", "tool_calls": []}')

    assert isinstance(found[0], Output)
    assert "no JSON" in found[0].why


def test_documents_nested_beyond_measure_are_told_and_not_followed() -> None:
    deep = b'{"session_id":"s","task_title":"t","tool_calls":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    assert [True] == [isinstance(event, Output) and bool(event.why) for event in events_of(deep)]


_odd = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.just([])
    | st.just({})
)
_values = st.recursive(
    _odd, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


@st.composite
def broken(draw: st.DrawFn) -> Json:
    """A document with odd values in some places."""
    document: Json = multi()
    for _ in range(draw(st.integers(1, 6))):
        at: Any = document
        while isinstance(at, dict | list) and at:
            key = draw(st.sampled_from(list(at) if isinstance(at, dict) else list(range(len(at)))))
            if draw(st.integers(0, 2)) == 0 or not isinstance(at[key], dict | list):
                at[key] = draw(_values)
                break
            at = at[key]
    return document


@settings(max_examples=150, deadline=None)
@given(document=broken())
def test_no_value_in_any_place_makes_reading_fail(document: Json) -> None:
    data = json.dumps(document).encode()

    events = events_of(data)

    assert events
    assert all(events_of(lines) for lines in side_chains(data).values())
    assert [created for created in events if isinstance(created, AgentCreated)]


def test_reading_many_agents_side_by_side_takes_time_in_proportion() -> None:
    document = multi()
    template, sub = document["tool_calls"][1], document["sub_sessions"][0]
    count = 1000
    document["tool_calls"] = [template | {"call_id": f"t{n}"} for n in range(count)]
    document["sub_sessions"] = [
        sub | {"sub_session_id": f"s{n}", "triggered_by_call_id": f"t{n}", "agent": BUILDER | {"agent_id": f"a{n}"}}
        for n in range(count)
    ]

    events = read(document)

    assert count == sum(isinstance(event, AgentCreated) and event.cause is not None for event in events)
    assert count == sum(isinstance(event, ToolResult) and event.agent_id == "lead" for event in events)


# -- who takes part, and is not named as the standard has it -----------------------------------------------------------


def test_participants_without_an_id_are_agents_under_the_ids_that_a_repair_gives_them() -> None:
    listed = [{"agent_type": "architect"}, {"agent_type": "developer"}, {"role": "developer"}, "reviewer", {}, 7]
    expected = {
        '{"agent_type":"architect"}': ["architect", "developer-1", "developer-2", "reviewer"],
        '"architect"': ["architect", "developer-1", "developer-2", "reviewer"],
        '{"agent_type":"lead"}': ["lead", "architect", "developer-1", "developer-2", "reviewer"],
        "null": ["architect", "developer-1", "developer-2", "reviewer"],
        "{}": ["architect", "developer-1", "developer-2", "reviewer"],
        "7": ["main", "architect", "developer-1", "developer-2", "reviewer"],
    }
    for leader, names in expected.items():
        collaboration = {"mode": "multi_agent", "orchestrator": json.loads(leader), "participants": listed}
        events = read({**single(), "collaboration": collaboration})
        assert names == [event.agent_id for event in events if isinstance(event, AgentCreated)]


def with_other_names(document: Json) -> Json:
    """Messages as many write them."""
    for one in document["messages"]:
        one["from"], one["to"] = one.pop("from_agent")["agent_id"], one.pop("to_agent")["agent_id"]
        one["type"], one["content"] = one.pop("message_type"), one.pop("payload")
    return document


def with_subs_inside_their_calls(document: Json) -> Json:
    calls = {one["call_id"]: one for one in document["tool_calls"]}
    for sub in document.pop("sub_sessions"):
        calls[sub["triggered_by_call_id"]]["sub_session"] = sub
    return document


def with_subs_by_their_ids(document: Json) -> Json:
    document["sub_sessions"] = {one.pop("sub_session_id"): one for one in document["sub_sessions"]}
    return document


def with_flat_agents(document: Json) -> Json:
    for sub in document["sub_sessions"]:
        sub |= sub.pop("agent")
    return document


@pytest.mark.parametrize(
    "change", [with_other_names, with_subs_inside_their_calls, with_subs_by_their_ids, with_flat_agents]
)
def test_a_document_in_another_shape_is_read_as_a_repair_writes_it_and_that_is_told(change: Any) -> None:
    changed = change(multi())

    *events, notice = read(changed)

    assert without_fields(events_of(repair(json.dumps(changed).encode()).data)) == without_fields(events)
    assert [event for event in read(multi()) if not isinstance(event, Output)] == [
        event for event in events if not isinstance(event, Output)
    ]
    assert isinstance(notice, Output) and notice.why.startswith("the document is read as a repair writes it: ")


def test_nothing_is_made_up_where_a_document_in_another_shape_does_not_say_it() -> None:
    document = with_other_names(multi())
    for sub in document["sub_sessions"]:
        del sub["started_at"], sub["status"]

    assert {None} == {event.time for event in read(document) if event.message_id.endswith("/task")}


def test_a_session_that_says_when_it_started_begins_then() -> None:
    document = {"started_at": "2026-03-04T09:59:00Z", **single()}
    del document["created_at"]
    assert (
        record(read({**document, "created_at": "2026-03-04T09:59:00Z"}), "user_prompt").time
        == record(read(document), "user_prompt").time
    )


class AskedNames(tuple[str, ...]):
    """Names that count how often they are asked for."""

    asked = 0

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            self.asked += 1
            yield name


def test_a_record_that_waits_for_many_asks_for_each_once() -> None:
    def record(name: str, time: int, after: tuple[str, ...] = ()) -> ToldRecord:
        return ToldRecord(events=(PieceOfText(agent_id=name, message_id=name, time=time, content="x"),), after=after)

    names = [f"record-{number}" for number in range(200)]
    after = AskedNames(names)
    stories = [[record("last", 0, after)], *([record(name, place + 1)] for place, name in enumerate(names))]
    assert [*names, "last"] == [event.message_id for event in in_order(stories)]
    assert len(names) == after.asked


def told_to(event: Event) -> str:
    return event.agent_id


# -- messages to several agents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hearers",
    ["all", "*", {"agent_id": "all"}, ["all"], [{"agent_id": "team"}], ["builder", "checker"], [BUILDER, CHECKER]],
)
def test_a_message_to_several_agents_is_heard_by_each_of_them(hearers: Any) -> None:
    document = multi()
    document["messages"].append(message("feedback", PLANNER, hearers, {"content": "Mind the clock."}))

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert ["builder", "checker"] == sorted(event.agent_id for event in heard)
    assert len(heard) == len({event.message_id for event in heard})
    assert {"lead", "builder", "checker"} == {event.agent_id for event in read(document)}
    chains = side_chains(json.dumps(document).encode())
    own = [event for lines in chains.values() for event in events_of(lines) if event in heard]
    assert sorted(heard, key=told_to) == sorted(own, key=told_to)


def test_an_agent_that_is_called_all_hears_alone_what_is_told_to_it() -> None:
    document = multi()
    document["collaboration"]["participants"].append({"agent_id": "all", "agent_type": "developer"})
    document["messages"].append(message("feedback", PLANNER, {"agent_id": "all"}, {"content": "Mind the clock."}))

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert ["all"] == [event.agent_id for event in heard]


def test_a_message_to_everybody_is_heard_by_each_of_sixty_agents() -> None:
    document = multi()
    names = [f"worker-{number}" for number in range(60)]
    document["collaboration"]["participants"] += [{"agent_id": name, "agent_type": "developer"} for name in names]
    document["messages"].append(message("feedback", PLANNER, "all", {"content": "Mind the clock."}))

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert {"builder", "checker", *names} == {event.agent_id for event in heard}


@pytest.mark.parametrize("is_list", [False, True])
def test_what_is_too_much_to_be_heard_by_everybody_is_kept_and_told(is_list: bool) -> None:
    document = multi()
    names = [f"worker-{number}" for number in range(2000)]
    document["collaboration"]["participants"] += [{"agent_id": name, "agent_type": "developer"} for name in names]
    long = message("feedback", PLANNER, names if is_list else "all", {"content": "Mind the clock. " * 1000})
    document["messages"].append(long)

    events = read(document)

    said = [event for event in events if isinstance(event, PieceOfText) and "Mind the clock." in event.content]
    assert ["lead"] == [event.agent_id for event in said]
    assert [] == [event for event in events if isinstance(event, Prompt) and "Mind the clock." in event.content]
    [kept] = [event for event in events if isinstance(event, Output) and event.why]
    assert long == json.loads(kept.raw)
    assert f"a message to {2000 if is_list else 2002} agents is in the transcript of none of them" in kept.why
    chains = side_chains(json.dumps(document).encode())
    assert not any(b"Mind the clock." in lines for lines in chains.values())


@pytest.mark.parametrize("key", ["to", "recipient"])
def test_a_message_that_names_several_hearers_under_another_key_is_heard_by_each(key: str) -> None:
    document = multi()
    document["messages"].append(message("feedback", PLANNER, "", {"content": "Mind the clock."}))
    del document["messages"][-1]["to_agent"]
    document["messages"][-1][key] = ["builder", "checker"]

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert ["builder", "checker"] == sorted(event.agent_id for event in heard)


@pytest.mark.parametrize("trigger", ["", "tool-099", None])
@pytest.mark.parametrize("call_id", ["", None, "tool-002"])
def test_a_sub_session_is_of_the_only_call_that_names_it(call_id: str | None, trigger: str | None) -> None:
    document = multi()
    document["tool_calls"][1]["call_id"] = call_id
    document["sub_sessions"][0]["triggered_by_call_id"] = trigger

    told = events_of(dumps(document))

    (made,) = (event for event in told if isinstance(event, AgentCreated) and event.agent_id == "builder")
    (call,) = (event for event in told if isinstance(event, ToolCall) and b"the work of sub-001" in event.input)
    assert ("lead", call.message_id) == (made.parent, made.cause)
    brought = [event for event in told if event.agent_id == "lead" and "sub-001/answer" in linked(event)]
    assert ["tool_result"] == [event.kind for event in brought]


def test_a_sub_session_that_two_calls_name_is_of_neither() -> None:
    document = multi()
    document["sub_sessions"][0]["triggered_by_call_id"] = ""
    document["tool_calls"][2]["subagent_info"]["sub_session_id"] = "sub-001"

    (made,) = (
        event for event in events_of(dumps(document)) if isinstance(event, AgentCreated) and event.agent_id == "builder"
    )
    assert ("lead", None) == (made.parent, made.cause)


def linked(event: Event) -> tuple[str, ...]:
    """The records that an event names."""
    return (event.substance,) if event.substance else event.causes()
