"""A hook has a name of its own, and one that fails is told in words, whatever it fails with."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken import Agent, Session
from harken.agents import Deny, Hook, HookAgent, Moment
from harken.errors import BadRequest
from support.stage import call, contents, open_stage, say

PAIR = [call("task", name="Jack"), call("task", name="Jill")]


class TestAName:
    """A hook is known by its name, so a second of that name would vanish; it is refused instead."""

    @staticmethod
    def two() -> list[Hook]:
        guard = Hook(name="Guard", points=("tool",), function=lambda _: Deny("no tools"))
        return [guard, Hook(name="Guard", points=("prompt",), function=lambda _: None)]

    def test_is_not_given_twice_to_a_load(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match="'Guard'"):
            open_stage(tmp_path / "log", {"root": ["hi"]}, hooks=self.two())
        assert not (tmp_path / "log").exists()

    def test_is_not_given_twice_to_an_agent(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session, pytest.raises(BadRequest, match="'Guard'"):
            Agent(session, hooks=self.two())

    def test_is_not_given_to_a_second_hook_later(self, tmp_path: Path) -> None:
        guard, other = self.two()
        root, session = open_stage(tmp_path / "log", {"root": [PAIR[0], "ok"]}, hooks=[guard])
        with session:
            for double in (other, HookAgent(name="Guard", points=("tool",), instructions="")):
                with pytest.raises(BadRequest, match="'Guard'"):
                    root.add_hook(double)
            with pytest.raises(BadRequest, match="'Guard'"):
                root.spawn("Jill").add_hook(other)
            say(root, "go")
            assert ["Error: Action blocked by hook 'Guard': no tools"] == contents(root, "tool")

    def test_may_be_had_by_one_hook_on_several_agents(self, tmp_path: Path) -> None:
        guard, _ = self.two()
        root, session = open_stage(tmp_path / "log", {"Jill": [PAIR[0], "ok"]})
        with session:
            root.spawn("Jill").add_hook(guard)
            root.spawn("Jack").add_hook(guard)
        root, session = open_stage(tmp_path / "log", {"Jill": [PAIR[0], "ok"]}, hooks=[guard])
        with session:
            say(root.subagents["Jill"], "go")
            assert ["Error: Action blocked by hook 'Guard': no tools"] == contents(root.subagents["Jill"], "tool")

    def test_of_an_agent_in_the_log_is_not_taken_by_a_function(self, tmp_path: Path) -> None:
        parts = {"root": ["hi"]}
        _, session = open_stage(
            tmp_path / "log", parts, hooks=[HookAgent(name="Guard", points=("tool",), instructions="")]
        )
        session.close()

        with pytest.raises(BadRequest, match="is an agent"):
            open_stage(tmp_path / "log", parts, hooks=self.two()[:1])


class Speechless(Exception):
    """One that cannot be put into words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class TestAFunctionThatFails:
    @staticmethod
    def broken(point: str) -> Hook:
        def fail(moment: Moment) -> None:
            raise Speechless

        return Hook(name="Broken", points=(point,), function=fail)

    def test_beyond_words_is_a_refusal_before_a_tool(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [PAIR[0], "ok"]}, hooks=[self.broken("tool")])
        with session:
            assert "ok" == say(root, "go")
            assert contents(root, "tool")[0].startswith(
                "Error: Action blocked by hook 'Broken': the hook failed: Speechless"
            )

    def test_beyond_words_does_not_stand_in_the_way_elsewhere(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["ok"]}, hooks=[self.broken("finished")])
        with session:
            assert "ok" == say(root, "go")

    def test_withholds_what_is_informed_without_waiting(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {}, hooks=[self.broken("delivery")])
        with session:
            jill = root.spawn("Jill")
            root.inform(jill, "the password")
            assert [] == jill.transcript
