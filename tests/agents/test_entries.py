"""A transcript read as turns, whatever it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Session, load_session
from harken.agents.entries import (
    INTERRUPTED,
    for_model,
    is_pending,
    open_calls,
    results_by_call,
    steps,
    turn_groups,
    unheeded,
)
from harken.agents.opening import opening
from harken.events import AgentCreated, Event, Prompt, ToolCall, ToolResult


def user(content: str = "hello", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def said(content: str = "hi") -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def acted(*call_ids: str) -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call_id in call_ids]
    return {"role": "assistant", "tool_calls": calls}


def result(call_id: str, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


ids = st.sampled_from(["a", "b", "c"])
good_entries = st.one_of(
    st.builds(user),
    st.builds(said),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda names: acted(*names)),
    st.builds(result, ids),
    st.just({"role": "system", "content": "be brief"}),
)
junk = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.none(), max_size=2))
bad_entries = st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "tool_call_id"]), junk)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(good_entries, bad_entries), max_size=12))
def test_what_a_model_is_shown_is_always_well_formed(entries: list[dict[str, Any]]) -> None:
    """Each call is followed at once by exactly one result, and no result stands anywhere else."""
    shown = for_model(entries)

    waiting: list[str] = []
    for message in shown:
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
        else:
            assert not waiting
        waiting += [call["id"] for call in message.get("tool_calls", ())]
        assert isinstance(message["content"], str) or message["tool_calls"]
    assert not waiting


@settings(max_examples=100, deadline=None)
@given(st.lists(good_entries, max_size=14))
def test_turns_never_part_a_call_from_its_result(entries: list[dict[str, Any]]) -> None:
    answered = {place: results for place, results in _places(entries).items() if results}

    for start, end in turn_groups(entries):
        for place, results in answered.items():
            if start <= place < end and len(results) == 1:
                assert start <= results[0] < end


def _places(entries: list[dict[str, Any]]) -> dict[int, list[int]]:
    """The place of each call to the places of its results, where the call has but one."""
    found: dict[int, list[int]] = {}
    for (place, _), results in results_by_call(entries).items():
        found.setdefault(place, []).extend(
            next(at for at, entry in enumerate(entries) if entry is one) for one in results
        )
    return found


class TestWhatAModelIsShown:
    def test_a_result_stands_behind_its_call_even_if_something_was_heard_between(self) -> None:
        shown = for_model([user(), acted("a"), user("wait"), result("a")])

        assert ["user", "assistant", "tool", "user"] == [message["role"] for message in shown]

    def test_two_results_for_one_call_are_one(self) -> None:
        """As in the specification's first example."""
        shown = for_model([acted("a"), result("a", "Jack's line"), result("a", "Jill's line")])

        assert "Jack's line\n\nJill's line" == shown[1]["content"]

    def test_a_call_id_that_is_used_again_has_its_own_result(self) -> None:
        shown = for_model([acted("a"), result("a", "one"), acted("a"), result("a", "two")])

        assert ["one", "two"] == [message["content"] for message in shown if message["role"] == "tool"]

    def test_a_call_nobody_answered_says_so(self) -> None:
        assert INTERRUPTED == for_model([acted("a"), said()])[1]["content"]


class TestWhereATurnStands:
    @pytest.mark.parametrize(
        ("entries", "expected"),
        [
            ([], False),
            ([{"role": "system", "content": "be brief"}], False),
            ([user()], True),
            ([user(), said()], False),
            ([user(), acted("a")], True),
            ([user(), acted("a"), result("a")], True),
            ([user(), acted("a"), result("a"), said()], False),
            ([user(), said(), user("[stopped by the user]", origin="stopped")], False),
        ],
    )
    def test_pending(self, entries: list[dict[str, Any]], expected: bool) -> None:
        assert expected == is_pending(entries)

    def test_open_calls_are_those_of_the_last_message(self) -> None:
        entries = [acted("old"), said(), user(), acted("a", "b"), result("a")]

        message, calls = open_calls(entries) or ({}, [])

        assert entries[3] is message
        assert ["b"] == [call["id"] for call in calls]

    def test_nothing_is_open_behind_an_utterance(self) -> None:
        assert open_calls([acted("old"), said()]) is None


def test_messages_that_were_sent_back_together_are_told_apart(tmp_path: Path) -> None:
    """A user's message of Anthropic's has all results, and words beside them: one entry, several messages."""
    path = tmp_path / "log.jsonl"
    calls = [ToolCall(id=name, name="f", input=b"{}", message_id="m2", index=at) for at, name in enumerate("ab")]
    back: list[Event] = [
        ToolResult(id=name, output=name * 2, message_id="m3", index=at) for at, name in enumerate("ab")
    ]
    words: list[Event] = [Prompt(content="and hurry", message_id="m3", index=2)]
    with Session(path) as session:
        session.append([AgentCreated(message_id="m0", agent_id="agent_001", role="root")])
        told = [Prompt(content="hello", message_id="m1"), *calls, *back, *words]
        session.append([event.replace(agent_id="agent_001") for event in told])
        given = session.transcript("agent_001")
    assert [("tool", "aa"), ("tool", "bb"), ("user", "and hurry")] == [(m["role"], m["content"]) for m in given[2:]]

    root, session = load_session(path, readonly=True)
    with session:
        entries = root.transcript
        assert ["m1", "m2", "m3"] == [entry["message_id"] for entry in entries]  # which is what an edit counts
        shown = [(message["role"], message["content"]) for message in for_model(entries)]
        assert [("user", "hello"), ("assistant", None), ("tool", "aa"), ("tool", "bb"), ("user", "and hurry")] == shown
        assert shown == [(m["role"], m["content"]) for m in for_model(opening(session, None, entries))]
    assert [(0, 3)] == turn_groups(entries)
    assert [0, 1, 3] == steps(entries)
    assert None is open_calls(entries)
    assert ["and hurry"] == [entry["content"] for entry in unheeded(entries)]
