"""Sub-sessions that stand inside what started them, or under another name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import AgentCreated, Event, ToolCall
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import call, multi, sub_session, task_call

Json = dict[str, Any]
HELPER: Json = {"agent_id": "helper", "agent_type": "developer"}


def nested() -> Json:
    """The builder has a helper of its own."""
    document = multi()
    document["collaboration"]["participants"].append(HELPER)
    work = task_call("b-002", 45, "sub-003", "developer")
    document["sub_sessions"][0]["tool_calls"].append(work | {"ended_at": "2026-03-04T10:01:00Z", "duration_ms": 15000})
    found = {"output_type": "generic", "task_id": "task-003", "status": "completed", "summary": "Screws found."}
    sub = sub_session("sub-003", HELPER, "b-002", "task-003", 45, call("h-001", 50), found)
    document["sub_sessions"].append(sub | {"parent_session_id": "sub-001", "completed_at": "2026-03-04T10:01:00Z"})
    return document


def in_sub_session(document: Json) -> None:
    sub = document["sub_sessions"].pop()
    del sub["parent_session_id"]
    document["sub_sessions"][0]["sub_sessions"] = [sub]


def in_call_of_sub_session(document: Json) -> None:
    sub = document["sub_sessions"].pop()
    del sub["parent_session_id"], sub["triggered_by_call_id"]
    document["sub_sessions"][0]["tool_calls"][1]["sub_session"] = sub


def in_both_places(document: Json) -> None:
    document["sub_sessions"][0]["sub_sessions"] = [document["sub_sessions"][2]]


def under_another_name(document: Json) -> None:
    document["sub_agents"] = document.pop("sub_sessions")


def all_in_their_calls(document: Json) -> None:
    in_call_of_sub_session(document)
    first, second = document.pop("sub_sessions")
    document["tool_calls"][1]["subAgentSession"] = first
    document["tool_calls"][2]["sub_session"] = second


EVERY_WAY = [in_sub_session, in_call_of_sub_session, in_both_places, under_another_name, all_in_their_calls]


def mended(document: Json) -> Repaired:
    return repair(json.dumps(document).encode())


def makers(events: list[Event]) -> dict[str, str]:
    return {event.agent_id: event.parent for event in events if isinstance(event, AgentCreated)}


def calls(events: list[Event]) -> list[tuple[str, str]]:
    return sorted((event.agent_id, event.id) for event in events if isinstance(event, ToolCall))


@pytest.mark.parametrize("displace", EVERY_WAY)
def test_an_import_reads_sub_sessions_wherever_they_stand(displace: Any) -> None:
    document = nested()
    displace(document)

    events, as_written = events_of(json.dumps(document).encode()), events_of(json.dumps(nested()).encode())

    assert makers(as_written) == makers(events)
    assert calls(as_written) == calls(events)


@pytest.mark.parametrize("displace", EVERY_WAY)
def test_a_repair_puts_them_where_the_standard_has_them(displace: Any) -> None:
    document = nested()
    displace(document)

    answer = mended(document)

    assert answer.is_valid
    subs = json.loads(answer.data)["sub_sessions"]
    parents = {sub["sub_session_id"]: sub["parent_session_id"] for sub in subs}
    top = document["session_id"]
    assert {"sub-001": top, "sub-002": top, "sub-003": "sub-001"} == parents
    assert 3 == len(subs)
    assert answer.data == repair(answer.data).data


def test_agents_that_are_only_named_are_no_sub_sessions() -> None:
    document = multi()
    document["sub_agents"] = [{"agent_id": "builder", "agent_type": "developer"}]
    del document["sub_sessions"]

    assert document["sub_agents"] == json.loads(mended(document).data)["sub_agents"]


def test_a_change_that_a_reviewer_asks_for_in_a_text_is_its_description() -> None:
    document = multi()
    document["sub_sessions"][1]["output"] |= {"verdict": "changes_requested", "required_changes": ["Oil it."]}

    answer = mended(document)

    (change,) = json.loads(answer.data)["sub_sessions"][1]["output"]["required_changes"]
    assert answer.is_valid
    assert ("Oil it.", "must_fix", []) == (change["description"], change["priority"], change["related_findings"])


def test_of_two_messages_with_one_id_the_later_gets_another() -> None:
    document = multi()
    document["messages"][2]["message_id"] = "msg-001"

    answer = mended(document)

    assert answer.is_valid
    ids = [one["message_id"] for one in json.loads(answer.data)["messages"]]
    assert ["msg-001", "msg-002", "msg-001-2", "msg-004"] == ids


def test_two_messages_with_one_id_stay_where_somebody_replies_to_one_of_them() -> None:
    document = multi()
    document["messages"][2]["message_id"] = "msg-001"
    document["messages"][3]["reply_to"] = "msg-001"

    answer = mended(document)

    assert ["duplicate-id"] == [one.rule for one in answer.findings if one.level == "error"]


@pytest.mark.parametrize("name", ["agents", "workers"])
def test_agents_with_calls_of_their_own_are_not_one_that_played_all_roles(name: str) -> None:
    given = multi()
    given["tool_calls"] = [one for one in given["tool_calls"] if one["tool_name"] != "Task"]
    given[name] = [
        {
            "agent_id": sub["agent"]["agent_id"],
            "agent_type": sub["agent"]["agent_type"],
            "tool_calls": sub["tool_calls"],
        }
        for sub in given.pop("sub_sessions")
    ]

    made = json.loads(repair(json.dumps(given).encode()).data)

    assert "multi_agent" == made["collaboration"]["mode"]
    assert ["b-001", "c-001"] == [call["call_id"] for sub in made["sub_sessions"] for call in sub["tool_calls"]]
    calls = {event.id: event.agent_id for event in events_of(json.dumps(given).encode()) if isinstance(event, ToolCall)}
    assert ("builder", "checker") == (calls["b-001"], calls["c-001"])
