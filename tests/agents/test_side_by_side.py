"""The calls of one message run side by side; each result is in the log as it comes."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harken import Session, load_session
from harken.agents import (
    Agent,
    Ask,
    Call,
    Deny,
    Hook,
    HookAgent,
    MissingHook,
    Moment,
    Reply,
    Request,
    ScriptedModel,
    make_tool,
    tool,
)
from harken.agents.entries import INTERRUPTED, Asker, Window
from harken.agents.side_by_side import Reach, waits_for
from harken.errors import BadRequest, ModelFailed, Waiting
from support import beside
from support.stage import contents, lines, open_stage, say


def calls(*tools: str | tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A scripted line with several calls."""
    named = [(one, {}) if isinstance(one, str) else one for one in tools]
    return {"call": [{"tool": name, "arguments": arguments} for name, arguments in named]}


class TestCallsOfOneMessage:
    def test_coroutines_wait_for_each_other(self, tmp_path: Path) -> None:
        """Four that each wait until all four have begun: one after the other they would never end."""
        together = asyncio.Barrier(4)

        async def meet() -> str:
            await asyncio.wait_for(together.wait(), 20)
            return "met"

        root, session = open_stage(tmp_path / "log", {"root": [calls(*["meet"] * 4), "Done."]}, tools=[meet])
        with session:
            assert "Done." == say(root, "Meet.")
            assert ["met"] * 4 == contents(root, "tool")

    def test_plain_functions_have_threads_of_their_own(self, tmp_path: Path) -> None:
        together = threading.Barrier(4, timeout=20)

        def meet() -> str:
            together.wait()
            return "met"

        root, session = open_stage(tmp_path / "log", {"root": [calls(*["meet"] * 4), "Done."]}, tools=[meet])
        with session:
            assert "Done." == say(root, "Meet.")
            assert ["met"] * 4 == contents(root, "tool")

    def test_no_more_than_the_limit_work_at_a_time(self, tmp_path: Path) -> None:
        working: list[int] = [0]
        most: list[int] = []

        async def work() -> None:
            working[0] += 1
            most.append(working[0])
            await asyncio.sleep(0.01)
            working[0] -= 1

        script = {"root": [calls(*["work"] * 7), "Done."]}
        root, session = open_stage(tmp_path / "log", script, tools=[work], parallel=3)
        with session:
            say(root, "Work.")
            assert 3 == max(most)

    @pytest.mark.parametrize("parallel", [0, -1, 2.5, "3"])
    def test_a_limit_is_a_number_of_calls(self, tmp_path: Path, parallel: Any) -> None:
        with pytest.raises(BadRequest, match="at least one call"):
            load_session(tmp_path / "log", parallel=parallel)

    def test_results_are_logged_as_they_come_and_shown_in_the_order_of_the_calls(self, tmp_path: Path) -> None:
        shown: list[list[str]] = []

        class Watched(ScriptedModel):
            async def complete(self, request: Request) -> Reply:
                shown.append([message["content"] for message in request.messages if message["role"] == "tool"])
                return await super().complete(request)

        second_is_over = asyncio.Event()

        async def first() -> str:
            await asyncio.wait_for(second_is_over.wait(), 20)
            return "one"

        async def second() -> str:
            second_is_over.set()
            return "two"

        model = Watched({"agents": {"root": [calls("first", "second"), "Done."]}})
        root, session = load_session(tmp_path / "log", language_model=model, tools=[first, second], ack="os")
        with session:
            say(root, "Count.")
            assert ["two", "one"] == [line["content"] for line in lines(session, role="tool")]
            assert [[], ["one", "two"]] == shown

    def test_a_result_is_durable_while_another_call_is_still_running(self, tmp_path: Path) -> None:
        seen: list[list[str]] = []

        def quick() -> str:
            return "quick"

        async def slow() -> None:
            while not lines(session, role="tool"):
                await asyncio.sleep(0.001)
            seen.append([line["content"] for line in lines(session, role="tool")])

        script = {"root": [calls("slow", "quick"), "Done."]}
        root, session = open_stage(tmp_path / "log", script, tools=[quick, slow])
        with session:
            say(root, "Go.")
            assert [["quick"]] == seen

    def test_a_failure_of_one_is_its_result_alone(self, tmp_path: Path) -> None:
        async def good() -> str:
            await asyncio.sleep(0)
            return "good"

        def bad() -> None:
            raise StopIteration("no more")

        script = {"root": [calls("bad", "good", "missing"), "Done."]}
        root, session = open_stage(tmp_path / "log", script, tools=[good, bad])
        with session:
            assert "Done." == say(root, "Try.")
            results = sorted(contents(root, "tool"))
            assert ["Error: RuntimeError: the function raised StopIteration: no more", "good"] == [
                results[0],
                results[-1],
            ]

    def test_one_that_must_be_alone_waits_for_those_before_and_holds_up_those_behind(self, tmp_path: Path) -> None:
        happened: list[str] = []

        async def work() -> None:
            happened.append("begins")
            await asyncio.sleep(0.01)
            happened.append("ends")

        @tool(alone=True)
        async def sweep() -> None:
            happened.append("sweeps")
            await asyncio.sleep(0.01)
            happened.append("has swept")

        script = {"root": [calls("work", "work", "sweep", "work"), "Done."]}
        root, session = open_stage(tmp_path / "log", script, tools=[work, sweep])
        with session:
            say(root, "Work.")
        expected = ["begins", "begins", "ends", "ends", "sweeps", "has swept", "begins", "ends"]
        assert expected == happened

    def test_a_function_that_takes_the_running_call_stays_in_the_thread_of_the_loop(self) -> None:
        def speak(call: Call) -> None: ...
        def look() -> None: ...
        async def wait() -> None: ...

        assert (False, True, False) == tuple(make_tool(one).thread for one in (speak, look, wait))
        assert not make_tool(look, thread=False).thread
        with pytest.raises(BadRequest, match="thread of its own"):
            make_tool(wait, thread=True)


