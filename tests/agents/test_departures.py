"""Two sessions are compared agent by agent; a replay that is exact departs nowhere."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from harken import load_session
from harken.agents import Departure, Reply, Request, ScriptedModel, departures
from support import beside
from support.stage import call, open_stage, say


def played(path: Path, **said: list[Any]) -> Path:
    root, session = open_stage(path, said)
    with session:
        say(root, "Go.")
    return path


def test_a_session_departs_nowhere_from_itself(tmp_path: Path) -> None:
    first = played(tmp_path / "a", root=[call("task", name="Ann", prompt="Who?"), "Done."], Ann=["I am Ann."])

    assert [] == departures(first, first)


def test_the_first_difference_of_each_agent_is_told(tmp_path: Path) -> None:
    asked = call("task", name="Ann", prompt="Who?")
    first = played(tmp_path / "a", root=[asked, "Done."], Ann=["I am Ann."])
    other = played(tmp_path / "b", root=[asked, call("task", name="Bob"), "Done."], Ann=["I am Eve."])

    found = departures(first, other)

    assert [
        Departure(agent="root", place=2, recorded="tool: I am Ann.", replayed="tool: I am Eve."),
        Departure(agent="root/Ann", place=1, recorded="assistant: I am Ann.", replayed="assistant: I am Eve."),
    ] == found
    assert "root/Ann, message 2: 'assistant: I am Eve.' where the recording has 'assistant: I am Ann.'" == str(found[1])


def test_an_agent_that_only_one_of_them_has_is_a_difference(tmp_path: Path) -> None:
    first = played(tmp_path / "a", root=[call("task", name="Ann", system_prompt="You are Ann."), "Done."])
    other = played(tmp_path / "b", root=["Done."])

    assert ["root", "root/Ann"] == [one.agent for one in departures(first, other)]
    assert "nothing" in str(departures(first, other)[1])


def test_the_speed_of_calls_is_no_difference(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    beside.play(tmp_path / "a", ack="os")
    beside.play(tmp_path / "b", ack="os", parallel=1)

    assert [] == departures(tmp_path / "a/log.jsonl", tmp_path / "b/log.jsonl")


class Hurried(ScriptedModel):
    """A script of which every line takes as long as chance has it."""

    def __init__(self, parts: dict[str, Any], seed: int) -> None:
        super().__init__({"agents": parts}, name="scripted:hurried")
        self._chance = random.Random(seed)

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(self._chance.uniform(0, 0.002))
        return await super().complete(request)


def test_a_debate_of_twenty_agents_and_two_thousand_messages_is_replayed_exactly(tmp_path: Path) -> None:
    names = [f"Speaker {number}" for number in range(1, 21)]
    made = {"call": [{"tool": "task", "arguments": {"name": name, "system_prompt": "Debate."}} for name in names]}
    rounds = [call("discuss", prompt="Go on." if n else "Begin.", speakers=names, listeners=[]) for n in range(5)]
    parts: dict[str, Any] = {name: [f"{name}, word {n}." for n in range(5)] for name in names}
    parts["root"] = [made, *rounds, "That was all."]
    root, session = load_session(tmp_path / "a", language_model=Hurried(parts, 1), ack="os")
    with session:
        say(root, "Debate.")
        assert 2_000 <= sum(info.entries for info in session.agents.values())

    root, session = load_session(tmp_path / "b", language_model=f"replay:{tmp_path / 'a'}", ack="os")
    with session:
        assert "That was all." == say(root, "Debate.")

    assert [] == departures(tmp_path / "a", tmp_path / "b")


def test_pairs_that_talk_side_by_side_are_replayed_exactly_however_fast_each_is(tmp_path: Path) -> None:
    pairs = [["Ann", "Bob"], ["Cid", "Dan"], ["Eve", "Flo"]]
    made = {"call": [{"tool": "task", "arguments": {"name": name}} for pair in pairs for name in pair]}
    talks = [{"tool": "discuss", "arguments": {"prompt": "Well?", "speakers": p, "listeners": []}} for p in pairs]
    parts: dict[str, Any] = {name: [f"{name} {n}" for n in range(4)] for pair in pairs for name in pair}
    parts["root"] = [made, *[{"call": talks}] * 4, "Done."]
    for seed in range(3):
        root, session = load_session(tmp_path / f"{seed}", language_model=Hurried(parts, seed), ack="os")
        with session:
            say(root, "Talk.")
    root, session = load_session(tmp_path / "again", language_model=f"replay:{tmp_path / '0'}", ack="os")
    with session:
        assert "Done." == say(root, "Talk.")

    for other in ("1", "2", "again"):
        assert [] == departures(tmp_path / "0", tmp_path / other)


def test_a_call_that_is_open_has_no_result(tmp_path: Path) -> None:
    def look() -> str:
        return "A door."

    parts = {"root": [{"call": [{"tool": "look"}, {"tool": "look"}]}, "Done."]}
    root, session = open_stage(tmp_path / "whole", parts, tools=[look])
    with session:
        say(root, "Look.")
    logged = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    result = next(place for place, line in enumerate(logged) if b'"role":"tool"' in line)
    (tmp_path / "cut").write_bytes(b"".join(logged[:result]))

    (departure,) = departures(tmp_path / "whole", tmp_path / "cut")

    assert "root, message 3: nothing where the recording has 'tool: A door.'" == str(departure)
