"""Who waits for whom: a cycle is refused and nobody hangs, a listener is not made to speak, a hook that has no model
does not stand in the way."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import load_session
from harken.agents import Agent, Call, Hook, HookAgent, Moment, Reply, Request, ScriptedModel, wake
from harken.agents.entries import Asker, Window, for_model
from harken.agents.models import tool_call
from harken.agents.tools import LoopLock
from harken.errors import ModelFailed
from harken.log import Session
from support.stage import call, contents, lines, open_stage, say

LONGEST_WAIT = 20.0


def within(what: Awaitable[Any]) -> Any:
    """Run to the end; a hang is a failure."""

    async def wait() -> Any:
        return await asyncio.wait_for(what, LONGEST_WAIT)

    return asyncio.run(wait())


class TestACycle:
    """#6: A asks B and B asks A, each in the middle of a turn."""

    def stage(self, path: Path, asks: dict[str, list[str]]) -> tuple[dict[str, Agent], Any]:
        """Agents below the root, each of which asks others all at once, when all of them have begun."""
        begun: set[str] = set()
        all_begun = asyncio.Event()

        async def ask(call: Call, names: list[str]) -> str:
            """Ask others."""
            begun.add(call.agent.label)
            if begun >= asks.keys():
                all_begun.set()
            await all_begun.wait()
            above = call.agent.parent
            assert above is not None
            others = [above.subagents[name] for name in names]
            for other in others:
                other.harken(f"{call.agent.label} asks")
            replies = await asyncio.gather(*(other.response() for other in others), return_exceptions=True)
            return "; ".join(map(str, replies))

        parts = {name: [call("ask", names=names), *["fine"] * 9] for name, names in asks.items()}
        root, session = open_stage(path, {**parts, "*": {"otherwise": "fine"}}, tools=[ask])
        for name in {*asks, *(name for names in asks.values() for name in names)}:
            root.spawn(name)
        return dict(root.subagents), session

    @pytest.mark.parametrize(
        "asks",
        [
            {"A": ["B"], "B": ["A"]},
            {"A": ["B"], "B": ["C"], "C": ["A"]},
            {"A": ["B", "C"], "B": ["D"], "C": ["D"], "D": ["A"]},
            {"A": ["A"]},
        ],
        ids=["two", "three", "side by side", "itself"],
    )
    def test_is_refused_and_everybody_comes_to_an_end(self, tmp_path: Path, asks: dict[str, list[str]]) -> None:
        async def all_at_once() -> list[str]:
            for name in asks:
                agents[name].harken("go")
            return await asyncio.gather(*(agents[name].response() for name in asks))

        agents, session = self.stage(tmp_path / "log", asks)
        with session:
            assert ["fine"] * len(asks) == within(all_at_once())
            told = [text for name in asks for text in contents(agents[name], "tool")]
            assert any("waits for" in text or "middle of a turn" in text for text in told)
            assert [] == session.open_calls

    def test_whoever_is_busy_with_others_is_waited_for(self, tmp_path: Path) -> None:
        async def all_at_once() -> list[str]:
            for name in ("A", "B"):
                agents[name].harken("go")
            return await asyncio.gather(agents["A"].response(), agents["B"].response())

        agents, session = self.stage(tmp_path / "log", {"A": ["C"], "B": ["C"]})
        with session:
            assert ["fine", "fine"] == within(all_at_once())
            assert ["fine", "fine"] == contents(agents["A"], "tool") + contents(agents["B"], "tool")

    def test_what_a_turn_left_behind_may_ask_it(self, tmp_path: Path) -> None:
        later: list[asyncio.Task[Any]] = []

        def begin(call: Call) -> str:
            """Begin something that goes on after this turn."""
            other = call.agent.spawn("Other")
            other.harken("hi")

            async def go_on() -> str:
                await over.wait()
                await other.response()
                call.agent.harken("again")
                return await call.agent.response()

            later.append(asyncio.create_task(go_on()))
            return "begun"

        async def play() -> tuple[str, str]:
            root.harken("go")
            first = await root.response()
            over.set()
            return first, await later[0]

        over = asyncio.Event()
        root, session = open_stage(tmp_path / "log", {"root": [call("begin"), "one", "two"], "*": ["x"]}, tools=[begin])
        with session:
            assert ("one", "two") == within(play())