class TestAgentsSideBySide:
    def test_subagents_of_one_message_work_at_the_same_time(self, tmp_path: Path) -> None:
        """Each child's model answers once both have been asked."""
        together = asyncio.Barrier(2)

        class Meeting(ScriptedModel):
            async def complete(self, request: Request) -> Reply:
                if len(request.path) > 1:
                    await asyncio.wait_for(together.wait(), 20)
                return await super().complete(request)

        asked = [("task", {"name": name, "prompt": "Go."}) for name in ("Ann", "Bob")]
        model = Meeting({"agents": {"root": [calls(*asked), "Done."], "Ann": ["I am Ann."], "Bob": ["I am Bob."]}})
        root, session = load_session(tmp_path / "log", language_model=model, ack="os")
        with session:
            assert "Done." == say(root, "Go.")
            assert {"I am Ann.", "I am Bob."} == set(contents(root, "tool"))
            assert ["Ann", "Bob"] == [info.name for info in session.children(root.agent_id)]

    def test_what_one_of_several_calls_brings_about_says_which_it_was(self, tmp_path: Path) -> None:
        asked = [("task", {"name": name, "prompt": "Go."}) for name in ("Ann", "Bob")]
        root, session = open_stage(
            tmp_path / "log", {"root": [calls(*asked), "Done."], "Ann": ["I am Ann."], "Bob": ["I am Bob."]}
        )
        with session:
            say(root, "Go.")
            ids = [one["id"] for one in lines(session, role="assistant")[0]["tool_calls"]]
            assert ids == [line["call_id"] for line in lines(session, event_type="piece_of_text")]
            spoken = {line["content"]: line["call_id"] for line in lines(session, role="assistant") if "cause" in line}
            assert {"I am Ann.": ids[0], "I am Bob.": ids[1]} == spoken

    def test_a_lone_call_writes_what_it_always_wrote(self, tmp_path: Path) -> None:
        script = {"root": [calls(("task", {"name": "Ann", "prompt": "Go."})), "Done."], "Ann": ["I am Ann."]}
        root, session = open_stage(tmp_path / "log", script)
        with session:
            say(root, "Go.")
            assert not any("call_id" in line for line in session.records())

    def test_the_lists_of_the_later_discussion_are_remembered_whichever_ends_first(self, tmp_path: Path) -> None:
        parts: dict[str, Any] = {
            "root": [
                calls(("task", {"name": "Ann"}), ("task", {"name": "Bob"})),
                calls(
                    ("discuss", {"prompt": "1", "speakers": ["Ann"], "listeners": []}),
                    ("discuss", {"prompt": "2", "speakers": ["Bob"], "listeners": []}),
                ),
                "Done.",
            ],
            "Ann": [{"say": "I am slow.", "delay": 0.05}],
            "Bob": ["I am quick."],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "Go.")
            assert ["I am quick.", "I am slow."] == contents(root, "tool")[2:]
            assert ["Bob"] == root.speakers
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert ["Bob"] == root.speakers


