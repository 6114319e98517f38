"""Whoever was terminated hears nothing, says nothing, and stands in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from harken import load_session
from harken.agents import Agent, Call, Deny, Hook, HookAgent, Moment, Reply, Request, hook
from harken.agents.models import Usage
from harken.errors import BadRequest, ModelFailed
from harken.events import Prompt, Tokens
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


class Dismissed:
    """A model during whose answer the agent that asked is ended."""

    name = "dismissed"

    def __init__(self) -> None:
        self.end: Callable[[], object] = lambda: None

    async def complete(self, request: Request) -> Reply:
        self.end()
        used = Usage(tokens=Tokens(input=70, output=20), cost_usd=0.5)
        return Reply(content="too late", usage=used, api_id=f"r{request.turn}{request.purpose}")


def used(path: Path) -> tuple[int | None, int | None, int]:
    """Tokens that were read and what they cost, and how many responses there are, as an import of the log counts."""
    with harken.open("memory:") as repo:
        list(repo.import_sessions([path]))
        *_, told = repo.stats()
    return told.figures.usage.input, told.figures.cost_usd_micros, told.figures.responses


class TestWhatItUsedMeanwhile:
    def test_is_counted_though_what_it_said_is_not_heard(self, tmp_path: Path) -> None:
        model = Dismissed()
        root, session = load_session(tmp_path / "log", language_model=model, ack="os")
        with session:
            root.harken("go")
            model.end = root.terminate

            with pytest.raises(BadRequest, match="was terminated"):
                asyncio.run(root.response())

            assert [] == contents(root, "assistant")
        assert (70, 500_000, 0) == used(tmp_path / "log")

    def test_is_counted_of_a_summary_too(self, tmp_path: Path) -> None:
        model = Dismissed()
        root, session = load_session(tmp_path / "log", language_model=model, ack="os")
        with session:
            for text in ("one", "two", "three"):
                say(root, text)
            model.end = root.terminate

            assert not asyncio.run(root.compact(keep=1))
        assert (4 * 70, 4 * 500_000, 3) == used(tmp_path / "log")


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


def test_ends_of_one_message_that_were_cut_off_come_to_the_same_results(tmp_path: Path) -> None:
    """Whether or not the agent had left when the process died, and the hook that was asked is not asked otherwise."""
    counted: list[int] = []

    def spare(moment: Moment) -> Deny | None:
        counted.append(len(moment.agent.subagents))
        return Deny("One has to stay.") if moment.tool == "terminate" and counted[-1] < 2 else None

    made = {"call": [{"tool": "task", "arguments": {"name": name}} for name in ("Ann", "Bob")]}
    ended = {"call": [{"tool": "terminate", "arguments": {"name": name}} for name in ("Ann", "Bob")]}
    parts = {"root": [made, ended, "One is left."]}
    hooks = [Hook(name="spare", points=("tool",), function=spare)]
    root, session = open_stage(tmp_path / "whole", parts, hooks=hooks)
    with session:
        say(root, "End them.")
        expected = contents(root, "tool")
    assert ["Terminated subagent: Ann", "Error: Action blocked by hook 'spare': One has to stay."] == expected[2:]
    logged = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for cut in range(6, len(logged)):
        (tmp_path / "cut").write_bytes(b"".join(logged[:cut]))

        root, session = open_stage(tmp_path / "cut", parts, hooks=hooks)
        with session:
            asyncio.run(root.resume())
            assert expected == contents(root, "tool"), f"cut after line {cut}"
        (tmp_path / "cut").unlink()
