"""What rules make of sessions that go on, of one agent, of nested agents, and of the standard's own example."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from harken.formats.std.checking.rules import RULES, validate, validate_bytes
from harken.formats.std.document import as_multi_agent, parse_session
from harken.formats.std.summary import computed_summary
from support.std_documents import call, multi, single
from support.std_mutations import mutated_value
from support.std_strategies import documents, json_values, older

Json = dict[str, Any]


def rules_of(data: Json) -> list[str]:
    return [one.rule for one in validate(parse_session(data))]


def paths_of(data: Json, rule: str) -> list[str]:
    return [one.path for one in validate(parse_session(data)) if one.rule == rule]


class TestASessionThatGoesOn:
    def test_may_have_calls_that_are_not_over(self) -> None:
        data = {**multi(), "status": "in_progress"}
        for calls in (data["tool_calls"], data["sub_sessions"][0]["tool_calls"]):
            for key in ("ended_at", "duration_ms", "output"):
                del calls[-1][key]
        del data["completed_at"]
        data["summary"] = computed_summary(data)
        assert [] == rules_of(data)

    def test_may_have_lasted_longer_than_its_last_instant(self) -> None:
        data = {**single(), "status": "in_progress"}
        del data["completed_at"]
        data["summary"]["total_duration_ms"] = 10**6
        assert [] == rules_of(data)

    def test_may_have_agents_that_are_at_work_longer_than_is_recorded(self) -> None:
        data = {**multi(), "status": "in_progress"}
        del data["completed_at"]
        data["summary"] = computed_summary(data)
        data["summary"]["agents"]["architect"]["duration_ms"] += 30_000
        assert [] == rules_of(data)

    def test_may_have_no_sub_session_yet(self) -> None:
        data = {**multi(), "status": "in_progress", "tool_calls": [], "sub_sessions": [], "messages": []}
        data["summary"] = computed_summary(data)
        assert [] == rules_of(data)

    def test_has_calls_with_a_name_all_the_same(self) -> None:
        data = {**multi(), "status": "in_progress"}
        del data["tool_calls"][0]["tool_name"]
        assert ["missing-field"] == rules_of(data)

    def test_may_be_a_sub_session_of_one_that_is_over(self) -> None:
        data = multi()
        sub = data["sub_sessions"][0]
        sub["status"] = "in_progress"
        del sub["tool_calls"][0]["output"], sub["completed_at"]
        data["summary"] = computed_summary(data)
        assert "missing-field" not in rules_of(data)


class TestOneAgent:
    def test_looked_at_as_several_is_accepted(self) -> None:
        assert [] == validate(as_multi_agent(parse_session(single())))

    def test_with_a_task_call_needs_no_sub_session(self) -> None:
        data = single()
        data["tool_calls"].append(call("tool-003", 40, "Task", "interaction"))
        data["summary"]["tool_calls_count"] = 3
        assert [] == rules_of(data)
        looked_at = validate(as_multi_agent(parse_session(data)))
        assert [("task-without-sub-session", "warning")] == [(one.rule, one.level) for one in looked_at]

    def test_with_participants_has_them_checked(self) -> None:
        data = dict(as_multi_agent(parse_session(single())).data)
        data["collaboration"] = {**data["collaboration"], "participants": [{"agent_type": "developer"}]}
        assert ["missing-field"] == rules_of(data)


class TestNestedAgents:
    def nested(self) -> Json:
        """The checker was started by the builder: its call is listed twice, and its parent is the builder's."""
        data = multi()
        inner = data["tool_calls"][2]
        data["sub_sessions"][0]["completed_at"] = "2026-03-04T10:03:30Z"
        data["tool_calls"][1].update(ended_at="2026-03-04T10:03:30Z", duration_ms=180000)
        data["tool_calls"][1]["subagent_info"]["tool_uses"] = 2
        data["sub_sessions"][0]["tool_calls"].append(dict(inner))
        inner["x_harken_owner"] = "builder"
        data["sub_sessions"][1]["parent_session_id"] = "sub-001"
        data["summary"] = computed_summary(data)
        return data

    def test_are_right_with_their_call_in_both_lists(self) -> None:
        data = self.nested()
        assert [] == rules_of({**data, "messages": []} | {"messages": data["messages"]})

    def test_without_the_mark_the_call_is_there_twice(self) -> None:
        data = self.nested()
        del data["tool_calls"][2]["x_harken_owner"]
        assert "duplicate-id" in rules_of(data)

    def test_whose_own_calls_have_the_one_that_started_it_belong_to_the_session(self) -> None:
        data = multi()
        data["sub_sessions"][0]["tool_calls"].append(dict(data["tool_calls"][1]))
        assert [] == paths_of(data, "parent-session")

    def test_in_a_circle_are_told_and_those_that_only_lead_there_are_not(self) -> None:
        data = multi()
        one, other = data["sub_sessions"]
        one["parent_session_id"], other["parent_session_id"] = "sub-002", "sub-001"
        data["sub_sessions"].insert(0, {**one, "sub_session_id": "sub-000", "parent_session_id": "sub-001"})
        assert [f"sub_sessions[{place}].parent_session_id" for place in (1, 2)] == paths_of(data, "parent-session")


