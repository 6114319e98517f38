"""A document with one list of calls for all agents: an import and a repair find out whose each call is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harken.events import ToolCall
from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import call as one_call
from support.std_documents import multi

Json = dict[str, Any]


def flat(listed: object, **said_by: Any) -> Json:
    """A document whose calls all stand at the top, each with what `said_by` makes of its sub-session; the sub-sessions
    have `listed` for calls, `-` for none, `ids` for their ids."""
    document = multi()
    for sub in document["sub_sessions"]:
        own = sub.pop("tool_calls")
        for call in own:
            document["tool_calls"].append({**call, **{key: say(sub) for key, say in said_by.items()}})
        if listed != "-":
            sub["tool_calls"] = [call["call_id"] for call in own] if listed == "ids" else listed
    document["tool_calls"].sort(key=lambda call: call["started_at"])
    return document


def made_by(data: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in events_of(data):
        if isinstance(event, ToolCall):
            found.setdefault(event.agent_id, []).append(event.id)
    return found


SAID = [
    {"agent_id": lambda sub: sub["agent"]["agent_id"]},
    {"agent": lambda sub: sub["agent"]["agent_id"]},
    {"agent": lambda sub: sub["agent"]},
    {"sub_session_id": lambda sub: sub["sub_session_id"]},
]


@pytest.mark.parametrize("said_by", SAID)
@pytest.mark.parametrize("listed", ["-", []])
def test_a_call_that_says_whose_it_is_is_that_agents(listed: object, said_by: Json) -> None:
    data = dumps(flat(listed, **said_by))
    answer = repair(data)

    assert made_by(dumps(multi())) == made_by(data) == made_by(answer.data)
    assert answer.is_valid
    assert answer.data == repair(answer.data).data


def test_calls_that_a_sub_session_lists_by_their_ids_are_its_own() -> None:
    data = dumps(flat("ids"))
    answer = repair(data)

    assert made_by(dumps(multi())) == made_by(data) == made_by(answer.data)
    assert answer.is_valid


def test_they_stay_where_they_were_and_count_once() -> None:
    given = flat("-", **SAID[0])
    made = loads(repair(dumps(given)).data)

    assert [call["call_id"] for call in given["tool_calls"]] == [call["call_id"] for call in made["tool_calls"]]
    assert Counter({"builder": 1, "checker": 1}) == Counter(
        call["x_harken_owner"] for call in made["tool_calls"] if "x_harken_owner" in call
    )
    again = document_of(events_of(dumps(given)), SessionFacts(title="Two hands"), "std-008").document.data
    assert multi()["summary"]["tool_calls_count"] == again["summary"]["tool_calls_count"]


def test_of_several_sub_sessions_of_an_agent_it_is_the_one_in_whose_time_the_call_began() -> None:
    given = flat([], agent_id=lambda sub: sub["agent"]["agent_id"])
    first, second = given["sub_sessions"]
    second["agent"] = dict(first["agent"])
    for call in given["tool_calls"]:
        if "agent_id" in call:
            call["agent_id"] = first["agent"]["agent_id"]

    made = {
        e.message_id.partition("/")[0]: e.id
        for e in events_of(dumps(given))
        if isinstance(e, ToolCall) and "/" in e.message_id
    }

    assert {sub["sub_session_id"]: sub["tool_calls"][0]["call_id"] for sub in multi()["sub_sessions"]} == made


def test_what_nobody_says_of_a_call_is_not_made_up() -> None:
    for document in (flat([]), flat([], agent_id=lambda _: "somebody"), flat([], agent_id=lambda _: "lead")):
        assert {"lead"} == made_by(dumps(document)).keys()


def test_a_sub_session_that_has_calls_keeps_them() -> None:
    given = multi()
    given["tool_calls"][0]["agent_id"] = given["sub_sessions"][0]["agent"]["agent_id"]

    assert made_by(dumps(multi())) == made_by(dumps(given))


def test_calls_under_the_names_of_their_agents_are_theirs() -> None:
    given = multi()
    by_agent = {"lead": given["tool_calls"]}
    for sub in given["sub_sessions"]:
        by_agent[sub["agent"]["agent_id"]] = sub.pop("tool_calls")
    data = dumps(given | {"tool_calls": by_agent})
    answer = repair(data)

    assert made_by(dumps(multi())) == made_by(data) == made_by(answer.data)
    assert answer.is_valid
    assert answer.data == repair(answer.data).data


@pytest.mark.parametrize("said", [{"agent_id": "builder"}, {"sub_session_id": "sub-001"}])
def test_a_call_that_names_an_agent_which_used_no_tool_is_about_that_agent(said: Json) -> None:
    document = multi()
    document["sub_sessions"][0]["tool_calls"] = []
    document["tool_calls"][1]["subagent_info"]["tool_uses"] = 0
    document["tool_calls"].append(one_call("tool-004", 200, "TaskStop", "interaction", **said))

    assert ["tool-001", "tool-002", "tool-003", "tool-004"] == made_by(dumps(document))["lead"]
