"""Repairing what sub-sessions and calls say of each other."""

from __future__ import annotations

import json
from typing import Any

from harken.formats.std.document import dumps, loads
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import call, multi, task_call

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


# -- calls that are numbered anew in each sub-session ------------------------------------------------------------------


def numbered_anew() -> dict[str, Any]:
    document = multi()
    for sub in document["sub_sessions"]:
        sub["tool_calls"] = [call("tool-001", 20), call("tool-002", 21, parent_call_id="tool-001")]
        sub["x_harken_conversation"] = [{"call": "tool-001"}, {"result": "tool-001"}]
        sub["key_call_ids"] = ["tool-002"]
        sub["tool_calls"][0]["input"]["params"] = {"call_id": "tool-001"}
    return document


def test_calls_that_each_sub_session_numbers_anew_get_ids_of_their_own_and_what_names_them_follows() -> None:
    document = numbered_anew()

    done = mended(document)

    made = json.loads(done.data)
    assert [one["call_id"] for one in document["tool_calls"]] == [one["call_id"] for one in made["tool_calls"]]
    for sub, was in zip(made["sub_sessions"], document["sub_sessions"], strict=True):
        own = sub["sub_session_id"]
        first, second = sub["tool_calls"]
        assert [f"{own}/tool-001", f"{own}/tool-002"] == [first["call_id"], second["call_id"]]
        assert ["tool-001", f"{own}/tool-001"] == [first["x_harken_old_call_id"], second["parent_call_id"]]
        assert [{"call": f"{own}/tool-001"}, {"result": f"{own}/tool-001"}] == sub["x_harken_conversation"]
        assert [f"{own}/tool-002"] == sub["key_call_ids"]
        assert {"call_id": "tool-001"} == first["input"]["params"]
        assert was["triggered_by_call_id"] == sub["triggered_by_call_id"]
    told = [(one.path, one.derived) for one in done.changes if one.rule == "duplicate-id"]
    assert ("sub_sessions[0].tool_calls[0].call_id", True) == told[0]
    assert 4 == len(told)


def test_an_id_that_an_annotation_may_mean_or_that_stands_twice_in_a_sub_session_stays() -> None:
    document = multi()
    for sub in document["sub_sessions"]:
        sub["tool_calls"] = [call("work-001", 20), call("work-002", 21)]
    document["sub_sessions"][1]["tool_calls"].append(call("work-002", 22))
    note = {"annotation_id": "note-1", "phase_type": "execute", "annotated_by": "agent", "confidence": "high"}
    note |= {"tool_call_range": {"start_call_id": "work-001", "end_call_id": "work-001"}}
    document["phase_annotations"] = [note]

    done = repair(json.dumps(document).encode(), NAME)

    ids = [one["call_id"] for sub in json.loads(done.data)["sub_sessions"] for one in sub["tool_calls"]]
    assert ["work-001", "work-002", "work-001", "work-002", "work-002"] == ids


def test_a_link_to_what_is_not_there_is_kept_beside() -> None:
    document = multi()
    document["messages"][2]["reply_to"] = "msg-999"
    document["tool_calls"].append({**task_call("tool-009", 50, "sub-009", "developer"), "output": {"status": "failed"}})
    answer = repair(dumps(document))
    made = loads(answer.data)

    assert answer.is_valid
    assert "msg-999" == made["messages"][2]["x_harken_old_reply_to"]
    assert "sub-009" == made["tool_calls"][-1]["subagent_info"]["x_harken_old_sub_session_id"]
    assert ["task-without-sub-session"] == [one.rule for one in answer.findings if one.path == "tool_calls[3]"]
    assert answer.data == repair(answer.data).data


def test_a_call_that_names_no_sub_session_by_its_right_id_began_the_one_that_names_it() -> None:
    document = multi()
    document["tool_calls"][1]["subagent_info"]["sub_session_id"] = "sub-1"

    assert multi()["tool_calls"] == [
        {**one, "subagent_info": {k: v for k, v in one["subagent_info"].items() if not k.startswith("x_harken")}}
        if "subagent_info" in one
        else one
        for one in loads(repair(dumps(document)).data)["tool_calls"]
    ]


def test_a_message_without_an_id_has_that_of_the_only_one_that_a_reply_misses() -> None:
    document = multi()
    document["messages"][1]["reply_to"] = document["messages"][0].pop("message_id")
    answer = repair(dumps(document))

    assert answer.is_valid
    assert document["messages"][1]["reply_to"] == loads(answer.data)["messages"][0]["message_id"]


def test_an_assignment_that_names_its_task_without_an_object_may_spell_it_in_another_way() -> None:
    document = multi()
    document["messages"][0]["payload"] = {"taskId": "task-001", "content": "the work of sub-001"}

    payload = json.loads(mended(document).data)["messages"][0]["payload"]

    assert {"task_id": "task-001", "content": "the work of sub-001"} == payload