class TestHooks:
    def test_a_guard_counts_what_earlier_calls_of_the_message_have_made(self, tmp_path: Path) -> None:
        guard = Hook(name="Guard", points=("tool",), function=lambda m: Deny("enough") if m.agent.subagents else None)
        asked = [("task", {"name": name}) for name in ("Ann", "Bob", "Cid")]
        root, session = open_stage(tmp_path / "log", {"root": [calls(*asked), "Done."]}, hooks=[guard])
        with session:
            say(root, "Make three.")
            assert ["Ann"] == list(root.subagents)

    def test_are_asked_in_the_order_of_the_calls(self, tmp_path: Path) -> None:
        begun: list[str] = []
        asked: list[str] = []

        async def slow_for_the_first(moment: Moment) -> None:
            begun.append(moment.call_id)
            await asyncio.sleep(0.02 if len(begun) == 1 else 0)
            asked.append(moment.call_id)

        def look() -> None: ...

        guard = Hook(name="Guard", points=("tool",), function=slow_for_the_first)
        root, session = open_stage(
            tmp_path / "log", {"root": [calls(*["look"] * 3), "Done."]}, hooks=[guard], tools=[look]
        )
        with session:
            say(root, "Look.")
            assert [one["id"] for one in lines(session, role="assistant")[0]["tool_calls"]] == asked


class TestWhatStopsATurn:
    SCRIPT: ClassVar[dict[str, Any]] = {
        "root": [calls(("task", {"name": "Ann", "prompt": "Go."}), "look"), "Done."],
        "Ann": [{"error": "no money", "delay": 0.01}],
    }

    def test_lets_the_other_calls_come_to_their_end(self, tmp_path: Path) -> None:
        ran: list[str] = []

        async def look() -> str:
            await asyncio.sleep(0.02)
            ran.append("look")
            return "seen"

        root, session = open_stage(tmp_path / "log", self.SCRIPT, tools=[look])
        with session:
            with pytest.raises(ModelFailed):
                say(root, "Go.")
            assert ["seen"] == contents(root, "tool")
            assert ["task"] == [one.name for one in session.open_calls if one.agent_id == root.agent_id]
            root.subagents["Ann"].language_model = ScriptedModel({"agents": {"Ann": ["Here."]}}, name="scripted:b")

            assert "Done." == asyncio.run(root.resume())
            assert (["look"], ["seen", "Here."]) == (ran, contents(root, "tool"))

    def test_a_cancelled_turn_leaves_every_call_open(self, tmp_path: Path) -> None:
        begun: list[str] = []

        async def wait() -> None:
            begun.append("wait")
            await asyncio.sleep(60)

        async def give_up(root: Agent) -> None:
            turn = asyncio.ensure_future(root.response())
            while len(begun) < 2:
                await asyncio.sleep(0.001)
            turn.cancel()
            await turn

        root, session = open_stage(tmp_path / "log", {"root": [calls("wait", "wait"), "Done."]}, tools=[wait])
        with session:
            root.harken("Wait.")
            with pytest.raises(asyncio.CancelledError):
                asyncio.run(give_up(root))
            assert 2 == len(session.open_calls)


