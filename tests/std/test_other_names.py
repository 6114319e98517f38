"""What a document says under another name, or in more words than a list has room for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import AgentCreated, Output, Prompt, Response, ToolCall
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


@pytest.mark.parametrize(
    ("place", "key", "other"),
    [
        (("sub_sessions", 0), "tool_calls", "toolCalls"),
        (("sub_sessions", 0), "triggered_by_call_id", "triggeredByCallId"),
        (("sub_sessions", 1, "task"), "task_id", "taskId"),
        (("sub_sessions", 0, "tool_calls", 0), "tool_name", "toolName"),
        (("tool_calls", 1), "call_id", "callId"),
        (("messages", 1, "from_agent"), "agent_id", "agentId"),
        (("collaboration", "orchestrator"), "agent_id", "agentId"),
        (("collaboration", "participants", 0), "agent_type", "agentType"),
    ],
)
def test_a_key_in_another_spelling_inside_a_document_is_read(place: tuple[Any, ...], key: str, other: str) -> None:
    given = multi()
    holder: Any = given
    for step in place:
        holder = holder[step]
    holder[other] = holder.pop(key)

    assert _told(multi()) == _told(given)


def _told(given: dict[str, Any]) -> list[tuple[str, str, str]]:
    events = events_of(json.dumps(given).encode())
    return sorted(
        (event.kind, event.agent_id, event.name if isinstance(event, ToolCall | AgentCreated) else "")
        for event in events
        if not isinstance(event, Output)
    )
