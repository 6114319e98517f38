"""Repairing what sub-sessions and calls say of each other."""

from __future__ import annotations

import json
from typing import Any

from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import call, multi

NAME = "2026-03-04-002-two-hands-multi.json"


def mended(document: dict[str, Any]) -> Repaired:
    done = repair(json.dumps(document).encode(), NAME)
    assert [] == [finding for finding in done.findings if finding.level == "error"]
    assert done.data == repair(done.data, NAME).data
    return done


def test_a_trigger_that_is_nowhere_becomes_the_only_call_that_names_the_sub_session() -> None:
    document = multi()
    document["sub_sessions"][0]["triggered_by_call_id"] = "toolu_77"

    sub = json.loads(mended(document).data)["sub_sessions"][0]

    assert ("tool-002", "toolu_77") == (sub["triggered_by_call_id"], sub["x_harken_old_triggered_by_call_id"])


def test_a_trigger_that_two_calls_might_be_stays() -> None:
    document = multi()
    document["sub_sessions"][0]["triggered_by_call_id"] = "toolu_77"
    document["tool_calls"][2]["subagent_info"]["sub_session_id"] = "sub-001"

    done = repair(json.dumps(document).encode(), NAME)

    assert "toolu_77" == json.loads(done.data)["sub_sessions"][0]["triggered_by_call_id"]


def test_a_call_of_a_sub_agent_that_started_another_is_listed_among_the_main_calls() -> None:
    document = multi()
    nested = document["tool_calls"].pop()
    document["sub_sessions"][0]["tool_calls"].append(nested)
    document["sub_sessions"][1]["parent_session_id"] = "sub-001"

    done = mended(document)

    assert nested | {"x_harken_owner": "builder"} == json.loads(done.data)["tool_calls"][-1]
    assert [("trigger", "tool_calls[2]", True)] == [(one.rule, one.path, one.derived) for one in done.changes][:1]


def test_a_call_of_a_sub_agent_that_is_no_task_is_not_listed() -> None:
    document = multi()
    document["tool_calls"].pop()
    document["sub_sessions"][0]["tool_calls"].append(call("tool-003", 50))

    done = repair(json.dumps(document).encode(), NAME)

    assert 2 == len(json.loads(done.data)["tool_calls"])


def test_two_calls_of_one_id_that_differ_stay() -> None:
    document = multi()
    document["sub_sessions"][0]["tool_calls"].append(document["tool_calls"][2] | {"duration_ms": 7})

    done = repair(json.dumps(document).encode(), NAME)

    assert "x_harken_owner" not in json.loads(done.data)["tool_calls"][2]


def test_links_and_agents_that_are_empty_are_mended_as_if_they_were_missing() -> None:
    document, whole = multi(), multi()
    sub, message = document["sub_sessions"][0], document["messages"][0]
    sub.update(triggered_by_call_id="", parent_session_id="")
    sub["agent"]["agent_id"] = message["from_agent"]["agent_id"] = message["to_agent"]["agent_id"] = ""

    done = json.loads(mended(document).data)

    assert (whole["sub_sessions"], whole["messages"]) == (done["sub_sessions"], done["messages"])


def counting_each_its_own() -> dict[str, Any]:
    """The builder starts the checker by a call with the id that a call of the main agent has, too."""
    document = multi()
    document["tool_calls"][2] = call("tool-003", 120)
    nested = multi()["tool_calls"][2]
    document["sub_sessions"][0]["tool_calls"].append(nested)
    document["sub_sessions"][1]["parent_session_id"] = "sub-001"
    return document


def test_a_main_call_that_has_the_id_of_the_call_that_started_a_nested_sub_session_keeps_its_name() -> None:
    document = counting_each_its_own()

    done = json.loads(repair(json.dumps(document).encode(), NAME).data)

    assert document["tool_calls"] == done["tool_calls"]
    assert ["sub-001"] == [one["parent_session_id"] for one in done["sub_sessions"][1:]]


def test_a_sub_session_stays_with_the_session_whose_call_started_it_where_another_has_a_call_of_that_id() -> None:
    document = multi()
    document["sub_sessions"][1]["tool_calls"] = [call("tool-002", 130)]

    done = json.loads(repair(json.dumps(document).encode(), NAME).data)

    assert document["session_id"] == done["sub_sessions"][0]["parent_session_id"]


def test_of_nested_calls_with_one_id_the_one_that_names_the_sub_session_is_listed_among_the_main_calls() -> None:
    document = multi()
    nested = document["tool_calls"].pop()
    other = {**nested, "subagent_info": {"subagent_type": "reviewer", "tool_uses": 0}}
    third = json.loads(json.dumps(document["sub_sessions"][0]))
    third |= {"sub_session_id": "sub-003", "tool_calls": [other], "agent": {"agent_id": "x", "agent_type": "developer"}}
    document["sub_sessions"][0]["tool_calls"].append(nested)
    document["sub_sessions"][1]["parent_session_id"] = "sub-001"
    document["sub_sessions"].append(third)

    done = json.loads(repair(json.dumps(document).encode(), NAME).data)

    assert nested | {"x_harken_owner": "builder"} == done["tool_calls"][-1]
