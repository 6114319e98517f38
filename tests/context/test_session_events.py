"""A session of the store, with its agents, is one stream that every view can show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.events import AgentCreated, Prompt
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.views import SessionViewer
from support.sessions import ClaudeSession


@pytest.fixture
def repo(tmp_path: Path) -> Any:
    parent, child = ClaudeSession("aaa"), ClaudeSession("aaa", agent="b1", salt="b1")
    parent.prompt("find the bug")
    child.prompt("look for it")
    child.answer("it is in line 7")
    parent.call("Task", "it is in line 7", agent="b1")
    parent.answer("line 7")
    files = tmp_path / "files"
    (files / "aaa" / "subagents").mkdir(parents=True)
    (files / "aaa.jsonl").write_bytes(parent.data)
    (files / "aaa" / "subagents" / "agent-b1.jsonl").write_bytes(child.data)
    with harken.open(tmp_path / "store.db") as opened:
        list(Importer(opened.store, [runtimes.get("claude-code")]).run(walk(files)))
        yield opened


def test_every_event_has_its_agent(repo: Any) -> None:
    assert {"claude-code", "b1"} == {event.agent_id for event in repo.events("aaa")}


def test_an_agent_hangs_from_the_call_that_made_it(repo: Any) -> None:
    events = repo.events("aaa")
    (child,) = [event for event in events if isinstance(event, AgentCreated) and event.agent_id == "b1"]
    (told,) = [event for event in events if isinstance(event, Prompt) and event.agent_id == "b1"]
    viewer = SessionViewer.of(events)

    assert child.cause == told.cause
    assert [{"tool_calls"}] == [
        {"tool_calls"} & set(entry)
        for entry in viewer.get_transcript("claude-code")
        if entry["message_id"] == child.cause
    ]


def test_what_an_agent_was_told_by_a_call_comes_from_whoever_made_the_call(repo: Any) -> None:
    """#35: views said that it came from outside."""
    viewer = SessionViewer.of(repo.events("aaa"))

    assert [
        (None, "find the bug"),
        ("claude-code", "look for it"),
        ("b1", "it is in line 7"),
        ("claude-code", "line 7"),
    ] == [(said["agent_id"], said["content"]) for said in viewer.extract_dialog(["claude-code", "b1"])]


def test_the_views_of_a_log_work_on_it(repo: Any) -> None:
    viewer = SessionViewer.of(repo.events("aaa"))

    assert ["find the bug", "look for it", "it is in line 7", "line 7"] == [
        said["content"] for said in viewer.extract_dialog(["claude-code", "b1"])
    ]


def test_each_story_keeps_its_own_order(repo: Any) -> None:
    whole = repo.events("aaa")

    for agent in ("claude-code", "b1"):
        times = [event.time for event in whole if event.agent_id == agent and event.time is not None]
        assert sorted(times) == times


class TestAtAnEarlierCommit:
    """A session as it stood: what its agents had done by then, and none that was called later."""

    @pytest.fixture
    def begun(self, tmp_path: Path) -> Any:
        """The events up to the answer of the first of two turns."""
        main = ClaudeSession("bbb")
        slow, later = ClaudeSession("bbb", agent="s1", salt="s1", start=2), ClaudeSession("bbb", agent="l1", salt="l1")
        main.prompt("find both bugs")
        main.call("Task", "it runs in the background", agent="s1", prompt="find the first bug")
        begun = main.answer("one is being looked for")
        main.prompt("and the other?")
        main.call("Task", "it is in line 9", agent="l1", prompt="find the other bug")
        main.answer("line 9")
        slow.prompt("find the first bug")
        slow.answer("looking")
        slow.count = 20
        slow.answer("it is in line 7")
        later.prompt("find the other bug")  # its clock is slow: it says a time before that of its call
        later.answer("it is in line 9")
        files = tmp_path / "files"
        (files / "bbb" / "subagents").mkdir(parents=True)
        (files / "bbb.jsonl").write_bytes(main.data)
        for agent in (slow, later):
            (files / "bbb" / "subagents" / f"agent-{agent.agent}.jsonl").write_bytes(agent.data)
        with harken.open("memory:") as repo:
            list(Importer(repo.store, [runtimes.get("claude-code")]).run(walk(files)))
            yield repo.events(f"bbb@{begun}")

    def test_an_agent_is_told_as_far_as_it_had_come(self, begun: Any) -> None:
        assert ["find the first bug", "looking"] == [
            event.content for event in begun if event.agent_id == "s1" and hasattr(event, "content")
        ]

    def test_an_agent_that_was_called_later_is_not_told_whatever_its_clock_says(self, begun: Any) -> None:
        assert {"claude-code", "s1"} == {event.agent_id for event in begun}