def test_a_turn_that_is_under_way_is_cancelled_and_then_stopped(tmp_path: Path) -> None:
    async def wait() -> str:
        await asyncio.sleep(60)
        return "over"

    async def stop(root: Agent) -> None:
        turn = asyncio.ensure_future(root.response())
        while root.turn.run is None or not root.session.open_calls:
            await asyncio.sleep(0.001)
        with pytest.raises(BadRequest, match="root is in the middle of a turn"):
            root.stop()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        root.stop()

    root, session = open_stage(tmp_path / "log", {"root": [calls("wait", "wait"), "Done."]}, tools=[wait])
    with session:
        root.harken("Wait.")
        asyncio.run(stop(root))
        assert ["Error: stopped by the user."] * 2 == contents(root, "tool")
        assert {} == session.registry.counts


class TestAfterAKill:
    def test_only_what_may_be_redone_is_run_again(self, tmp_path: Path) -> None:
        ran: list[str] = []

        @tool(redo=True)
        def look() -> str:
            ran.append("look")
            return "seen"

        def pay() -> str:
            ran.append("pay")
            return "paid"

        parts = {"root": [calls("look", "pay"), "Done."]}
        path = tmp_path / "log"
        root, session = open_stage(path, parts, tools=[look, pay])
        with session:
            say(root, "Go.")
        until = [b'"role":"tool"' in line for line in path.read_bytes().splitlines()].index(True)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:until]))
        ran.clear()

        root, session = open_stage(path, parts, tools=[look, pay])
        with session:
            assert "Done." == asyncio.run(root.resume())
            assert ["look"] == ran
            assert {"seen", INTERRUPTED} == set(contents(root, "tool"))

    def test_a_log_cut_after_any_line_is_resumed_to_the_same_end(self, tmp_path: Path) -> None:
        folder = tmp_path / "whole"
        folder.mkdir()
        beside.play(folder, ack="os")
        assert beside.SAID == beside.said(folder)
        whole = (folder / "log.jsonl").read_bytes().splitlines(keepends=True)
        for cut in range(len(whole)):
            (folder / "log.jsonl").write_bytes(b"".join(whole[:cut]))
            before = len(beside.effects(folder))

            beside.play(folder, ack="os")

            assert beside.SAID == beside.said(folder), f"cut after line {cut}"
            again = beside.effects(folder)[before:]
            called = b"".join(whole[:cut]).decode()
            paid = [one for one in again if one.startswith("pay") and one.split()[1] in called]
            assert [] == paid, f"cut after line {cut}"
            with Session.load(folder / "log.jsonl", readonly=True) as session:
                names = [info.name for info in session.agents.values()]
                assert ["root", "Ann", "Bob"] == names, f"cut after line {cut}"
                assert {} == session.registry.counts, f"cut after line {cut}"

    def test_lines_of_an_older_log_belong_to_the_call_behind_the_last_result(self) -> None:
        def line(message_id: str, **keys: Any) -> dict[str, Any]:
            return {"message_id": message_id, "agent_id": "b", "event_type": "transcript_entry", **keys}

        message = line("m1", agent_id="a", role="assistant")
        first = line("m2", role="assistant", content="one", cause="m1")
        result = line("m3", agent_id="a", role="tool")
        second = line("m4", role="assistant", content="two", cause="m1")
        marked = line("m5", role="assistant", content="three", cause="m1", call_id="c1")

        window = Window.since([message, first, result, second, marked], "a", Asker("m1", "c2"))

        assert [second] == window.events

    def test_what_another_call_of_the_message_did_does_not_mean_that_this_one_was_approved(self) -> None:
        message = {"message_id": "m1", "agent_id": "a", "event_type": "transcript_entry", "role": "assistant"}
        gone = {"message_id": "m2", "agent_id": "b", "event_type": "agent_terminated", "cause": "m1"}
        heard = {"message_id": "m3", "agent_id": "a", "event_type": "piece_of_text", "cause": "m1", "call_id": "c2"}

        assert not Window.since([message, gone], "a", Asker("m1", "c2")).began("m1")
        assert Window.since([message, gone, heard], "a", Asker("m1", "c2")).began("m1")
        assert not Window.since([message, gone, heard], "a", Asker("m1", "c1")).began("m1")


