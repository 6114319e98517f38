"""Compaction folds the oldest turns of a transcript, and the log forgets nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harken.agents.compaction import foldable
from harken.agents.entries import for_model
from harken.errors import ModelFailed
from support.stage import call, contents, lines, open_stage, say

PARTS = {"root": ["one", call("task", name="Ann"), "two", "three", "four", "five"]}


def test_the_first_and_the_last_turn_stay(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", PARTS, system_prompt="Be brief.")
    with session:
        for word in ("a", "b", "c", "d"):
            say(root, word)

        assert asyncio.run(root.compact("They spoke of b and c."))

        assert ["a", "They spoke of b and c.", "d"] == contents(root, "user")
        assert ["one", "four"] == contents(root, "assistant")
        assert 4 == len(lines(session, role="user"))


def test_a_load_folds_the_same(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", PARTS)
    with session:
        for word in ("a", "b", "c", "d"):
            say(root, word)
        asyncio.run(root.compact("b and c"))
        expected = (root.transcript, root.turns)

    root, session = open_stage(tmp_path / "log", PARTS)
    with session:
        assert expected == (root.transcript, root.turns)
        assert not root.is_pending
        assert "five" == say(root, "e")
        assert list(root.subagents) == ["Ann"]


def test_it_may_be_done_again(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": {"otherwise": "yes"}})
    with session:
        for word in ("a", "b", "c"):
            say(root, word)
        asyncio.run(root.compact("first"))
        say(root, "d")
        asyncio.run(root.compact("second"))

        assert ["a", "second", "d"] == contents(root, "user")
        assert 2 == len(lines(session, event_type="transcript_edit"))


def test_the_model_is_asked_where_no_summary_is_given(tmp_path: Path) -> None:
    part = {"rules": [{"when": "Sum up the conversation", "say": "All was said."}], "otherwise": "yes"}
    root, session = open_stage(tmp_path / "log", {"root": part})
    with session:
        for word in ("a", "b", "c"):
            say(root, word)
        asyncio.run(root.compact())

        assert ["a", "All was said.", "c"] == contents(root, "user")
        assert [] == lines(session, content="All was said.", role="assistant")


def test_a_model_without_a_summary_says_so_and_changes_nothing(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": ["1", "2", "3"]})
    with session:
        for word in ("a", "b", "c"):
            say(root, word)
        before = list(root.transcript)

        with pytest.raises(ModelFailed, match="no summary"):
            asyncio.run(root.compact())
        assert before == root.transcript


def test_there_may_be_nothing_to_fold(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": ["1", "2"]})
    with session:
        say(root, "a")
        say(root, "b")

        assert not asyncio.run(root.compact("nothing"))
        assert [] == lines(session, event_type="transcript_edit")


def test_what_is_kept_can_be_chosen() -> None:
    turns = [{"role": role, "content": ""} for _ in range(5) for role in ("user", "assistant")]

    assert (2, 8) == foldable(turns, 1)
    assert (2, 4) == foldable(turns, 3)
    assert foldable(turns, 4) is None
    assert 10 == len(for_model(turns))


class TestWhoSpeaksAtADiscussion:
    PARTS: ClassVar[dict[str, Any]] = {
        "root": [
            call("task", name="Ann"),
            call("task", name="Bob"),
            "made",
            call("discuss", prompt="p", speakers=["Ann"], listeners=["Bob"]),
            "talked",
            "more",
            "again",
            call("discuss", prompt="q"),
            "end",
        ],
        "Ann": ["a1", "a2"],
        "Bob": ["b1"],
    }

    def test_is_remembered_when_the_discussion_is_folded_away(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS)
        with session:
            for word in ("make", "talk", "more", "again"):
                say(root, word)
            assert asyncio.run(root.compact("They talked."))
            assert [] == [entry for entry in root.transcript if "discuss" in str(entry.get("tool_calls"))]
            assert (["Ann"], ["Bob"]) == (root.speakers, root.listeners)

        root, session = open_stage(tmp_path / "log", self.PARTS)
        with session:
            assert (["Ann"], ["Bob"]) == (root.speakers, root.listeners)
            say(root, "discuss again")
            assert "[Ann]: a2" == contents(root, "tool")[-1]

    def test_is_forgotten_with_the_agent_that_left_though_another_has_its_name(self, tmp_path: Path) -> None:
        parts = {
            "root": [
                *self.PARTS["root"][:2],
                call("discuss", prompt="p", speakers=["Ann"]),
                call("terminate", name="Ann"),
                call("task", name="Ann"),
                "done",
            ],
            "Ann": ["a1"],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")
            live = (root.speakers, root.listeners)

        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert ([], None) == live == (root.speakers, root.listeners)

    def test_is_not_what_a_discussion_asked_for_that_was_stopped(self, tmp_path: Path) -> None:
        parts = {
            "root": [*self.PARTS["root"][:2], call("discuss", prompt="p", speakers=["Ann"]), "never"],
            "Ann": [{"error": "out of order"}],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            with pytest.raises(ModelFailed):
                say(root, "go")
            root.stop()
            live = (root.speakers, root.listeners)

        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert (None, None) == live == (root.speakers, root.listeners)
