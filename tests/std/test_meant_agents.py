"""Agents that a document names by their type, or not at all: whoever can be told to be meant is one agent, not two."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harken.events import AgentCreated, ToolCall
from harken.formats.std.document import dumps, parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of, side_chains
from harken.formats.std.repairing.repair import repair
from support.std_checks import findings_of
from support.std_documents import PLANNER, call, message, multi, sub_session, task_call

Json = dict[str, Any]
SECOND: Json = {"agent_id": "builder-2", "agent_type": "developer"}
TEAM = ["builder", "builder-2", "checker", "lead"]


def two_builders() -> Json:
    document = multi()
    document["collaboration"]["participants"].append(dict(SECOND))
    document["tool_calls"].insert(2, task_call("tool-002b", 31, "sub-001b", "developer"))
    made = {"output_type": "generic", "task_id": "task-002", "status": "completed", "summary": "The bell rings."}
    document["sub_sessions"].insert(
        1, sub_session("sub-001b", SECOND, "tool-002b", "task-002", 31, call("b-009", 41), made)
    )
    document["messages"].insert(
        1, message(2, 31, PLANNER, SECOND, "task_assignment", {"task": {"task_id": "task-002"}})
    )
    for number, one in enumerate(document["messages"], 1):
        one |= {"sequence_number": number, "message_id": f"msg-{number:03}"}
    return document


def types_in_sub_sessions(document: Json) -> None:
    for sub in document["sub_sessions"]:
        del sub["agent"]["agent_id"]


def nobody_in_sub_sessions(document: Json) -> None:
    for sub in document["sub_sessions"]:
        del sub["agent"]


def types_as_texts_in_lists(document: Json) -> None:
    document["collaboration"]["orchestrator"] = "architect"
    document["collaboration"]["participants"] = ["developer", "reviewer", "developer"]


def types_in_lists(document: Json) -> None:
    document["collaboration"]["orchestrator"] = {"agent_type": "architect"}
    kinds = ("developer", "reviewer", "developer")
    document["collaboration"]["participants"] = [{"agent_type": kind} for kind in kinds]


def one_type_in_a_list(document: Json) -> None:
    del document["collaboration"]["participants"][2]["agent_id"]


def one_text_for_two(document: Json) -> None:
    document["collaboration"]["participants"] = ["developer", "reviewer"]


def one_type_for_two(document: Json) -> None:
    document["collaboration"]["participants"] = [{"agent_type": "developer"}, {"agent_type": "reviewer"}]


def the_leader_by_its_type_as_well(document: Json) -> None:
    document["collaboration"]["participants"] = ["architect", "developer", "reviewer"]


EVERY_WAY = [
    types_in_sub_sessions,
    nobody_in_sub_sessions,
    types_as_texts_in_lists,
    types_in_lists,
    one_type_in_a_list,
    one_text_for_two,
    one_type_for_two,
    the_leader_by_its_type_as_well,
]


def made_and_calls(data: bytes) -> tuple[list[str], int]:
    events = events_of(data)
    made = sorted(event.agent_id for event in events if isinstance(event, AgentCreated))
    return made, sum(isinstance(event, ToolCall) for event in events)


@pytest.mark.parametrize("blur", EVERY_WAY)
def test_an_import_and_a_repair_have_the_same_agents(blur: Callable[[Json], None]) -> None:
    document = two_builders()
    blur(document)
    data = json.dumps(document).encode()

    answer = repair(data)

    assert (TEAM, 7) == made_and_calls(data)
    assert (TEAM, 7) == made_and_calls(answer.data)
    assert answer.is_valid
    assert answer.data == repair(answer.data).data


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_type_as_a_text_in_a_sub_session_is_the_only_agent_that_has_it(is_listed: bool) -> None:
    document = multi()
    for sub in document["sub_sessions"]:
        sub["agent"] = sub["agent"]["agent_type"]
    if not is_listed:
        document["collaboration"]["participants"] = [{"agent_type": "developer"}, {"agent_type": "reviewer"}]
    data = dumps(document)

    answer = repair(data)

    assert (["builder", "checker", "lead"], 5) == made_and_calls(data) == made_and_calls(answer.data)
    assert answer.is_valid
    assert any("the text is its type" in change.message for change in answer.changes)


@pytest.mark.parametrize("blur", EVERY_WAY)
def test_a_drawing_has_them_too(blur: Callable[[Json], None]) -> None:
    document = two_builders()
    blur(document)

    assert TEAM == sorted(agent.agent_id for agent in drawing(parse_session(document)).agents)


@pytest.mark.parametrize("key", ["agent_id", "agentId", "Agent-ID"])
def test_a_sub_session_that_has_only_the_id_of_its_agent_is_of_that_one(key: str) -> None:
    document = multi()
    document["sub_sessions"][0][key] = document["sub_sessions"][0].pop("agent")["agent_id"]
    del document["sub_sessions"][1]["agent"]
    document["sub_sessions"][1][key] = "somebody"
    data = json.dumps(document).encode()

    made = ["builder", "checker", "lead", "somebody"]
    assert (made, 5) == made_and_calls(data) == made_and_calls(repair(data).data)
    first = json.loads(repair(data).data)["sub_sessions"][0]["agent"]
    assert {"agent_id": "builder", "agent_type": "developer"} == first


def test_messages_between_types_are_said_and_heard_by_the_only_agents_that_have_them() -> None:
    document = multi()
    document["messages"].append(
        message(5, 200, {"agent_type": "reviewer"}, {"agent_type": "developer"}, "feedback", {"content": "Well done."})
    )
    data = json.dumps(document).encode()

    told = [(event.agent_id, event.kind) for event in events_of(data) if event.message_id.startswith("msg-005")]

    assert [("checker", "piece_of_text"), ("builder", "prompt")] == told
    assert b"Well done." in side_chains(data)["builder"]


def test_a_type_that_is_listed_stands_for_agents_that_texts_name() -> None:
    document = two_builders()
    names = {"builder": "developer-01", "builder-2": "developer-02", "checker": "reviewer-01", "lead": "architect-main"}
    document["collaboration"] |= {"orchestrator": "architect", "participants": ["architect", "developer", "reviewer"]}
    for sub in document["sub_sessions"]:
        sub["agent"] = names[sub["agent"]["agent_id"]]
    for one in document["messages"]:
        one |= {key: names[one[key]["agent_id"]] for key in ("from_agent", "to_agent")}
    data = json.dumps(document).encode()

    answer = repair(data)

    assert (sorted(names.values()), 7) == made_and_calls(data) == made_and_calls(answer.data)
    assert answer.is_valid
    assert answer.data == repair(answer.data).data


def test_an_agent_of_its_own_type_stays_one_where_two_could_be_meant() -> None:
    document = two_builders()
    del document["messages"][:2]
    types_in_sub_sessions(document)

    made, calls = made_and_calls(json.dumps(document).encode())

    assert (sorted([*TEAM, "sub-001", "sub-001b"]), 7) == (made, calls)


def test_a_word_for_everybody_is_no_agent_in_a_drawing() -> None:
    document = multi()
    document["messages"].append(message(5, 200, PLANNER, {"agent_id": "all"}, "feedback", {"content": "Well done."}))

    assert ["lead", "builder", "checker"] == [agent.agent_id for agent in drawing(parse_session(document)).agents]


NAMES = {"lead": "Ada", "builder": "Alice", "builder-2": "Bob", "checker": "Rita"}


def by_name(value: Any) -> Any:
    """A document in which agents have names and roles, and no ids."""
    if isinstance(value, list):
        return [by_name(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"agent_id", "agent_type"}:
        return {"name": NAMES[value["agent_id"]], "role": value["agent_type"]}
    return {key: by_name(one) for key, one in value.items() if key != "summary"}


def test_agents_that_have_only_names_and_roles_are_told_apart_by_their_names() -> None:
    document = by_name(two_builders())
    data = json.dumps(document).encode()
    expected = ["Ada", "Alice", "Bob", "Rita"]

    answer = repair(data)

    assert answer.is_valid
    assert {"Alice", "Bob", "Rita"} == {sub["agent"]["agent_id"] for sub in json.loads(answer.data)["sub_sessions"]}
    assert expected == sorted({event.agent_id for event in events_of(data) if isinstance(event, AgentCreated)})
    assert expected == sorted(agent.agent_id for agent in drawing(parse_session(document)).agents)
    assert {"Alice", "Bob", "Rita"} == side_chains(data).keys()


def test_a_name_means_the_agent_that_is_called_so() -> None:
    document = two_builders()
    for one in document["collaboration"]["participants"]:
        one["name"] = NAMES[one["agent_id"]]
    for sub in document["sub_sessions"]:
        sub["agent"] = {"name": NAMES[sub["agent"]["agent_id"]], "role": sub["agent"]["agent_type"]}
    data = json.dumps(document).encode()

    assert TEAM == sorted({event.agent_id for event in events_of(data) if isinstance(event, AgentCreated)})
    assert TEAM == sorted(
        {"lead"} | {sub["agent"]["agent_id"] for sub in json.loads(repair(data).data)["sub_sessions"]}
    )


def test_a_name_beside_the_type_of_an_agent_that_is_known_by_its_id_is_no_id() -> None:
    document = two_builders()
    document["collaboration"]["participants"][1] = {"name": "The Reviewer", "role": "reviewer"}

    created = [event for event in events_of(json.dumps(document).encode()) if isinstance(event, AgentCreated)]

    assert TEAM == sorted(event.agent_id for event in created)


def test_an_agent_that_messages_name_and_a_name_alone_tells_has_its_type_there_too() -> None:
    document = multi()
    team = document["collaboration"]
    for agent in (team["orchestrator"], *team["participants"], *(sub["agent"] for sub in document["sub_sessions"])):
        agent["name"] = agent.pop("agent_id")
    for one in document["messages"]:
        for key in ("from_agent", "to_agent"):
            one[key] = one[key]["agent_id"]

    made = document_of(events_of(dumps(document)), SessionFacts(title="Two hands"), "std-008").document.data

    assert [] == [one for one in findings_of(made) if one.rule == "agent-type"]
    sides = [(one["from_agent"], one["to_agent"]) for one in made["messages"]]
    assert [(one["from_agent"], one["to_agent"]) for one in multi()["messages"]] == sides
