"""Sub-sessions and the calls that began them, linked in another place than the standard has for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import CHECKER, call, multi, sub_session, task_call, with_second

Json = dict[str, Any]
TRIGGERS = {"sub-001": "tool-002", "sub-002": "tool-003", "sub-003": "tool-004"}


def linked(document: Json) -> dict[str, str]:
    """The call of each sub-session, by a repair; the same by an export of what was not repaired."""
    answer = repair(dumps(document))
    assert answer.is_valid
    facts = SessionFacts(session="s", title="t", name=document["session_id"])
    exported = document_of(events_of(dumps(document)), facts, "std-008").document.data
    found = [
        {sub["sub_session_id"]: sub["triggered_by_call_id"] for sub in one["sub_sessions"]}
        for one in (loads(answer.data), exported)
    ]
    assert found[0] == found[1]
    return found[0]


def each_linked(change: Callable[[Json, Json], object]) -> Json:
    """A document in which an agent has two sub-sessions, with each pair of a sub-session and its call changed."""
    document = with_second(200)
    calls = {one["call_id"]: one for one in document["tool_calls"]}
    for sub in document["sub_sessions"]:
        change(sub, calls[sub.pop("triggered_by_call_id")])
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda sub, call: call.update(sub_session_id=call.pop("subagent_info")["sub_session_id"]),
        lambda sub, call: call["output"].update(sub_session_id=call.pop("subagent_info")["sub_session_id"]),
        lambda sub, call: call["output"]["result"].update(
            sub_session_id=call.pop("subagent_info")["sub_session_id"]
        ),
        lambda sub, call: call["input"]["params"].update(sub_session_id=call.pop("subagent_info")["sub_session_id"]),
        lambda sub, call: call["subagent_info"].update(session_id=call["subagent_info"].pop("sub_session_id")),
        lambda sub, call: call.update(subagent=call.pop("subagent_info"), tool_name="Agent"),
    ],
    ids=["beside", "output", "result", "arguments", "session_id", "subagent"],
)  # fmt: skip
def test_a_call_may_name_its_sub_session_in_another_place(change: Callable[[Json, Json], object]) -> None:
    assert each_linked(change)["sub_sessions"][0].keys().isdisjoint({"triggered_by_call_id"})
    assert TRIGGERS == linked(each_linked(change))


@pytest.mark.parametrize("key", ["parent_tool_call_id", "tool_call_id", "task_call_id", "spawned_by", "triggered_by"])
def test_a_sub_session_may_name_its_call_under_another_name(key: str) -> None:
    def change(sub: Json, call: Json) -> None:
        sub[key] = call["call_id"]
        del call["subagent_info"]

    assert TRIGGERS == linked(each_linked(change))


@pytest.mark.parametrize("key", ["spawned_by", "triggered_by"])
def test_who_spawned_a_sub_session_may_be_an_agent(key: str) -> None:
    def change(sub: Json, call: Json) -> None:
        sub[key] = "lead"

    assert TRIGGERS == linked(each_linked(change))


@pytest.mark.parametrize(
    "change",
    [
        lambda call, name: call.update(subagent_info=name),
        lambda call, name: call.update(subagent_info={}, sub_session_id=name),
        lambda call, name: call.update(subagent_info={"subagent_type": None}, sub_session_id=name),
    ],
    ids=["a text", "nothing", "null"],
)
@pytest.mark.parametrize("is_linked_back", [False, True])
def test_a_call_whose_subagent_info_says_too_little_names_its_sub_session_after_a_repair(
    change: Callable[[Json, str], object], is_linked_back: bool
) -> None:
    def reduced(sub: Json, call: Json) -> None:
        change(call, call["subagent_info"]["sub_session_id"])
        sub.update({"triggered_by_call_id": call["call_id"]} if is_linked_back else {})

    assert TRIGGERS == linked(each_linked(reduced))
    calls = loads(repair(dumps(each_linked(reduced))).data)["tool_calls"]
    found = {one["subagent_info"]["sub_session_id"]: one["call_id"] for one in calls if "subagent_info" in one}
    assert TRIGGERS == found


def test_a_text_for_subagent_info_that_is_no_sub_session_is_set_aside() -> None:
    document = multi()
    document["tool_calls"][1]["subagent_info"] = "the builder"
    made = loads(repair(dumps(document)).data)["tool_calls"][1]

    assert ("the builder", False) == (made["x_harken_old_subagent_info"], "subagent_info" in made)


@pytest.mark.parametrize(("key", "name"), [("triggered_by", "call_id"), ("task", "triggered_by_call_id")])
def test_a_sub_session_may_name_its_call_in_an_object(key: str, name: str) -> None:
    def change(sub: Json, call: Json) -> None:
        sub.setdefault(key, {})[name] = call["call_id"]
        del call["subagent_info"]

    assert TRIGGERS == linked(each_linked(change))


def test_a_call_of_a_sub_agent_may_be_the_only_one_that_names_a_nested_sub_session() -> None:
    document, helper = multi(), {**CHECKER, "agent_id": "helper"}
    document["sub_sessions"][0]["tool_calls"].append(task_call("b-002", 70, "sub-003", "reviewer"))
    output = {"output_type": "generic", "task_id": "task-003", "status": "completed", "summary": "Looked at."}
    sub = sub_session("sub-003", helper, "b-002", "task-003", 71, call("h-001", 75), output)
    del sub["triggered_by_call_id"]
    document["sub_sessions"].append(sub | {"parent_session_id": "sub-001"})
    document["collaboration"]["participants"].append(helper)

    assert "b-002" == linked(document)["sub-003"]


def test_a_sub_session_may_name_a_call_of_a_sub_agent_under_another_name() -> None:
    document, helper = multi(), {**CHECKER, "agent_id": "helper"}
    document["sub_sessions"][0]["tool_calls"].append(task_call("b-002", 70, "", "reviewer"))
    del document["sub_sessions"][0]["tool_calls"][-1]["subagent_info"]
    output = {"output_type": "generic", "task_id": "task-003", "status": "completed", "summary": "Looked at."}
    sub = sub_session("sub-003", helper, "b-002", "task-003", 71, call("h-001", 75), output)
    sub["triggered_by"] = sub.pop("triggered_by_call_id")
    document["sub_sessions"].append(sub | {"parent_session_id": "sub-001"})
    document["collaboration"]["participants"].append(helper)

    assert "b-002" == linked(document)["sub-003"]


def test_a_call_inside_a_sub_session_that_says_so_did_not_begin_it() -> None:
    """In a document with one list for all, a call may say which sub-session it is of."""
    document = multi()
    sub = document["sub_sessions"][0]
    del sub["triggered_by_call_id"], document["tool_calls"][1]["subagent_info"]
    own = task_call("b-002", 70, "", "reviewer")
    del own["subagent_info"]
    document["tool_calls"].append(own | {"sub_session_id": "sub-001"})

    assert "triggered_by_call_id" not in loads(repair(dumps(document)).data)["sub_sessions"][0]
