"""An agent with several sub-sessions in a document: an import makes one agent of it, an export writes them apart."""

from __future__ import annotations

import pytest

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.summary import computed_summary
from support.std_documents import (
    BUILDER,
    CHECKER,
    PLANNER,
    Json,
    call,
    message,
    multi,
    single,
    sub_session,
    task_call,
    with_second,
)
from support.std_exported import without_more


def exported(data: bytes, name: str = "") -> Json:
    made = document_of(events_of(data), SessionFacts(session="s", title="Two hands", name=name or "x"), "std-008")
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    return made.document.data


@pytest.mark.parametrize("second", [200, 50], ids=["one after the other", "overlapping"])
def test_sub_sessions_of_one_agent_come_back_as_they_were(second: int) -> None:
    given = with_second(second, status="failed", remark="late", agent=BUILDER | {"instance_id": "b-2"})

    again = exported(dumps(given), given["session_id"])

    for key in ("sub_sessions", "messages", "tool_calls", "summary", "collaboration"):
        assert given[key] == without_more(again[key])
    twice = document_of(events_of(dumps(again)), SessionFacts(session="s", title="Two hands", name=again["session_id"]))
    assert again == twice.document.data


def test_a_sub_session_is_part_of_the_one_whose_call_began_it() -> None:
    given = with_second(200)
    nested = task_call("b-003", 215, "sub-004", "reviewer")
    given["sub_sessions"][2]["tool_calls"].append(nested)
    given["tool_calls"].append(nested | {"x_harken_owner": "builder"})
    given["tool_calls"][3]["subagent_info"]["tool_uses"] = 2
    output = {"output_type": "generic", "task_id": "task-003", "status": "completed", "summary": "Looked at."}
    other = sub_session("sub-004", {**CHECKER, "agent_id": "other"}, "b-003", "task-003", 215, call("o-1", 220), output)
    given["sub_sessions"].append(other | {"parent_session_id": "sub-003"})
    given["collaboration"]["participants"].append(other["agent"])

    again = exported(dumps(given), given["session_id"])

    assert {"sub-004": "sub-003"} == {
        sub["sub_session_id"]: sub["parent_session_id"]
        for sub in again["sub_sessions"]
        if sub["parent_session_id"] != given["session_id"]
    }
    assert [["b-001"], ["c-001"], ["b-002", "b-003"], ["o-1"]] == [
        [one["call_id"] for one in sub["tool_calls"]] for sub in again["sub_sessions"]
    ]


def test_sub_sessions_stand_in_the_order_of_the_document_whichever_was_begun_first() -> None:
    given = multi()
    given["sub_sessions"].reverse()

    assert ["sub-002", "sub-001"] == [sub["sub_session_id"] for sub in exported(dumps(given))["sub_sessions"]]


def test_sub_sessions_of_one_call_are_one() -> None:
    given = with_second(200)
    given["tool_calls"].pop()
    given["sub_sessions"][2]["triggered_by_call_id"] = "tool-002"

    subs = document_of(events_of(dumps(given)), SessionFacts(session="s", title="x"), "std-008").document.data

    assert [["b-001", "b-002"], ["c-001"]] == [
        [one["call_id"] for one in sub["tool_calls"]] for sub in subs["sub_sessions"]
    ]


def test_agents_are_listed_as_the_document_has_them() -> None:
    given = multi()
    given["collaboration"]["participants"].reverse()

    assert ["checker", "builder"] == [
        one["agent_id"] for one in exported(dumps(given))["collaboration"]["participants"]
    ]


def test_an_orchestrator_that_takes_part_is_listed_again() -> None:
    given = multi()
    given["collaboration"]["participants"].insert(1, given["collaboration"]["orchestrator"])

    assert given["collaboration"] == exported(dumps(given))["collaboration"]


def test_participants_without_ids_are_listed_with_those_of_a_repair() -> None:
    given = multi()
    given["collaboration"] = {"mode": "multi_agent", "participants": ["product_owner", "developer"]}
    given["sub_sessions"], given["messages"], given["tool_calls"] = [], [], given["tool_calls"][:1]

    again = exported(dumps(given))["collaboration"]

    assert "product_owner" == again["orchestrator"]["agent_id"]
    assert ["product_owner", "developer"] == [one["agent_id"] for one in again["participants"]]


def test_a_call_of_one_agent_alone_keeps_its_category() -> None:
    given = single()
    given["tool_calls"][0] |= {"tool_name": "Bash", "input": {"params": {"command": "rm -r build"}}}

    again = exported(dumps(given), given["session_id"])

    assert "perception" == given["tool_calls"][0]["tool_category"] == again["tool_calls"][0]["tool_category"]
    assert given["tool_calls"][1]["tool_category"] == again["tool_calls"][1]["tool_category"]
    assert again == exported(dumps(again), again["session_id"])