@pytest.mark.parametrize(("scope", "told"), [("task", ["messages[4].payload.target_id"]), ("session", [])])
def test_what_stops_a_session_names_no_task(scope: str, told: list[str]) -> None:
    data = multi()
    payload = {"scope": scope, "target_id": data["session_id"], "reason": "enough"}
    last = {**data["messages"][3], "message_id": "msg-005", "sequence_number": 5, "message_type": "abort"}
    data["messages"].append({**last, "payload": payload})
    assert told == paths_of(data, "unknown-task")


def test_a_call_is_out_of_order_where_it_began_before_the_one_that_stands_before_it() -> None:
    data = single() | {"tool_calls": [call("late", 30), call("early", 10), call("next", 20)]}
    assert ["tool_calls[1].started_at"] == paths_of(data, "call-order")
    data["tool_calls"][1]["x_harken_derived"] = True  # a call that nobody made stands where its agent is told of
    assert ["tool_calls[2].started_at"] == paths_of(data, "call-order")


@pytest.mark.parametrize(("count", "told"), [(3, ["tool_calls[1].subagent_info.tools_breakdown"]), (None, [])])
def test_a_breakdown_with_a_count_that_is_none_is_not_added_up(count: object, told: list[str]) -> None:
    data = multi()
    data["tool_calls"][1]["subagent_info"]["tools_breakdown"] = [
        {"tool_name": "Write", "count": 2},
        {"tool_name": "Read", "count": count},
    ]
    assert told == paths_of(data, "count")


def test_a_note_on_one_value_is_told_once() -> None:
    data = multi()
    agents = [data["collaboration"]["participants"][0], data["sub_sessions"][0]["agent"]]
    agents += [data["messages"][0]["to_agent"], data["messages"][1]["from_agent"]]
    for agent in agents:
        agent["agent_type"] = "plumber"
    data["summary"] = computed_summary(data)
    assert ["open-value"] == rules_of(data)


def test_errors_come_first_and_notes_last() -> None:
    data = {**multi(), "status": "done", "session_id": "x"}
    del data["user_prompt"]
    levels = [one.level for one in validate(parse_session(data))]
    assert ["error", "warning", "note"] == list(dict.fromkeys(levels))


# -- the example of the standard ---------------------------------------------------------------------------------------


def like_the_example() -> bytes:
    """A document with the wrinkles of the standard's example: agents that are said to have made more calls than are
    recorded, and a review's result without its task."""
    data = multi()
    for number, agent in ((1, data["summary"]["agents"]["developers"][0]), (2, data["summary"]["agents"]["reviewer"])):
        data["tool_calls"][number]["subagent_info"]["tool_uses"] = agent["tool_calls_count"] = 5 + number
    del data["messages"][3]["payload"]["task_id"]
    return json.dumps(data).encode()


def example() -> bytes:
    """The example itself, where the specification lies beside the corpus."""
    corpus = os.environ.get("HARKEN_CORPUS")
    path = Path(corpus or "nowhere").parent / "spec" / "std-008.md"
    if not corpus or not path.is_file():
        return like_the_example()
    text = path.read_text("utf-8")
    found = re.search(r"```json\n(\{.*?\n\})\n```", text[text.index("## 7. Example") :], re.S)
    assert found
    return found[1].encode()


def test_the_example_of_the_standard_is_valid_but_for_what_is_wrong_with_it() -> None:
    findings = validate_bytes(example()).findings
    assert [
        ("payload-field", "messages[3].payload.task_id"),
        ("count", "tool_calls[1].subagent_info.tool_uses"),
        ("count", "tool_calls[2].subagent_info.tool_uses"),
        ("count", "summary.agents.developers[0].tool_calls_count"),
        ("count", "summary.agents.reviewer.tool_calls_count"),
    ] == [(one.rule, one.path) for one in findings]
    assert {"warning"} == {one.level for one in findings}


# -- the check that the standard itself writes down --------------------------------------------------------------------