class TestAListener:
    """#6: `resume` finishes a turn that was interrupted; whoever only listened has none."""

    def test_is_not_made_to_speak(self, tmp_path: Path) -> None:
        parts = {
            "root": [
                [call("task", name="A"), call("task", name="B")],
                call("discuss", prompt="Hello.", speakers=["A"], listeners=["B"]),
                "done",
            ],
            "*": {"otherwise": "I speak."},
        }
        parts["root"][0] = {"call": [one["call"] for one in parts["root"][0]]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")

        root, session = open_stage(tmp_path / "log", parts)
        with session:
            listener = root.subagents["B"]
            root.inform(listener, "And another thing.")
            size = session.path.stat().st_size

            assert not listener.is_pending
            assert within(listener.resume()) is None
            assert size == session.path.stat().st_size
            assert "I speak." == say(listener, "Now you.")

    def test_whoever_was_asked_from_outside_is_answered(self, tmp_path: Path) -> None:
        root, session = open_stage(
            tmp_path / "log", {"root": {"otherwise": "I speak."}, "A": {"otherwise": "A speaks."}}
        )
        with session:
            a = root.spawn("A")
            root.harken("Are you there?")
            a.harken("The bell rang.", origin="trigger")
            root.inform(a, "Did you hear it?")

            assert root.is_pending
            assert a.is_pending
            assert ("I speak.", "A speaks.") == (within(root.resume()), within(a.resume()))


class TestAHookWithoutAModel:
    """#10"""

    def hook(self, point: str) -> HookAgent:
        return HookAgent(name="Guard", points=(point,), instructions="Watch.")

    @pytest.mark.parametrize("point", ["prompt", "finished"])
    def test_does_not_stand_in_the_way(self, tmp_path: Path, point: str) -> None:
        parts = {"root": {"otherwise": "Hello."}, "Guard": [{"error": "out of order"}, "APPROVE"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[self.hook(point)])
        with session:
            assert "Hello." == say(root, "Hi.")
            (hook_id,) = [info.agent_id for info in session.agents.values() if info.role == "hook"]
            assert any("out of order" in str(data) for data in lines(session, agent_id=hook_id)), "the log says so"
            assert "Hello." == say(root, "Hi again.")

    @pytest.mark.parametrize("kind", ["agent", "function"])
    def test_does_not_have_a_reply_said_twice_after_a_load(self, tmp_path: Path, kind: str) -> None:
        def fail(moment: Moment) -> None:
            raise RuntimeError("out of order")

        guard = self.hook("finished") if kind == "agent" else Hook(name="Guard", points=("finished",), function=fail)
        parts = {"root": {"otherwise": "Hello."}, "Guard": {"otherwise": {"error": "out of order"}}}
        root, session = open_stage(tmp_path / "log", parts, hooks=[guard])
        with session:
            say(root, "Hi.")

        root, session = open_stage(tmp_path / "log", parts, hooks=[guard])
        with session:
            assert not root.is_pending
            assert within(root.resume()) is None

    def test_lets_nothing_pass_where_it_guards(self, tmp_path: Path) -> None:
        """The call stays open, is not run unwatched, and is not refused for good because of an outage."""
        ran: list[str] = []

        def act() -> str:
            """Act."""
            ran.append("ran")
            return "acted"

        parts = {"root": [call("act"), call("act"), "Hello."], "Guard": [{"error": "out of order"}]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[self.hook("tool")], tools=[act])
        with session:
            with pytest.raises(ModelFailed, match="out of order"):
                say(root, "Hi.")
            assert [] == ran
            assert 1 == len(session.open_calls)


class TestCallsWithOneId:
    """#5: two calls of a message that have the same id, or none, each get their own result."""

    def test_of_a_model_are_told_apart(self, tmp_path: Path) -> None:
        seen: list[Request] = []

        class Careless:
            name = "careless"

            async def complete(self, request: Request) -> Reply:
                seen.append(request)
                if request.turn:
                    return Reply(content="done")
                calls = [tool_call("c", "echo", f'{{"word":"{word}"}}') for word in ("one", "two")]
                nameless = {"type": "function", "function": {"name": "echo", "arguments": '{"word":"three"}'}}
                return Reply(tool_calls=(*calls, nameless, {**nameless, "id": None}))

        def echo(word: str) -> str:
            """Say it again."""
            return word

        root, session = load_session(tmp_path / "log", language_model=Careless(), tools=[echo])
        with session:
            assert "done" == say(root, "go")
            assert ["one", "two", "three", "three"] == contents(root, "tool")
            assert [] == session.open_calls
            made = [made["id"] for made in root.transcript[1]["tool_calls"]]
            assert 4 == len(set(made))
            shown = {message["tool_call_id"]: message["content"] for message in seen[1].messages[2:]}
            assert dict(zip(made, ["one", "two", "three", "three"], strict=True)) == shown
            assert session.transcript(root.agent_id) == [
                {key: value for key, value in entry.items() if key != "message_id"} for entry in root.transcript
            ]

    def test_of_another_program_are_answered_in_their_order(self, tmp_path: Path) -> None:
        made = {"id": "c", "type": "function", "function": {"name": "echo", "arguments": "{}"}}
        log = [
            {"event_type": "agent_created", "role": "root"},
            {"event_type": "transcript_entry", "role": "user", "content": "go"},
            {"event_type": "transcript_entry", "role": "assistant", "tool_calls": [made, made]},
            {"event_type": "transcript_entry", "role": "tool", "tool_call_id": "c", "content": "one"},
            {"event_type": "transcript_entry", "role": "tool", "tool_call_id": "c", "content": "two"},
        ]
        path = tmp_path / "log"
        path.write_text(
            "".join(json.dumps({"message_id": f"m{at}", "agent_id": "a", **line}) + "\n" for at, line in enumerate(log))
        )

        with Session(path, readonly=True) as session:
            assert [] == session.open_calls
            shown = for_model(session.entries("a"))
            assert ["one", "two"] == [message["content"] for message in shown if message["role"] == "tool"]
            ids = [one["id"] for one in shown[1]["tool_calls"]]
            assert ids == [message["tool_call_id"] for message in shown[2:]]
            assert 2 == len(set(ids))
            assert ["one", "two"] == [one["content"] for one in session.transcript("a") if one["role"] == "tool"]


def test_a_message_with_usage_does_not_let_its_calls_pass_after_a_crash(tmp_path: Path) -> None:
    """What a message cost is caused by it, and is no effect of its calls: they are still to be approved."""
    lines_ = [
        {"message_id": "m1", "agent_id": "a", "event_type": "transcript_entry", "role": "assistant"},
        {"message_id": "m2", "agent_id": "a", "event_type": "metric", "cause": "m1"},
        {"message_id": "m3", "agent_id": "a", "event_type": "error", "cause": "m1"},
    ]

    assert not Window.since(lines_, "a", Asker("m1")).began("m1")


async def _woken(agent: Agent) -> str:
    return await wake(agent, "The bell rang.")


def test_a_pool_knows_nobody_who_waits_when_nobody_does(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": ["yes", {"error": "no"}]})
    with session:
        assert "yes" == within(_woken(root))
        with pytest.raises(ModelFailed):
            within(_woken(root))

        assert root.turn.run is None


def test_an_agent_says_which_of_several_calls_made_it(tmp_path: Path) -> None:
    """#5: also where no argument has its name, and an earlier call made nobody."""

    def hire(call: Call, count: int) -> str:
        """Hire some."""
        for number in range(count):
            call.agent.spawn(f"Worker {call.tool_call_id[-1]}{number}")
        return "hired"

    hires = [{"tool": "hire", "arguments": {"count": count}} for count in (0, 2, 1)]
    with harken.open(tmp_path / "store.db") as repo, repo.session(tmp_path / "log") as session:
        model = ScriptedModel({"agents": {"root": [{"call": hires}, "done"], "*": {"otherwise": "x"}}})
        root, _ = load_session(session, language_model=model, tools=[hire])
        say(root, "go")
        for worker in root.subagents.values():
            say(worker, "hello")
        chains = {row.agent: row for row in repo.sessions() if row.parent}
        calls = {
            session.agents[agent].name: list(repo.history(row.tip))[-1].spawned_from["call_id"][-1]
            for agent, row in chains.items()
        }

    assert {"Worker 10": "1", "Worker 11": "1", "Worker 20": "2"} == calls


def test_an_agent_asked_from_two_threads_takes_one_turn_after_the_other(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        async def complete(self, request: Request) -> Reply:
            begun.set()
            await asyncio.to_thread(go_on.wait)
            return Reply(content=f"answer {request.turn}")

    root, session = load_session(tmp_path / "log", language_model=Slow(), ack="os")
    with session, ThreadPoolExecutor(1) as other:
        first = other.submit(say, root, "one")
        begun.wait()
        root.harken("two")
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(root.response(), 0.05))  # it waits for the other thread
        go_on.set()

        assert "answer 0" == first.result()
        assert "answer 1" == asyncio.run(root.response())


def test_a_loop_that_has_ended_keeps_nobody_waiting() -> None:
    lock = LoopLock()
    ended = asyncio.new_event_loop()
    ended.run_until_complete(lock.__aenter__())  # and nobody ever leaves

    async def enter() -> str:
        async with lock:
            return "in"

    assert "in" == asyncio.run(asyncio.wait_for(enter(), 1))
    ended.run_until_complete(lock.__aexit__(None, None, None))
    ended.close()
    assert "in" == asyncio.run(asyncio.wait_for(enter(), 1))