def test_which_call_waits_for_which() -> None:
    ann, bob = Reach(names=frozenset({"ann"}), changes=True), Reach(names=frozenset({"bob"}), changes=True)
    all_, plain, alone = Reach(everybody=True, changes=True), Reach(), Reach(alone=True)

    assert [[], [], [0], [], [0, 1, 2]] == waits_for([ann, bob, ann, plain, all_], guarded=False)
    assert [[], [0], [1]] == waits_for([plain, alone, plain], guarded=False)
    assert [[], [0], [0], [0, 2]] == waits_for([ann, plain, bob, plain], guarded=True)
    assert [[], [], [1], [1, 2]] == waits_for([plain, ann, bob, plain], guarded=True)


@pytest.mark.parametrize("seed", range(3))
def test_a_recording_of_calls_side_by_side_is_played_again_exactly(tmp_path: Path, seed: int) -> None:
    recorded, again = tmp_path / "recorded", tmp_path / "again"
    for folder in (recorded, again):
        folder.mkdir()
    beside.play(recorded, ack="os")
    replay, given = f"replay:{recorded / 'log.jsonl'}", beside.tools(again)
    root, session = load_session(again / "log.jsonl", name="root", language_model=replay, tools=given, ack="os")
    with session:
        root.harken("Begin.")

        assert "Everything is done." == asyncio.run(root.response())

    assert beside.SAID == beside.said(again)


def test_a_call_that_had_not_begun_when_a_model_failed_is_run_when_it_answers_again(tmp_path: Path) -> None:
    done: list[str] = []

    @tool(alone=True)
    def pay() -> str:
        """Pay once."""
        done.append("paid")
        return "Paid."

    asked = calls(("task", {"name": "Ann", "prompt": "Go."}), "pay", ("terminate", {"name": "Ann"}))
    failing = {"say": "I am Ann.", "error": "out of order"}
    root, session = open_stage(tmp_path / "log", {"root": [asked, "Over."], "Ann": [failing]}, tools=[pay])
    with session:
        for _ in range(2):
            with pytest.raises(ModelFailed, match="out of order"):
                say(root, "Go.") if not root.transcript else asyncio.run(root.resume())
        assert [] == done
        held = [one for line in lines(session, subtype="calls_held") for one in line["metadata"]["call_ids"]]
        assert 2 == len(held) == len(set(held))
    root, session = open_stage(tmp_path / "log", {"root": [asked, "Over."], "Ann": ["I am Ann."]}, tools=[pay])
    with session:
        assert "Over." == asyncio.run(root.resume())
        assert ["I am Ann.", "Paid.", "Terminated subagent: Ann"] == contents(root, "tool")
        assert ["paid"] == done


@pytest.mark.parametrize("stopped_by", ["model", "question"])
def test_a_call_of_a_tool_that_there_is_not_does_not_wait_for_it_for_ever(stopped_by: str, tmp_path: Path) -> None:
    """Behind a call that stops the turn it would wait to be run, and no program has that tool."""

    async def work(call: Call) -> str:
        if stopped_by == "question":
            await call.ask("May I?")
        elif not done:
            done.append("tried")
            raise ModelFailed("out of order")
        return "Worked."

    done: list[str] = []
    parts = {"root": [calls("work", "nowhere"), "Done."]}
    given: dict[str, Any] = {
        "tools": [make_tool(work)],
        "hooks": [Hook(name="watch", points=("tool",), function=lambda _: None)],
    }
    root, session = open_stage(tmp_path / "log", parts, **given)
    with session, pytest.raises((Waiting, ModelFailed)):
        say(root, "Go.")

    root, session = open_stage(tmp_path / "log", parts, **given)
    with session:
        for question in session.open_questions():
            session.answer(question.message_id, "yes")
        assert "Done." == asyncio.run(root.resume())
        assert "there is no tool 'nowhere'" in contents(root, "tool")[0]


