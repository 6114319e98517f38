"""Asking a person: by a tool, a hook and an agent, in one process and over several."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harken import Session
from harken.agents import Agent, Ask, Call, Hook, HookAgent, Moment, ask_person, make_tool
from harken.agents.entries import INTERRUPTED
from harken.errors import BadRequest, Conflict, Waiting
from support.stage import call, contents, lines, open_stage, say

BOTH = {"call": [{"tool": "book", "arguments": {"what": what}} for what in ("tea", "cake")]}


class Desk:
    """Tools that ask, and what they have done."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.done: list[str] = []

    async def book(self, call: Call, what: str) -> str:
        """Book something, if a person agrees."""
        self.begun.append(what)
        answer = await call.ask(f"Book {what}?", ["yes", "no"])
        if answer == "yes":
            self.done.append(what)
        return f"{what}: {answer}"

    def pay(self, amount: int) -> str:
        """Pay."""
        self.done.append(f"paid {amount}")
        return f"Paid {amount}."

    @property
    def tools(self) -> list[Any]:
        return [self.book, self.pay]


def asked(session: Session) -> list[str]:
    return [one.text for one in session.open_questions()]


def answer(session: Session, *texts: str, by: str = "") -> None:
    """Answer what is open, oldest first."""
    for question, text in zip(session.open_questions(), texts, strict=True):
        session.answer(question.message_id, text, by)


def elsewhere(path: Path, *texts: str) -> None:
    """Answer in a session that knows nothing of agents."""
    with Session(path) as session:
        answer(session, *texts, by="Eve")


def resume(agent: Agent) -> str | None:
    return asyncio.run(agent.resume())


def results(agent: Agent) -> dict[str, str]:
    found = [entry for entry in agent.transcript if entry["role"] == "tool"]
    return {f"{entry['name']} {number}": entry["content"] for number, entry in enumerate(found)}


