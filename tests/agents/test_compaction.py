"""Compaction folds the oldest turns of a transcript, and the log forgets nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

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
