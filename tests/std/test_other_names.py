"""What a document says under another name, or in more words than a list has room for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Prompt, Response, ToolCall
from harken.events.base import excerpt
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi, single

Json = dict[str, Any]


def both_ways(document: Json) -> list[bytes]:
    """The document as it is, and after a repair that leaves no error."""
    data = json.dumps(document, ensure_ascii=False).encode()
    answer = repair(data)
    assert answer.is_valid
    assert answer.data == repair(answer.data).data
    return [data, answer.data]


@pytest.mark.parametrize("name", ["calls", "actions", "tool_invocations"])
def test_calls_of_a_sub_session_under_another_name_are_counted(name: str) -> None:
    document = multi()
    for sub in document["sub_sessions"]:
        sub[name] = sub.pop("tool_calls")

    for data in both_ways(document):
        made = [(event.agent_id, event.id) for event in events_of(data) if isinstance(event, ToolCall)]
        assert [("builder", "b-001"), ("checker", "c-001")] == [one for one in made if one[0] != "lead"]


def test_the_tools_that_an_agent_has_are_no_calls() -> None:
    document = multi()
    document["sub_sessions"][0] |= {"tools": ["Read", "Write"], "tool_calls": None}

    data = both_ways(document)[1]

    assert [] == json.loads(data)["sub_sessions"][0]["tool_calls"]


def test_a_task_and_an_answer_in_several_lines_are_given_and_said() -> None:
    document = multi()
    document["sub_sessions"][0] |= {"task": ["Oil it.", "Wind it."], "output": ["It is oiled.", "It is wound."]}

    for data in both_ways(document):
        told = {event.message_id: event for event in events_of(data)}
        task, answer = told["sub-001/task"], told["sub-001/answer"]
        assert isinstance(task, Prompt)
        assert isinstance(answer, Response)
        assert ("Oil it.\nWind it.", "It is oiled.\nIt is wound.") == (task.content, answer.content)


def test_types_of_messages_in_chinese_are_those_of_the_standard_after_a_repair() -> None:
    document = multi()
    wanted = [one["message_type"] for one in document["messages"]]
    for one, kind in zip(document["messages"], ("任务分配", "任务完成", "审查请求", "审查结果"), strict=True):
        one["message_type"] = kind

    assert wanted == [one["message_type"] for one in json.loads(both_ways(document)[1])["messages"]]


def test_a_row_of_the_summary_that_calls_its_agent_otherwise_is_that_agents() -> None:
    document = multi()
    document["summary"]["agents"] = [{"agent": "lead"}, {"id": "builder"}, {"agent_id": "checker"}]

    rows = json.loads(both_ways(document)[1])["summary"]["agents"]

    assert [("lead", 3), ("builder", 1), ("checker", 1)] == [(row["agent_id"], row["tool_calls_count"]) for row in rows]


@pytest.mark.parametrize("make", [single, multi])
def test_a_long_title_is_exported_whole(make: Any) -> None:
    document = make()
    document["task_title"] = "A very long title, " * 20 + "and its end"

    facts = SessionFacts(title=excerpt(document["task_title"]))
    exported = document_of(events_of(json.dumps(document).encode()), facts).document.data
    renamed = document_of(events_of(json.dumps(document).encode()), SessionFacts(title="Renamed")).document.data

    assert (document["task_title"], "Renamed") == (exported["task_title"], renamed["task_title"])