class TestATool:
    PARTS: ClassVar[dict[str, Any]] = {"root": [call("book", what="tea"), "Done."]}

    def test_that_asks_stops_the_turn_until_somebody_answers(self, tmp_path: Path) -> None:
        desk = Desk()
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=desk.tools)
        with session:
            with pytest.raises(Waiting, match=r"waits for an answer: Book tea\?") as stopped:
                say(root, "Go.")
            (question,) = session.open_questions()
            assert ((question.message_id,), ("yes", "no")) == (stopped.value.questions, question.choices)
            with pytest.raises(Waiting):
                resume(root)
            assert ["tea"] == desk.begun

            session.answer(question.message_id, "yes", by="Eve")

            assert "Done." == resume(root)
            assert ({"book 0": "tea: yes"}, ["tea"]) == (results(root), desk.done)
            with pytest.raises(Conflict):
                session.answer(question.message_id, "no")

    def test_goes_on_in_another_process(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=Desk().tools)
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        elsewhere(tmp_path / "log", "no")
        desk = Desk()
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=desk.tools)
        with session:
            assert root.is_pending
            assert "Done." == resume(root)
            assert ({"book 0": "tea: no"}, []) == (results(root), desk.done)

    def test_is_not_done_twice_once_it_has_its_answer(self, tmp_path: Path) -> None:
        """The process ends behind the effect, before the result is in the log."""

        class Dies(BaseException):
            pass

        async def book(call: Call, what: str) -> str:
            """Book it."""
            await call.ask("Sure?")
            done.append(what)
            raise Dies

        done: list[str] = []
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[book])
        with session:
            with pytest.raises(Waiting):
                say(root, "Go.")
            answer(session, "Yes.")
            with pytest.raises(Dies):
                resume(root)
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[book])
        with session:
            assert "Done." == resume(root)
            assert "interrupted" in results(root)["book 0"]
        assert ["tea"] == done

    def test_may_ask_twice_in_one_call(self, tmp_path: Path) -> None:
        async def choose(call: Call) -> str:
            """Choose."""
            first = await call.ask("Which?", key="first")
            return f"{first} and {await call.ask('Which?', key='second')}"

        root, session = open_stage(tmp_path / "log", {"root": [call("choose"), "Done."]}, tools=[choose])
        with session:
            with pytest.raises(Waiting):
                say(root, "Go.")
            answer(session, "tea")
            with pytest.raises(Waiting):
                resume(root)
            answer(session, "cake")
            assert "Done." == resume(root)
            assert {"choose 0": "tea and cake"} == results(root)

    def test_asks_beside_another_that_asks(self, tmp_path: Path) -> None:
        parts = {"root": [BOTH, "Done."]}
        desk = Desk()
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools)
        with session:
            with pytest.raises(Waiting) as stopped:
                say(root, "Go.")
            assert ["Book tea?", "Book cake?"] == asked(session)
            assert 2 == len(stopped.value.questions)
            cake = session.open_questions()[1]
            session.answer(cake.message_id, "yes")
            with pytest.raises(Waiting, match="tea"):
                resume(root)
            assert ["cake: yes"] == contents(root, "tool")
        elsewhere(tmp_path / "log", "no")
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools)
        with session:
            assert "Done." == resume(root)
            assert {"cake: yes", "tea: no"} == set(contents(root, "tool"))
        assert ["cake"] == desk.done

    def test_leaves_those_behind_it_for_later_and_they_run_once(self, tmp_path: Path) -> None:
        """`alone` waits for all before it, so it has not begun when the turn stops."""
        desk = Desk()
        tools = [desk.book, make_tool(desk.pay, alone=True)]
        both = {"call": [BOTH["call"][0], {"tool": "pay", "arguments": {"amount": 3}}]}
        root, session = open_stage(tmp_path / "log", {"root": [both, "Done."]}, tools=tools)
        with session:
            with pytest.raises(Waiting):
                say(root, "Go.")
            assert [] == desk.done
        elsewhere(tmp_path / "log", "yes")
        root, session = open_stage(tmp_path / "log", {"root": [both, "Done."]}, tools=tools)
        with session:
            assert "Done." == resume(root)
            assert ["tea: yes", "Paid 3."] == contents(root, "tool")
        assert ["tea", "paid 3"] == desk.done

    def test_of_an_agent_below_stops_those_above(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="Ann", prompt="Book tea."), "Done."],
            "Ann": [call("book", what="tea"), "Booked."],
        }
        root, session = open_stage(tmp_path / "log", parts, tools=Desk().tools)
        with session, pytest.raises(Waiting, match=r"^Ann waits"):
            say(root, "Go.")
        elsewhere(tmp_path / "log", "yes")
        desk = Desk()
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools)
        with session:
            assert "Done." == resume(root)
            assert ["Booked."] == contents(root, "tool")
        assert ["tea"] == desk.done

    def test_that_is_not_here_keeps_its_call_open(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=Desk().tools)
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        root, session = open_stage(tmp_path / "log", self.PARTS)
        with session:
            with pytest.raises(Waiting, match="Book tea"):
                resume(root)
            answer(session, "yes")
            with pytest.raises(Waiting, match="the tool 'book' that waits for it is not here"):
                resume(root)
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=Desk().tools)
        with session:
            assert "Done." == resume(root)
            assert {"book 0": "tea: yes"} == results(root)

    def test_of_a_turn_that_is_given_up_asks_no_longer(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [call("book", what="tea"), "Fine."]}, tools=Desk().tools)
        with session:
            with pytest.raises(Waiting):
                say(root, "Go.")
            (question,) = session.open_questions()
            root.stop()

            assert [] == session.open_questions()
            with pytest.raises(Conflict):
                session.answer(question.message_id, "yes")
            assert "Fine." == say(root, "Then not.")

    def test_asks_something_that_can_be_answered(self, tmp_path: Path) -> None:
        async def odd(call: Call) -> str:
            """Ask nothing."""
            return await call.ask("  ")

        root, session = open_stage(tmp_path / "log", {"root": [call("odd"), "Oh."]}, tools=[odd])
        with session:
            assert "Oh." == say(root, "Go.")
            assert "a question is text" in contents(root, "tool")[0]


