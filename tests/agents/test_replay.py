"""#8: a replay answers what was asked, and says where it departs from the recording."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harken import load_session
from harken.agents import Agent, Call, HookAgent, departures, open_model
from harken.errors import ModelFailed
from support.stage import call, contents, lines, open_stage, say


def replayed(path: Path, recorded: Path, **options: Any) -> tuple[Agent, Any]:
    return load_session(path, language_model=open_model(f"replay:{recorded}"), ack="os", **options)


GUARD = HookAgent(name="Guard", points=("tool",), instructions="Look.")
WORK = {
    "root": [call("task", name="A"), call("task", name="B"), call("both"), "Both are done."],
    "A": [call("work", what="good"), "A is done."],
    "B": [call("work", what="evil"), "B is done."],
    "Guard": {"rules": [{"when": "evil", "say": "DENY. Evil."}], "otherwise": "APPROVE"},
}
TALK = {"root": ["one", "two", "three", "four"]}


def working(*names: str) -> dict[str, Any]:
    """Agents that work at once, begun in this order; a hook approves or refuses what each of them does."""

    async def both(call: Call) -> str:
        """Let both work."""
        agents = [call.agent.subagents[name] for name in names]
        for agent in agents:
            agent.harken(f"Work, {agent.label}.")
        return "; ".join(await asyncio.gather(*(agent.response() for agent in agents)))

    def work(what: str) -> str:
        """Work."""
        return f"{what} is done"

    return {"hooks": [GUARD], "tools": [both, work]}


def test_side_by_side_each_gets_its_own_verdict(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "recorded", WORK, **working("A", "B"))
    with session:
        say(root, "go")
        expected = {name: contents(agent, "tool") for name, agent in root.subagents.items()}
    assert "Evil." in expected["B"][0]
    assert "good is done" == expected["A"][0]

    root, session = replayed(tmp_path / "again", tmp_path / "recorded", **working("B", "A"))
    with session:
        # `both` gives the replies in another order, which the root was never told.
        with pytest.raises(ModelFailed, match="departs from the recording at message 4 of 'root'"):
            say(root, "go")
        assert expected == {name: contents(agent, "tool") for name, agent in root.subagents.items()}


class TestWhereItDeparts:
    @pytest.fixture
    def recorded(self, tmp_path: Path) -> Path:
        root, session = open_stage(tmp_path / "recorded", TALK, system_prompt="Be brief.")
        with session:
            for text in ("first", "again", "again"):
                say(root, text)
        return tmp_path / "recorded"

    def test_a_changed_prompt_does_not_get_the_old_answer(self, tmp_path: Path, recorded: Path) -> None:
        root, session = replayed(tmp_path / "log", recorded, system_prompt="Be brief.")
        with session:
            assert "one" == say(root, "first")
            with pytest.raises(ModelFailed) as failed:
                say(root, "something else")

            told = "message 2 of 'root': it is asked 'something else', and was 'again'"
            assert told in str(failed.value)
            assert told in lines(session, event_type="error")[-1]["message"], "the log says it too"

    def test_what_differs_is_told_also_in_the_middle_of_long_words_that_others_follow(self, tmp_path: Path) -> None:
        way = "A long way " * 50
        root, session = open_stage(tmp_path / "long", TALK)
        with session:
            root.harken(way + "home")
            say(root, "Go.")

        root, session = replayed(tmp_path / "log", tmp_path / "long")
        with session:
            root.harken(way + "out")
            with pytest.raises(ModelFailed) as failed:
                say(root, "Go.")

            asked, was = str(failed.value).split(" and was ")
            assert asked.endswith("A long way out',")
            assert was.endswith("A long way home'")
            (found,) = departures(tmp_path / "long", session)
            assert str(found.recorded).endswith("A long way home")
            assert str(found.replayed).endswith("A long way out")

    def test_nor_do_changed_instructions(self, tmp_path: Path, recorded: Path) -> None:
        root, session = replayed(tmp_path / "log", recorded, system_prompt="Be long.")
        with session, pytest.raises(ModelFailed, match="departs from the recording at message 1"):
            say(root, "first")

    def test_the_same_question_is_answered_as_often_as_it_was_recorded(self, tmp_path: Path, recorded: Path) -> None:
        root, session = replayed(tmp_path / "log", recorded, system_prompt="Be brief.")
        with session:
            assert ["one", "two"] == [say(root, text) for text in ("first", "again")]

        root, session = replayed(tmp_path / "log", recorded)
        with session:
            assert "three" == say(root, "again"), "in another process too"
            with pytest.raises(ModelFailed, match="no message 4 of 'root'"):
                say(root, "first of all")

    def test_a_question_asked_once_more_than_was_recorded_has_no_answer(self, tmp_path: Path, recorded: Path) -> None:
        root, session = replayed(tmp_path / "log", recorded, system_prompt="Be brief.")
        with session:
            assert ["one", "two", "three"] == [say(root, text) for text in ("first", "again", "again")]
            with pytest.raises(ModelFailed, match="no message 4 of 'root'"):
                say(root, "again")

    def test_a_compaction_is_replayed_and_so_is_a_second_with_an_equal_summary(self, tmp_path: Path) -> None:
        parts = {"root": {"lines": ["one", "two", "three"], "otherwise": "the rest"}}
        for path, opened in (("recorded", None), ("log", tmp_path / "recorded")):
            root, session = open_stage(tmp_path / path, parts) if opened is None else replayed(tmp_path / path, opened)
            with session:
                for text in ("a", "b", "c"):
                    say(root, text)
                assert asyncio.run(root.compact())
                assert ["a", "the rest", "c"] == contents(root, "user")
                assert ["the rest"] * 3 == [say(root, text) for text in ("d", "e", "f")]
                assert asyncio.run(root.compact())
                assert 1 <= contents(root, "user").count("the rest")
                assert "f" == contents(root, "user")[-1]
