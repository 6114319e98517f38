"""What a document has twice, word for word, counts once: for an import, a drawing and a repair."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from harken.events import AgentCreated, Prompt, ToolCall
from harken.formats.std.document import parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.importing.to_events import events_of, side_chains
from harken.formats.std.repairing.repair import repair
from support.std_documents import BUILDER, PLANNER, call, message, multi

Json = dict[str, Any]


def a_main_call(document: Json) -> None:
    document["tool_calls"].insert(1, copy.deepcopy(document["tool_calls"][0]))


def a_call_that_starts_an_agent(document: Json) -> None:
    document["tool_calls"].append(copy.deepcopy(document["tool_calls"][1]))


def a_call_of_a_sub_agent(document: Json) -> None:
    document["sub_sessions"][0]["tool_calls"] *= 3


def a_sub_session(document: Json) -> None:
    document["sub_sessions"].append(copy.deepcopy(document["sub_sessions"][0]))


def a_message(document: Json) -> None:
    document["messages"].append(copy.deepcopy(document["messages"][-1]))


def a_call_of_a_sub_agent_among_the_main_calls(document: Json) -> None:
    document["tool_calls"].insert(2, copy.deepcopy(document["sub_sessions"][0]["tool_calls"][0]))


def the_start_of_a_sub_session_inside_it(document: Json) -> None:
    document["sub_sessions"][0]["tool_calls"].insert(0, copy.deepcopy(document["tool_calls"][1]))


def everything(document: Json) -> None:
    for key in ("tool_calls", "sub_sessions", "messages"):
        document[key] = [*document[key], *copy.deepcopy(document[key])]


EVERY_WAY = [
    a_main_call,
    a_call_that_starts_an_agent,
    a_call_of_a_sub_agent,
    a_sub_session,
    a_message,
    a_call_of_a_sub_agent_among_the_main_calls,
    the_start_of_a_sub_session_inside_it,
    everything,
]


def told(data: bytes) -> list[tuple[str, ...]]:
    """Who was made, called what and was asked what."""
    found = []
    for event in events_of(data):
        match event:
            case AgentCreated():
                found.append(("made", event.agent_id))
            case ToolCall():
                found.append(("called", event.agent_id, event.id))
            case Prompt():
                found.append(("asked", event.agent_id, event.content))
    return sorted(found)


def with_news() -> Json:
    document = multi()
    document["messages"].append(message(5, 200, PLANNER, BUILDER, "feedback", {"content": "Well done."}))
    return document


@pytest.mark.parametrize("double", EVERY_WAY)
def test_an_import_has_it_once(double: Callable[[Json], None]) -> None:
    document = with_news()
    double(document)
    data, plain = json.dumps(document).encode(), json.dumps(with_news()).encode()

    assert told(plain) == told(data)
    assert {agent: len(lines.splitlines()) for agent, lines in side_chains(plain).items()} == {
        agent: len(lines.splitlines()) for agent, lines in side_chains(data).items()
    }


@pytest.mark.parametrize("double", EVERY_WAY)
def test_a_drawing_has_it_once(double: Callable[[Json], None]) -> None:
    document = with_news()
    double(document)
    drawn, plain = drawing(parse_session(document)), drawing(parse_session(with_news()))

    assert plain.agents == drawn.agents
    assert (plain.calls, plain.tasks, plain.messages) == (drawn.calls, drawn.tasks, drawn.messages)


@pytest.mark.parametrize("double", EVERY_WAY)
def test_a_repair_leaves_it_once_and_tells(double: Callable[[Json], None]) -> None:
    document = with_news()
    double(document)

    answer = repair(json.dumps(document).encode())

    assert [] == [finding for finding in answer.findings if finding.level == "error"]
    assert {"duplicate-id"} == {change.rule for change in answer.changes if change.path != "updated_at"}
    assert told(json.dumps(with_news()).encode()) == told(answer.data)
    assert answer.data == repair(answer.data).data


def test_calls_without_ids_that_are_alike_stay_two() -> None:
    document = multi()
    alike = {**call("x", 6), "call_id": None}
    document["tool_calls"][1:1] = [copy.deepcopy(alike), copy.deepcopy(alike)]

    assert 2 + 5 == sum(isinstance(event, ToolCall) for event in events_of(json.dumps(document).encode()))


def test_calls_with_one_id_that_differ_stay_two() -> None:
    document = multi()
    document["tool_calls"].insert(1, call("tool-001", 6))

    assert 1 + 5 == sum(isinstance(event, ToolCall) for event in events_of(json.dumps(document).encode()))


@pytest.mark.parametrize("spelled", ["TASK_COMPLETION", "taskCompletion", "Task Completion", "任务完成"])
def test_the_type_of_a_message_may_be_spelled_in_another_way(spelled: str) -> None:
    document, plain = multi(), multi()
    done = next(one for one in document["messages"] if one["message_type"] == "task_completion")
    done["message_type"] = spelled

    assert told(json.dumps(plain).encode()) == told(json.dumps(document).encode())
    assert drawing(parse_session(plain)).messages == drawing(parse_session(document)).messages
