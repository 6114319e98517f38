"""A session document as events: who takes part, who made whom, and who leads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import AgentCreated, ToolCall
from harken.formats.std.document import dumps
from harken.formats.std.importing.to_events import events_of, side_chains
from harken.formats.std.repairing.repair import repair
from support.std_documents import BUILDER, CHECKER, PLANNER, Json, call, multi, single, sub_session, task_call
from support.std_events import linked, message, read, record, told, without_fields


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
    del document["summary"]["agents"]  # which names one more

    repaired = json.loads(repair(json.dumps(document).encode()).data)["collaboration"]

    assert ("main", "architect") == (repaired["orchestrator"]["agent_id"], repaired["orchestrator"]["agent_type"])
    assert [BUILDER, CHECKER] == repaired["participants"]
    assert "main" == read(document)[0].agent_id


@pytest.mark.parametrize("said", [None, "", {}])
def test_the_architect_of_the_summary_leads_agents_that_nobody_listed(said: Any) -> None:
    document = multi() | {"messages": []}
    document["collaboration"] |= {"orchestrator": said, "participants": None}

    repaired = json.loads(repair(json.dumps(document).encode()).data)["collaboration"]

    assert PLANNER == repaired["orchestrator"]
    assert [BUILDER, CHECKER] == repaired["participants"]
    assert "lead" == read(document)[0].agent_id


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