def test_instances_of_an_agent_are_all_listed_again() -> None:
    given = with_second(50)
    first, second = (BUILDER | {"instance_id": name} for name in ("b-1", "b-2"))
    given["collaboration"]["participants"] = [first, CHECKER, second]
    given["sub_sessions"][0]["agent"], given["sub_sessions"][2]["agent"] = first, second

    again = exported(dumps(given), given["session_id"])

    assert [first, second, CHECKER] == again["collaboration"]["participants"]
    assert given["sub_sessions"] == without_more(again["sub_sessions"])
    assert given["summary"] == without_more(again["summary"])


def test_an_output_that_is_written_again_is_not_told_as_lost() -> None:
    given = with_second(200)

    assert [] == document_of(events_of(dumps(given)), SessionFacts(session="s"), "std-008").losses


def test_calls_keep_the_categories_that_a_document_gives_them() -> None:
    given = with_second(200)
    given["tool_calls"][0] |= {"tool_name": "技术风险评估", "tool_category": "planning"}
    given["tool_calls"][1]["tool_category"] = "task_management"
    given["sub_sessions"][2]["tool_calls"][0] |= {"tool_name": "代码审查", "tool_category": "perception"}

    made = exported(dumps(given))

    assert ["planning", "task_management"] == [one["tool_category"] for one in made["tool_calls"][:2]]
    assert "perception" == made["sub_sessions"][2]["tool_calls"][0]["tool_category"]
    assert made == exported(dumps(made), made["session_id"])


def with_results() -> Json:
    """Each of the builder's two sub-sessions says what came of it by its call alone."""
    given = with_second(200)
    for name, status in (("tool-002", "success"), ("tool-004", "failed")):
        task = next(one for one in given["tool_calls"] if one["call_id"] == name)
        task["output"] = {"status": status, "result": {"display": f"what became of {name}"}}
    given["messages"] = []
    for sub in given["sub_sessions"]:
        del sub["output"], sub["status"]
    return given


def test_a_sub_session_without_output_hands_in_what_came_of_it_alone() -> None:
    given = with_results()

    first, _, second = exported(dumps(given), given["session_id"])["sub_sessions"]

    assert ["what became of tool-002", "what became of tool-004"] == [
        sub["output"]["summary"] for sub in (first, second)
    ]
    assert [("success", "completed"), ("failed", "failed")] == [
        (sub["status"], sub["output"]["status"]) for sub in (first, second)
    ]
    assert "bell" not in str(first["output"])
    assert ["src/bell.py"] == [one["path"] for one in second["output"]["changes"]["files_modified"]]


@pytest.mark.parametrize("how", ["under another name", "nowhere"])
def test_a_sub_session_ends_when_it_did_and_not_when_it_began(how: str) -> None:
    given = with_results()
    ends = [sub["completed_at"] for sub in given["sub_sessions"]]
    for sub in given["sub_sessions"]:
        end = sub.pop("completed_at")
        sub |= {"ended_at": end} if how == "under another name" else {}

    again = exported(dumps(given), given["session_id"])

    assert ends == [sub["completed_at"].replace(".000000Z", "Z") for sub in again["sub_sessions"]]


@pytest.mark.parametrize(("key", "other"), [("sub_session_id", "id"), ("started_at", "start_time")])
def test_sub_sessions_with_other_names_of_their_fields_stay_apart(key: str, other: str) -> None:
    given = with_second(200)
    expected = without_more(exported(dumps(given), given["session_id"])["sub_sessions"])
    for sub in given["sub_sessions"]:
        sub[other] = sub.pop(key)

    again = without_more(exported(dumps(given), given["session_id"])["sub_sessions"])

    assert expected == [{name: value for name, value in sub.items() if name != other} for sub in again]


def with_observer() -> Json:
    """A builder who is called twice, and somebody without a sub-session who tells the lead something, and is heard."""
    observer = {"agent_id": "observer", "agent_type": "challenger"}
    given = with_second(200)
    given["collaboration"]["participants"].append(observer)
    given["messages"] += [
        message(7, 270, observer, PLANNER, "feedback", {"content": "Ship it."}),
        message(8, 271, PLANNER, observer, "acknowledgment", {"content": "Fine."}),
    ]
    given["summary"] = computed_summary(given)
    return given


def test_who_only_sends_and_hears_messages_has_no_sub_session() -> None:
    given = with_observer()

    made = exported(dumps(given), given["session_id"])

    for key in ("collaboration", "messages"):
        assert given[key] == made[key]
    assert [sub["sub_session_id"] for sub in given["sub_sessions"]] == [
        s["sub_session_id"] for s in made["sub_sessions"]
    ]
    assert [call["call_id"] for call in given["tool_calls"]] == [call["call_id"] for call in made["tool_calls"]]
    assert made["messages"] == exported(dumps(made), made["session_id"])["messages"]


def test_sub_sessions_keep_their_names_beside_one_that_the_document_has_not() -> None:
    given = with_observer()
    given["messages"][7]["timestamp"] = "now"  # nobody mends that, so that the messages are told as they were heard

    made = exported(dumps(given), given["session_id"])

    told = {sub["sub_session_id"]: sub["agent"]["agent_id"] for sub in made["sub_sessions"]}
    assert {"sub-001": "builder", "sub-002": "checker", "sub-003": "builder", "sub-004": "observer"} == told