def refused_by_the_standard(data: Json) -> bool:
    """§6.1 and §6.2 as the standard has them, but for what a document in progress may lack; a document that is not of
    its types makes it trip."""
    calls, subs = data["tool_calls"], data["sub_sessions"]
    named = {call["call_id"]: call["tool_name"] for call in reversed(calls)}
    known = {sub["sub_session_id"] for sub in subs}
    agents = {agent["agent_id"] for agent in data["collaboration"]["participants"]}
    agents.add(data["collaboration"]["orchestrator"]["agent_id"])
    links = [call.get("subagent_info", {}).get("sub_session_id") for call in calls if call["tool_name"] == "Task"]
    return (
        (not subs and data["status"] != "in_progress")
        or any(named.get(sub["triggered_by_call_id"]) != "Task" for sub in subs)
        or any(link and link not in known for link in links)
        or any(message["from_agent"]["agent_id"] not in agents for message in data["messages"])
    )


def test_what_the_check_of_the_standard_refuses_is_an_error_here() -> None:
    refused = 0
    for number in range(1500):
        data = mutated_value(random.Random(f"standard {number}"))
        try:
            is_refused = refused_by_the_standard(data)
        except (KeyError, TypeError, AttributeError):
            continue  # it would have crashed: single-agent, or not of its types
        if is_refused and data["collaboration"].get("mode") == "multi_agent":
            refused += 1
            assert "error" in {one.level for one in validate(parse_session(data))}, data
    assert refused > 20


def test_a_document_in_which_nobody_has_a_name_is_told() -> None:
    """Agents without an id are not taken for one and the same agent."""
    data = multi()
    for agent in (data["collaboration"]["participants"][0], data["messages"][0]["from_agent"]):
        del agent["agent_id"]
    assert {"missing-field"} <= set(rules_of(data))
    del data["collaboration"]["participants"], data["sub_sessions"][0]["agent"]
    assert not validate_bytes(json.dumps(data).encode()).is_valid


# -- documents of every kind -------------------------------------------------------------------------------------------


@given(documents())
@settings(max_examples=40, deadline=None)
def test_a_document_that_is_made_right_is_valid_whatever_unknown_fields_it_has(document: Json) -> None:
    assert [] == [one for one in validate(parse_session(document)) if one.level == "error"]


@given(older())
@settings(max_examples=40, deadline=None)
def test_an_older_document_is_told_as_one(document: Json) -> None:
    read = parse_session(document)
    assert (read.generation != "v3") == ("old-generation" in rules_of(document))


PLACES = [
    (), ("status",), ("created_at",), ("agent",), ("collaboration",), ("collaboration", "orchestrator"),
    ("collaboration", "orchestrator", "agent_id"), ("collaboration", "participants"),
    ("collaboration", "participants", 0), ("tool_calls",), ("tool_calls", 1), ("tool_calls", 1, "call_id"),
    ("tool_calls", 1, "started_at"), ("tool_calls", 1, "duration_ms"), ("tool_calls", 1, "output"),
    ("tool_calls", 1, "tool_name"), ("tool_calls", 1, "subagent_info"), ("tool_calls", 1, "subagent_info", "tool_uses"),
    ("tool_calls", 1, "subagent_info", "sub_session_id"), ("sub_sessions",), ("sub_sessions", 0),
    ("sub_sessions", 0, "agent"), ("sub_sessions", 0, "task"), ("sub_sessions", 0, "tool_calls"),
    ("sub_sessions", 0, "output"), ("sub_sessions", 0, "output", "changes"), ("sub_sessions", 1, "output", "findings"),
    ("sub_sessions", 1, "output", "verification"), ("sub_sessions", 0, "triggered_by_call_id"), ("messages",),
    ("messages", 0), ("messages", 0, "payload"), ("messages", 0, "message_type"), ("messages", 0, "sequence_number"),
    ("messages", 0, "from_agent"), ("summary",), ("summary", "agents"), ("summary", "agents", "developers"),
    ("summary", "tasks"), ("summary", "total_duration_ms"), ("summary", "files_created"),
]  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 10**400, 1e308, "", "\ud800", "\x1b[2J", "x" * 10**5, [], [None], [[]], [{}], {}, {"": None},
    {"agent_id": []}, [{"call_id": {}}], [{"finding_id": 3}], {"files_created": [None, 3, {}]},
]  # fmt: skip


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_any_value_in_any_place_is_told_and_nothing_more(path: tuple[Any, ...]) -> None:
    for odd in ODD:
        checked = validate_bytes(json.dumps(put(multi(), path, odd)).encode(), "2026-03-04-002-two-hands-multi.json")
        assert {one.rule for one in checked.findings} <= RULES.keys()
        assert all(one.message for one in checked.findings)


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = document.copy()
    changed[path[0]] = put(document[path[0]], path[1:], value)
    return changed


@given(json_values)
@settings(max_examples=100, deadline=None)
def test_any_json_is_told_what_it_is(value: Any) -> None:
    checked = validate_bytes(json.dumps(value).encode())
    assert checked.findings
    assert not checked.is_valid
