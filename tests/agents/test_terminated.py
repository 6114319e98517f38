"""Whoever was terminated hears nothing, says nothing, and stands in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from harken.agents import Agent, Call, Deny, Hook, HookAgent, Moment, hook
from harken.errors import BadRequest, ModelFailed
from harken.events import Prompt
from support.stage import call, contents, lines, open_stage, say

HEARD = {"role": "user", "content": "x"}
QUIET = Hook(name="Quiet", points=("tool",), function=lambda _: None)


async def fire(call: Call, name: str) -> str:
    """End an agent beside this one."""
    assert call.agent.parent is not None
    call.agent.parent.subagents[name].terminate()
    return "gone"


def _setup(*names: str, **discussion: object) -> list[object]:
    return [*(call("task", name=name) for name in names), call("discuss", prompt="go", **discussion), "done"]


class TestInADiscussion:
    def test_a_listener_that_is_ended_meanwhile_does_not_keep_the_words_from_the_others(self, tmp_path: Path) -> None:
        parts = {
            "root": _setup("J", "C", "K", "D", speakers=["J"], listeners=["C", "K", "D"]),
            "J": [call("fire", name="K"), "I fired K"],
        }
        root, session = open_stage(tmp_path / "log", parts, tools=[fire])
        with session:
            say(root, "go")

            assert "[J]: I fired K" == contents(root, "tool")[-1]
            for name in "CD":
                assert ["go", "[J]: I fired K"] == contents(root.subagents[name], "user")

    def test_a_speaker_that_is_ended_before_its_turn_is_left_out(self, tmp_path: Path) -> None:
        parts = {
            "root": _setup("J", "K", "D", speakers=["J", "K", "D"]),
            "J": [call("fire", name="K"), "I fired K"],
            "K": ["never"],
            "D": ["I am D"],
        }
        root, session = open_stage(tmp_path / "log", parts, tools=[fire])
        with session:
            say(root, "go")

            assert "[J]: I fired K\n\nK was terminated and did not speak.\n\n[D]: I am D" == contents(root, "tool")[-1]
            assert ["J", "D"] == root.speakers

    def test_what_was_said_is_kept_where_the_speaker_was_ended_before_a_resume(self, tmp_path: Path) -> None:
        parts = {"root": _setup("J", "D", speakers=["J", "D"]), "J": ["I am J"]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            with pytest.raises(ModelFailed):
                say(root, "go")
            root.subagents["J"].terminate()
        root, session = open_stage(tmp_path / "log", {**parts, "D": ["I am D"]})
        with session:
            assert "done" == asyncio.run(root.resume())
            assert "[J]: I am J\n\n[D]: I am D" == contents(root, "tool")[-1]
            assert ["go", "[J]: I am J"] == contents(root.subagents["D"], "user")


CHANGES: dict[str, Callable[[Agent], object]] = {
    "a model": lambda agent: setattr(agent, "language_model", "demo"),
    "a hook": lambda agent: agent.add_hook(QUIET),
    "an agent below": lambda agent: Agent(agent.session, name="C", parent=agent).create(),
    "a word to an agent below": lambda agent: Agent(agent.session, name="C", parent=agent).harken("x"),
    "a summary": lambda agent: asyncio.run(agent.compact("what there was", keep=0)),
    "a line of the log": lambda agent: agent.session.log_transcript_entry(agent.agent_id, HEARD),
    "a text in the log": lambda agent: agent.session.log_piece_of_text(agent.agent_id, "x", None),
    "an edit in the log": lambda agent: agent.session.log_transcript_edit(agent.agent_id, "truncate", 0),
    "an event": lambda agent: agent.session.append([Prompt(agent_id=agent.agent_id, content="x")]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_more_is_logged_of_it(tmp_path: Path, change: Callable[[Agent], object]) -> None:
    """#6"""
    root, session = open_stage(tmp_path / "log", {"J": ["yes"]})
    with session:
        agent = root.spawn("J")
        say(agent, "hear")
        agent.terminate()
        before = lines(session)

        with pytest.raises(BadRequest, match="was terminated"):
            change(agent)

        assert before == lines(session)


def test_what_is_below_it_has_left_the_tree_with_it(tmp_path: Path) -> None:
    """Also where the log alone says so, and nobody has called `terminate`."""
    root, session = open_stage(tmp_path / "log", {})
    with session:
        above = root.spawn("A")
        below = above.spawn("B")
        session.log_agent_terminated(above.agent_id)

        assert below.is_terminated
        with pytest.raises(BadRequest):
            below.harken("x")
        with pytest.raises(BadRequest, match="B was terminated"):
            session.log_transcript_entry(below.agent_id, HEARD)


@hook("tool", name="Guard")
def guard(moment: Moment) -> Deny:
    return Deny("never")


@pytest.mark.parametrize("given", [guard, HookAgent(name="Guard", points=("tool",), instructions="g")], ids=type)
@pytest.mark.parametrize("load", [False, True])
def test_a_hook_that_was_ended_watches_no_more(tmp_path: Path, given: Hook | HookAgent, load: bool) -> None:
    parts = {"root": [call("task", name="J"), "ok"], "Guard": {"otherwise": "DENY. never"}}
    root, session = open_stage(tmp_path / "log", parts, hooks=[given])
    session.log_agent_terminated(root.watchers[0].hook_id)
    if load:
        session.close()
        root, session = open_stage(tmp_path / "log", parts)
    with session:
        assert "ok" == say(root, "go")
        assert ["J"] == list(root.subagents)