class TestKilledBeforeACallHasBegun:
    """It waits for another, for the limit of calls at a time, or for a hook: it is run when the turn goes on."""

    PARTS: ClassVar[dict[str, Any]] = {"root": [calls(*[("pay", {"n": n}) for n in range(3)]), "Done."]}

    def killed_in(self, doomed: int, path: Path, begun: list[int]) -> Any:
        """Make three calls, one after the other, and die in one of them; gives the tool that they call."""

        async def pay(n: int) -> str:
            begun.append(n)
            if n == doomed:
                raise asyncio.CancelledError  # as if the process died
            return f"Paid {n}."

        root, session = open_stage(path, self.PARTS, tools=[pay], parallel=1)
        with session, pytest.raises(asyncio.CancelledError):
            say(root, "Pay.")
        return pay

    @pytest.mark.parametrize("way", ["limit", "alone", "hook"])
    def test_it_is_run_once(self, way: str, tmp_path: Path) -> None:
        begun: list[int] = []

        def pay(n: int) -> str:
            begun.append(n)
            return f"Paid {n}."

        given: dict[str, Any] = {
            "tools": [make_tool(pay, alone=way == "alone")],
            "parallel": 1 if way == "limit" else 8,
        }
        if way == "hook":
            given["hooks"] = [Hook(name="watch", points=("tool",), function=lambda _: None)]
        root, session = open_stage(tmp_path / "whole", self.PARTS, **given)
        with session:
            say(root, "Pay.")
        logged = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
        mark = b'"calls_held"' if way == "hook" else b'"role":"tool"'  # the hook is asked; or the first is over
        place = next(place for place, line in enumerate(logged) if mark in line)
        assert [0, 1, 2] == begun
        (tmp_path / "cut").write_bytes(b"".join(logged[: place + 1]))
        begun.clear()

        root, session = open_stage(tmp_path / "cut", self.PARTS, **given)
        with session:
            asyncio.run(root.resume())

            assert ([0, 1, 2] if way == "hook" else [1, 2]) == begun
            assert [f"Paid {n}." for n in range(3)] == contents(root, "tool")

    @pytest.mark.parametrize("way", ["limit", "alone", "hook"])
    def test_it_is_run_after_a_kill_behind_the_write_of_the_message_too(self, way: str, tmp_path: Path) -> None:
        begun: list[int] = []
        sizes: list[int] = []
        path = tmp_path / "log"

        def pay(n: int) -> str:
            begun.append(n)
            return f"Paid {n}."

        given: dict[str, Any] = {
            "tools": [make_tool(pay, alone=way == "alone")],
            "parallel": 1 if way == "limit" else 8,
        }
        if way == "hook":
            given["hooks"] = [Hook(name="watch", points=("tool",), function=lambda _: None)]
        root, session = open_stage(path, self.PARTS, **given)
        session.observers.append(lambda _: sizes.append(path.stat().st_size))
        with session:
            say(root, "Pay.")
        logged = path.read_bytes()
        path.write_bytes(logged[: next(size for size in sizes if b'"tool_calls"' in logged[:size])])
        begun.clear()

        root, session = open_stage(path, self.PARTS, **given)
        with session:
            asyncio.run(root.resume())

            assert ([0, 1, 2] if way == "hook" else [1, 2]) == begun

    def test_one_that_had_begun_is_not_run_again(self, tmp_path: Path) -> None:
        begun: list[int] = []
        pay = self.killed_in(1, tmp_path / "log", begun)

        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[pay], parallel=1)
        with session:
            asyncio.run(root.resume())

            assert [0, 1, 2] == begun
            assert ["Paid 0.", INTERRUPTED, "Paid 2."] == contents(root, "tool")

    def test_it_stays_open_where_its_tool_is_not_there(self, tmp_path: Path) -> None:
        self.killed_in(0, tmp_path / "log", [])

        root, session = open_stage(tmp_path / "log", self.PARTS)
        with session, pytest.raises(Waiting, match="has a call that has not begun, and the tool 'pay'") as stopped:
            asyncio.run(root.resume())
        assert "resume the session in the program that has the tool" == stopped.value.hint

    def test_calls_that_begin_at_once_are_not_noted(self, tmp_path: Path) -> None:
        def pay(n: int) -> str:
            return f"Paid {n}."

        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[pay])
        with session:
            say(root, "Pay.")
            assert [] == lines(session, event_type="system")


