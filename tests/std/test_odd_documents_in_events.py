"""A session document as events: shapes, types and values that do not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.events import AgentCreated, Output, PieceOfText, ToolCall, ToolResult
from harken.formats.std.importing.in_order import ToldRecord, in_order
from harken.formats.std.importing.to_events import events_of, side_chains
from harken.formats.std.repairing.repair import repair
from support.std_documents import BUILDER, Json, multi, single
from support.std_events import read, record, without_fields


def test_parts_of_the_wrong_type_are_told_with_the_reason() -> None:
    document = multi() | {"phase_annotations": 3}
    document["tool_calls"].append("not a call")
    document["sub_sessions"] += [None, {"status": "success"}]
    document["messages"] += ["hello", {"message_type": "feedback"}]

    reasons = [event.why for event in read(document) if isinstance(event, Output) and event.why]

    assert [
        "`phase_annotations` is a number, not a list",
        "a call is a text, not an object",
        "a message is a text, not an object",
        "a message names neither of its agents",
        "a sub-session is null, not an object",
        "a sub-session names neither itself nor its agent",
    ] == sorted(reasons)


def test_calls_and_sub_sessions_without_ids_belong_to_nobody_else() -> None:
    document = multi()
    del document["tool_calls"][1]["call_id"]
    del document["tool_calls"][1]["subagent_info"]["sub_session_id"]
    del document["sub_sessions"][0]["triggered_by_call_id"]

    made = record(read(document), "builder:created")

    assert ("lead", None) == (made.parent, made.cause)


def test_entries_of_a_conversation_that_do_not_fit_are_told_with_the_reason() -> None:
    entries: list[Any] = [
        {"type": "prompt", "timestamp": 0, "prompt": {"content": "Go."}, "message_id": "m1"},
        {"call": "tool-001", "message_id": "m2", "index": 10**30},
        {"call": "no-such"},
        {"result": 5},
        {"type": "agent_created", "timestamp": 0, "agent_created": {"attributes": {"n": 10**30}}},
        {"type": "dance"},
        "word",
    ]
    events = read(single() | {"x_harken_conversation": entries})

    assert "Go." == record(events, "m1").content
    assert 6 == sum(isinstance(event, Output) and bool(event.why) for event in events)
    assert ["tool-001", "tool-002"] == [
        event.id for event in events if isinstance(event, ToolCall)
    ]  # told all the same


def test_what_is_no_json_is_told_with_the_reason() -> None:
    found = events_of(b'{"session_id": "s", "user_prompt": "say "hi", "tool_calls": []}')

    assert isinstance(found[0], Output)
    assert "no JSON" in found[0].why


def test_documents_nested_beyond_measure_are_told_and_not_followed() -> None:
    deep = b'{"session_id":"s","task_title":"t","tool_calls":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    assert [True] == [isinstance(event, Output) and bool(event.why) for event in events_of(deep)]


_odd = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.just([])
    | st.just({})
)


_values = st.recursive(
    _odd, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


@st.composite
def broken(draw: st.DrawFn) -> Json:
    """A document with odd values in some places."""
    document: Json = multi()
    for _ in range(draw(st.integers(1, 6))):
        at: Any = document
        while isinstance(at, dict | list) and at:
            key = draw(st.sampled_from(list(at) if isinstance(at, dict) else list(range(len(at)))))
            if draw(st.integers(0, 2)) == 0 or not isinstance(at[key], dict | list):
                at[key] = draw(_values)
                break
            at = at[key]
    return document


@settings(max_examples=150, deadline=None)
@given(document=broken())
def test_no_value_in_any_place_makes_reading_fail(document: Json) -> None:
    data = json.dumps(document).encode()

    events = events_of(data)

    assert events
    assert all(events_of(lines) for lines in side_chains(data).values())
    assert [created for created in events if isinstance(created, AgentCreated)]


def test_reading_many_agents_side_by_side_takes_time_in_proportion() -> None:
    document = multi()
    template, sub = document["tool_calls"][1], document["sub_sessions"][0]
    count = 1000
    document["tool_calls"] = [template | {"call_id": f"t{n}"} for n in range(count)]
    document["sub_sessions"] = [
        sub | {"sub_session_id": f"s{n}", "triggered_by_call_id": f"t{n}", "agent": BUILDER | {"agent_id": f"a{n}"}}
        for n in range(count)
    ]

    events = read(document)

    assert count == sum(isinstance(event, AgentCreated) and event.cause is not None for event in events)
    assert count == sum(isinstance(event, ToolResult) and event.agent_id == "lead" for event in events)


def with_other_names(document: Json) -> Json:
    """Messages as many write them."""
    for one in document["messages"]:
        one["from"], one["to"] = one.pop("from_agent")["agent_id"], one.pop("to_agent")["agent_id"]
        one["type"], one["content"] = one.pop("message_type"), one.pop("payload")
    return document


def with_subs_inside_their_calls(document: Json) -> Json:
    calls = {one["call_id"]: one for one in document["tool_calls"]}
    for sub in document.pop("sub_sessions"):
        calls[sub["triggered_by_call_id"]]["sub_session"] = sub
    return document


def with_subs_by_their_ids(document: Json) -> Json:
    document["sub_sessions"] = {one.pop("sub_session_id"): one for one in document["sub_sessions"]}
    return document


def with_flat_agents(document: Json) -> Json:
    for sub in document["sub_sessions"]:
        sub |= sub.pop("agent")
    return document


@pytest.mark.parametrize(
    "change", [with_other_names, with_subs_inside_their_calls, with_subs_by_their_ids, with_flat_agents]
)
def test_a_document_in_another_shape_is_read_as_a_repair_writes_it_and_that_is_told(change: Any) -> None:
    changed = change(multi())

    *events, notice = read(changed)

    assert without_fields(events_of(repair(json.dumps(changed).encode()).data)) == without_fields(events)
    assert [event for event in read(multi()) if not isinstance(event, Output)] == [
        event for event in events if not isinstance(event, Output)
    ]
    assert isinstance(notice, Output) and notice.why.startswith("the document is read as a repair writes it: ")


def test_nothing_is_made_up_where_a_document_in_another_shape_does_not_say_it() -> None:
    document = with_other_names(multi())
    for sub in document["sub_sessions"]:
        del sub["started_at"], sub["status"]

    assert {None} == {event.time for event in read(document) if event.message_id.endswith("/task")}


def test_a_session_that_says_when_it_started_begins_then() -> None:
    document = {"started_at": "2026-03-04T09:59:00Z", **single()}
    del document["created_at"]
    assert (
        record(read({**document, "created_at": "2026-03-04T09:59:00Z"}), "user_prompt").time
        == record(read(document), "user_prompt").time
    )


class AskedNames(tuple[str, ...]):
    """Names that count how often they are asked for."""

    asked = 0

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            self.asked += 1
            yield name


def test_a_record_that_waits_for_many_asks_for_each_once() -> None:
    def record(name: str, time: int, after: tuple[str, ...] = ()) -> ToldRecord:
        return ToldRecord(events=(PieceOfText(agent_id=name, message_id=name, time=time, content="x"),), after=after)

    names = [f"record-{number}" for number in range(200)]
    after = AskedNames(names)
    stories = [[record("last", 0, after)], *([record(name, place + 1)] for place, name in enumerate(names))]
    assert [*names, "last"] == [event.message_id for event in in_order(stories)]
    assert len(names) == after.asked