class TestAnAgent:
    def test_asks_by_a_tool_that_is_shipped_and_known_everywhere(self, tmp_path: Path) -> None:
        parts = {"root": [call("ask_person", question="Tea or cake?", choices=["tea", "cake"]), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ask_person])
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        elsewhere(tmp_path / "log", "CAKE")
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert "Done." == resume(root)
            assert ["cake"] == contents(root, "tool")

    def test_is_asked_for_by_a_program(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Hm.", "Well."]})
        with session:
            say(root, "Go.")
            with pytest.raises(Waiting):
                asyncio.run(root.ask("Go on?"))
        elsewhere(tmp_path / "log", "Yes.")
        root, session = open_stage(tmp_path / "log", {"root": ["Hm.", "Well."]})
        with session:
            assert "Yes." == asyncio.run(root.ask("Go on?"))
            assert [] == session.open_questions()
            assert "Well." == say(root, "Then go on.")
            with pytest.raises(Waiting):
                asyncio.run(root.ask("Go on?"))

    def test_that_was_terminated_asks_nothing(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Hm."]})
        with session:
            root.terminate()
            with pytest.raises(BadRequest):
                asyncio.run(root.ask("Why?"))


class TestAHook:
    @staticmethod
    def careful(*points: str, asked: list[str] | None = None) -> Hook:
        def function(moment: Moment) -> Ask:
            if asked is not None:
                asked.append(moment.point)
            return Ask(f"Let {moment.agent.label} go on at {moment.point}?")

        return Hook(name="Careful", points=points, function=function)

    @pytest.mark.parametrize(("said", "result"), [("yes", "Paid 3."), ("no", "blocked by hook 'Careful': Eve said no")])
    def test_lets_a_person_decide_about_a_tool(self, tmp_path: Path, said: str, result: str) -> None:
        desk, parts, times = Desk(), {"root": [call("pay", amount=3), "Done."]}, list[str]()
        hooks = [self.careful("tool", asked=times)]
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools, hooks=hooks)
        with session, pytest.raises(Waiting, match="Let root go on at tool"):
            say(root, "Go.")
        assert [] == desk.done
        elsewhere(tmp_path / "log", said)
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools, hooks=hooks)
        with session:
            assert "Done." == resume(root)
            assert result in contents(root, "tool")[0]
            (verdict,) = [line for line in lines(session, role="assistant") if line.get("model") == "<synthetic>"]
            (answered,) = lines(session, subtype="answer")
            assert (answered["message_id"], ["tool"]) == (verdict["cause"], times)
        assert (["paid 3"] if said == "yes" else []) == desk.done

    def test_that_is_not_passed_again_still_has_its_answer(self, tmp_path: Path) -> None:
        desk, parts = Desk(), {"root": [call("pay", amount=3), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools, hooks=[self.careful("tool")])
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        with pytest.warns(UserWarning, match="Careful"):
            root, session = open_stage(tmp_path / "log", parts, tools=desk.tools)
        with session:
            with pytest.raises(Waiting):
                resume(root)
            answer(session, "no")
            assert "Done." == resume(root)
        assert [] == desk.done

    def test_of_whose_verdict_only_the_first_line_was_written_has_the_tool_run_once(self, tmp_path: Path) -> None:
        """The verdict and that the answer was taken are one write; where it was torn, the tool's effect stays one."""
        paid: list[int] = []

        async def pay(amount: int) -> str:
            paid.append(amount)
            raise asyncio.CancelledError  # as if the process died

        given: dict[str, Any] = {"tools": [pay], "hooks": [self.careful("tool")]}
        parts = {"root": [call("pay", amount=3), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, **given)
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        elsewhere(tmp_path / "log", "yes")
        root, session = open_stage(tmp_path / "log", parts, **given)
        with session, pytest.raises(asyncio.CancelledError):
            resume(root)
        logged = (tmp_path / "log").read_bytes().splitlines(keepends=True)
        place = next(place for place, line in enumerate(logged) if b'"answer_taken"' in line)
        (tmp_path / "torn").write_bytes(b"".join(logged[:place]))
        paid.clear()

        root, session = open_stage(tmp_path / "torn", parts, **given)
        with session, pytest.raises(asyncio.CancelledError):
            resume(root)
        root, session = open_stage(tmp_path / "torn", parts, **given)
        with session:
            assert "Done." == resume(root)
            assert ([3], [INTERRUPTED]) == (paid, contents(root, "tool"))

    def test_asks_about_two_calls_at_once(self, tmp_path: Path) -> None:
        both = {"call": [{"tool": "pay", "arguments": {"amount": amount}} for amount in (1, 2)]}
        desk = Desk()
        hooks = [self.careful("tool")]
        root, session = open_stage(tmp_path / "log", {"root": [both, "Done."]}, tools=desk.tools, hooks=hooks)
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        with Session(tmp_path / "log") as other:
            assert 2 == len(asked(other))
            answer(other, "no", "yes")
        root, session = open_stage(tmp_path / "log", {"root": [both, "Done."]}, tools=desk.tools, hooks=hooks)
        with session:
            assert "Done." == resume(root)
        assert ["paid 2"] == desk.done

    def test_lets_a_person_decide_about_a_prompt(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Hm."]}, hooks=[self.careful("prompt")])
        with session:
            with pytest.raises(Waiting):
                say(root, "Go.")
            answer(session, "no")
            assert "blocked by hook 'Careful'" in str(resume(root))

    @pytest.mark.parametrize(("said", "end"), [("yes", "One."), ("no", "Two.")])
    def test_lets_a_person_decide_about_what_was_said(self, tmp_path: Path, said: str, end: str) -> None:
        """The second utterance is asked about as well."""
        hooks = [self.careful("finished")]
        parts = {"root": ["One.", "Two."]}
        root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        elsewhere(tmp_path / "log", said)
        root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
        with session:
            assert root.is_pending
            if said == "no":
                with pytest.raises(Waiting):
                    resume(root)
                answer(session, "yes")
            assert end == resume(root)
            assert not root.is_pending

    def test_lets_a_person_decide_who_hears_what(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="Ann"), call("task", name="Bob"),
                     call("discuss", prompt="Talk.", speakers=["Ann"], listeners=["Bob"]), "Done."],
            "Ann": ["A secret."],
        }  # fmt: skip

        def function(moment: Moment) -> Ask | None:
            return Ask("May Bob know?") if moment.recipients == ("Bob",) and "secret" in moment.text else None

        hooks = [Hook(name="Careful", points=("delivery",), function=function)]
        root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
        with session, pytest.raises(Waiting):
            say(root, "Go.")
        elsewhere(tmp_path / "log", "no")
        root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
        with session:
            assert "Done." == resume(root)
            assert ["Talk."] == contents(root.subagents["Bob"], "user")

    @pytest.mark.parametrize(("said", "done"), [("yes", ["paid 3"]), ("no", [])])
    def test_that_is_an_agent_asks_in_words(self, tmp_path: Path, said: str, done: list[str]) -> None:
        desk, parts = Desk(), {"root": [call("pay", amount=3), "Done."], "Judge": ["ASK: Pay 3?", "APPROVE"]}
        judge = HookAgent(name="Judge", points=("tool",), instructions="Ask about money.")
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools, hooks=[judge])
        with session, pytest.raises(Waiting, match=r"Pay 3\?"):
            say(root, "Go.")
        elsewhere(tmp_path / "log", said)
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools)
        with session:
            assert "Done." == resume(root)
        assert done == desk.done

    def test_asks_what_nobody_can_answer_and_refuses(self, tmp_path: Path) -> None:
        desk = Desk()
        hooks = [Hook(name="Odd", points=("tool",), function=lambda _: Ask(" "))]
        parts = {"root": [call("pay", amount=3), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=desk.tools, hooks=hooks)
        with session:
            assert "Done." == say(root, "Go.")
        assert [] == desk.done


def test_a_recording_with_questions_is_played_again(tmp_path: Path) -> None:
    parts = {"root": [BOTH, "Done."]}
    desk = Desk()
    root, session = open_stage(tmp_path / "log", parts, tools=desk.tools)
    with session:
        with pytest.raises(Waiting):
            say(root, "Go.")
        answer(session, "yes", "no")
        resume(root)
        said = contents(root, "tool"), contents(root, "assistant")

    from harken import load_session

    root, session = load_session(tmp_path / "again", language_model=f"replay:{tmp_path / 'log'}", tools=desk.tools)
    with session:
        with pytest.raises(Waiting):
            say(root, "Go.")
        answer(session, "yes", "no")
        assert "Done." == resume(root)
        assert said == (contents(root, "tool"), contents(root, "assistant"))