class TestKilledWhileAHookJudges:
    """The only call of a message has not begun either: it is judged and run when the turn goes on."""

    PARTS: ClassVar[dict[str, Any]] = {"root": [calls(("pay", {"n": 1})), "Done."], "Guard": ["APPROVE"]}
    GUARD = HookAgent(name="Guard", points=("tool",), instructions="Keep the peace.")

    def pay(self, n: int) -> str:
        raise AssertionError("it was not allowed to")

    def killed(self, path: Path, guard: str) -> None:
        """Make a call that a hook is asked about, and die before it has an answer."""

        async def judge(moment: Moment) -> None:
            raise asyncio.CancelledError  # as if the process died

        hooks: list[Hook | HookAgent] = [self.GUARD]
        if guard == "function":
            hooks = [Hook(name="Guard", points=("tool",), function=judge)]
        parts = self.PARTS | {"Guard": [{"say": "APPROVE", "error": "out of order"}]}
        root, session = open_stage(path, parts, tools=[self.pay], hooks=hooks)
        with session, pytest.raises((asyncio.CancelledError, ModelFailed)):
            say(root, "Pay.")

    @pytest.mark.parametrize("guard", ["function", "agent"])
    @pytest.mark.parametrize("verdict", ["APPROVE", "DENY. Not now."])
    def test_it_is_judged_and_run_once(self, guard: str, verdict: str, tmp_path: Path) -> None:
        paid: list[int] = []

        def pay(n: int) -> str:
            paid.append(n)
            return f"Paid {n}."

        def judge(moment: Moment) -> Deny | None:
            return None if verdict == "APPROVE" else Deny("Not now.")

        self.killed(tmp_path / "log", guard)
        hooks = [Hook(name="Guard", points=("tool",), function=judge)] if guard == "function" else []
        parts = self.PARTS | {"Guard": [verdict]}
        for _ in range(2):
            root, session = open_stage(tmp_path / "log", parts, tools=[pay], hooks=hooks)
            with session:
                asyncio.run(root.resume())
                (result,) = contents(root, "tool")

        if verdict == "APPROVE":
            assert ([1], "Paid 1.") == (paid, result)
        else:
            assert ([], "Error: Action blocked by hook 'Guard': Not now.") == (paid, result)

    def test_it_is_not_run_unjudged_where_the_function_is_not_there(self, tmp_path: Path) -> None:
        self.killed(tmp_path / "log", "function")
        with pytest.warns(MissingHook):
            root, session = open_stage(tmp_path / "log", self.PARTS, tools=[self.pay])
        with session:
            asyncio.run(root.resume())
            assert [INTERRUPTED] == contents(root, "tool")

    def test_what_a_person_has_allowed_is_run_where_the_function_is_not_there(self, tmp_path: Path) -> None:
        hooks = [Hook(name="Guard", points=("tool",), function=lambda _: Ask("May it?"))]
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[self.pay], hooks=hooks)
        with session, pytest.raises(Waiting):
            say(root, "Pay.")
        with pytest.warns(MissingHook):
            root, session = open_stage(tmp_path / "log", self.PARTS, tools=[make_tool(lambda n: "Paid.", name="pay")])
        with session:
            session.answer(session.open_questions()[0].message_id, "yes")
            asyncio.run(root.resume())
            assert ["Paid."] == contents(root, "tool")

    def test_one_that_had_begun_behind_the_verdict_is_not_run_again(self, tmp_path: Path) -> None:
        paid: list[int] = []

        async def pay(n: int) -> str:
            paid.append(n)
            raise asyncio.CancelledError  # as if the process died

        hooks = [Hook(name="Guard", points=("tool",), function=lambda _: None)]
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[pay], hooks=hooks)
        with session, pytest.raises(asyncio.CancelledError):
            say(root, "Pay.")
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[pay], hooks=hooks)
        with session:
            asyncio.run(root.resume())
            assert ([1], [INTERRUPTED]) == (paid, contents(root, "tool"))
