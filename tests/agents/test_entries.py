"""A transcript read as turns, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.agents.entries import INTERRUPTED, for_model, is_pending, open_calls, results_by_call, turn_groups


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
