"""What was ruled, refused or said stands: nobody is asked for it again, in this process or after a load."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path

import pytest

import harken
from harken import Session, SessionViewer, load_session
from harken.agents import (
    Agent,
    Approve,
    Deny,
    Hook,
    HookAgent,
    MissingHook,
    ModelError,
    Moment,
    Reply,
    Request,
    Rewrite,
    ScriptedModel,
    hook,
)
from harken.agents.models import Usage
from harken.errors import ModelFailed
from harken.events import Tokens
from harken.events.tally import NO_TOKENS
from support.stage import call, contents, lines, open_stage, say


@hook("prompt", name="Gate")
def gate(moment: Moment) -> Deny | None:
    return Deny("forbidden") if "bomb" in moment.text else None


@hook("finished", name="Style")
def style(moment: Moment) -> Deny | None:
    return Deny("say it politely") if moment.text.startswith("Error") else None


GATE = HookAgent(name="Gate", points=("prompt",), instructions="Keep the peace.")
STYLE = HookAgent(name="Style", points=("finished",), instructions="Be polite.")
RULES = {"Gate": {"otherwise": "DENY. forbidden"}, "Style": {"otherwise": "DENY. say it politely"}}


@pytest.mark.parametrize("hooks", [[gate, style], [GATE, STYLE]], ids=["functions", "agents"])
def test_a_refused_prompt_is_not_answered_by_the_model_after_a_load(
    tmp_path: Path, hooks: list[Hook | HookAgent]
) -> None:
    parts = {"root": {"otherwise": "a forbidden answer"}, **RULES}
    root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
    with session:
        refusal = say(root, "how to build a bomb")
        assert "Error: Prompt blocked by hook 'Gate': forbidden" == refusal
        assert not root.is_pending
    root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
    with session:
        assert not root.is_pending
        assert asyncio.run(root.resume()) is None
        assert [refusal] == contents(root, "assistant")


class Discussion:
    """A discussion of A and B that stops before B has spoken, because the model fails."""

    name = "discussion"

    def __init__(self) -> None:
        self.is_down = True
        self.verdict = "DENY. secret"

    async def complete(self, request: Request) -> Reply:
        if request.name == "Guard":
            return Reply(content=self.verdict if "password" in request.last_heard() else "APPROVE")
        if request.name == "B" and self.is_down:
            raise ModelError("down")
        if request.name != "root":
            return Reply(content="the password is swordfish" if request.name == "A" else "I am B")
        script = [call("task", name="A"), call("task", name="B"), call("discuss", prompt="go", speakers=["A", "B"])]
        if request.turn == len(script):
            return Reply(content="end")
        return await ScriptedModel({"agents": {"root": script}}, name="script").complete(request)

    def interrupted(self, path: Path, hooks: list[Hook | HookAgent]) -> tuple[Agent, Session]:
        """The session as it stands after the failure."""
        root, session = load_session(path, language_model=self, name="root", hooks=hooks, ack="os")
        with pytest.raises(ModelFailed):
            say(root, "go")
        return root, session

    def go_on(self, root: Agent, session: Session, hooks: list[Hook | HookAgent], *, load: bool) -> None:
        """Resume, in this process or after a load."""
        if load:
            session.close()
            root, session = load_session(session.path, language_model=self, hooks=hooks, ack="os")
        self.is_down = False
        with session:
            assert "end" == asyncio.run(root.resume())


@pytest.mark.parametrize("how", ["in the same process", "after a load", "after the guard was folded and a load"])
def test_a_verdict_of_an_agent_stands_when_a_turn_is_resumed(tmp_path: Path, how: str) -> None:
    path, play = tmp_path / "log", Discussion()
    guards: list[Hook | HookAgent] = [HookAgent(name="Guard", points=("delivery",), instructions="g")]
    root, session = play.interrupted(path, guards)
    play.verdict = "APPROVE"  # what it would say if it were asked again
    if "folded" in how:
        guard = root.watchers[0].agent
        assert guard is not None
        guard.log({"role": "user", "content": "x"})
        guard.log({"role": "assistant", "content": "APPROVE"})
        assert asyncio.run(guard.compact("what I ruled", keep=1))

    play.go_on(root, session, [], load="load" in how)

    viewer = SessionViewer(path)
    (hearer,) = (agent_id for agent_id, name in viewer.list_agents().items() if name == "B")
    assert not viewer.knows(hearer, "swordfish")["knows"]


def _redact(moment: Moment) -> Rewrite | None:
    return Rewrite(moment.text.upper()) if "password" in moment.text else None


def _praise(moment: Moment) -> Approve:
    return Approve(say=f"good at {moment.point}")


@pytest.mark.parametrize(
    "watching",
    [
        Hook(name="Redact", points=("delivery",), function=_redact),
        *(Hook(name=point, points=(point,), function=_praise) for point in ("finished", "tool", "prompt")),
    ],
    ids=lambda watching: watching.points[0],
)
def test_a_turn_that_is_resumed_in_the_same_process_says_the_same_as_after_a_load(
    tmp_path: Path, watching: Hook
) -> None:
    found = []
    for load in (True, False):
        play, path = Discussion(), tmp_path / f"log-{load}"
        play.go_on(*play.interrupted(path, [watching]), [watching], load=load)
        with Session(path, readonly=True) as session:
            found.append([(line["agent_id"], line.get("role"), line.get("content")) for line in lines(session)])

    assert found[0] == found[1]


def test_what_was_said_before_a_hook_was_attached_is_not_said_again(tmp_path: Path) -> None:
    late = Hook(name="Late", points=("finished",), function=lambda _: Deny("redo"))
    root, session = open_stage(tmp_path / "log", {"root": {"otherwise": "words"}})
    with session:
        say(root, "speak")
    for _ in range(2):
        root, session = open_stage(tmp_path / "log", {"root": {"otherwise": "words"}}, hooks=[late])
        with session:
            assert not root.is_pending
            assert asyncio.run(root.resume()) is None
            assert ["words"] == contents(root, "assistant")


def test_what_was_said_behind_a_new_hook_is_reviewed_when_it_was_stopped(tmp_path: Path) -> None:
    """A review that was stopped is taken up by a resume, in the process that attached the hook as well."""
    stopped = [True]

    @hook("finished", name="Late")
    async def late(moment: Moment) -> Deny | None:
        if stopped.pop() if stopped else False:
            raise asyncio.CancelledError
        return Deny("shorter") if moment.text == "many words" else None

    root, session = open_stage(tmp_path / "log", {"root": ["many words", "words"]}, hooks=[late])
    with session:
        with pytest.raises(asyncio.CancelledError):
            say(root, "speak")

        assert root.is_pending
        assert "words" == asyncio.run(root.resume())


def test_a_changed_function_takes_the_place_of_the_one_of_its_name_in_a_session_that_is_open(tmp_path: Path) -> None:
    old = Hook(name="Guard", points=("tool",), function=lambda _: None)
    new = Hook(name="Guard", points=("tool",), function=lambda _: Deny("no tools"))
    root, session = open_stage(tmp_path / "log", {"root": [call("task", name="J"), "ok"]}, hooks=[old])
    with session:
        again, _ = load_session(session, hooks=[new])
        assert again is root
        say(root, "go")

        assert ["Error: Action blocked by hook 'Guard': no tools"] == contents(root, "tool")
        assert 1 == len(root.watchers)


@hook("tool", name="Guard")
def _no_tasks(moment: Moment) -> Deny | None:
    return Deny("not allowed") if moment.tool == "task" else None


def _cut_behind(path: Path, words: bytes) -> None:
    """The log as a crash right behind the first line that holds the words has left it."""
    kept: list[bytes] = []
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        if words in line:
            break
    path.write_bytes(b"".join(kept))


class TestAFunctionThatWasNotPassedAgain:
    def test_what_it_had_denied_is_not_done(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Evil", prompt="do"), "end"], "Evil": ["evil done"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[_no_tasks])
        with session:
            say(root, "go")
            whole = contents(root, "tool")
        _cut_behind(tmp_path / "log", b"DENY")

        with pytest.warns(MissingHook, match="'Guard'"):
            root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert "end" == asyncio.run(root.resume())
            assert (whole, []) == (contents(root, "tool"), list(root.subagents))

    def test_what_it_had_withheld_is_not_delivered(self, tmp_path: Path) -> None:
        path, play = tmp_path / "log", Discussion()
        hush = Hook(name="Hush", points=("delivery",), function=lambda m: Deny("x") if "password" in m.text else None)
        root, session = play.interrupted(path, [hush])

        with pytest.warns(MissingHook):
            play.go_on(root, session, [], load=True)

        viewer = SessionViewer(path)
        (hearer,) = (agent_id for agent_id, name in viewer.list_agents().items() if name == "B")
        assert not viewer.knows(hearer, "swordfish")["knows"]

    def test_what_it_had_sent_back_is_said_anew(self, tmp_path: Path) -> None:
        rude = Hook(name="Nice", points=("finished",), function=lambda m: Deny("no") if m.text == "rude" else None)
        parts = {"root": ["rude", "kind"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[rude])
        with session:
            say(root, "go")
        _cut_behind(tmp_path / "log", b"DENY")

        with pytest.warns(MissingHook):
            root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert "kind" == asyncio.run(root.resume())
            assert not root.is_pending
            assert 1 == len(lines(session, agent_id="agent_002", role="assistant"))  # it has not approved of this one

    def test_it_stands_in_the_way_of_nothing_new_and_may_come_back(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="A"), "one", call("task", name="B"), "two", call("task", name="C"), "three"]
        }
        root, session = open_stage(tmp_path / "log", parts, hooks=[_no_tasks])
        with session:
            say(root, "go")
        with pytest.warns(MissingHook):
            root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")
            assert ["B"] == list(root.subagents)

            again, _ = load_session(session, hooks=[_no_tasks])
            say(again, "go")
            assert (["B"], []) == (list(root.subagents), root.missing_hooks)


@pytest.mark.parametrize("passed_again", [True, False])
@pytest.mark.parametrize("guard", ["function", "agent"])
def test_a_refused_call_that_was_cut_off_is_answered_with_the_refusal(
    tmp_path: Path, guard: str, passed_again: bool
) -> None:
    """As in a session that was not cut off: that it had no effect is known."""
    done: list[str] = []

    def launch() -> str:
        done.append("launch")
        return "it flew"

    asked = HookAgent(name="Guard", points=("tool",), instructions="Keep the peace.")
    function = Hook(name="Guard", points=("tool",), function=lambda _: Deny("not allowed"))
    hooks: list[Hook | HookAgent] = [function if guard == "function" else asked]
    parts = {"root": [call("launch"), "end"], "Guard": {"otherwise": "DENY. not allowed"}}
    root, session = open_stage(tmp_path / "log", parts, hooks=hooks, tools=[launch])
    with session:
        say(root, "go")
        whole = lines(session, role="tool")
    kept = SessionViewer(tmp_path / "log").interventions()
    _cut_behind(tmp_path / "log", b"DENY. not allowed" if guard == "agent" else b"DENY")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingHook)
        root, session = open_stage(
            tmp_path / "log", parts, hooks=hooks if passed_again else [], tools=[launch] if passed_again else []
        )
    with session:
        assert "end" == asyncio.run(root.resume())
        (result,) = lines(session, role="tool")
    assert ("Error: Action blocked by hook 'Guard': not allowed", []) == (result["content"], done)
    assert (whole[0]["content"], whole[0]["cause"], True) == (result["content"], result["cause"], result["is_error"])
    found = SessionViewer(tmp_path / "log").interventions()
    assert [one["kind"] for one in kept] == [one["kind"] for one in found] != []


def test_a_function_that_watches_has_used_nothing(tmp_path: Path) -> None:
    """It asked no model, so what its session cost is known, and the total is no lower bound."""

    class Priced:
        name = "priced"

        async def complete(self, request: Request) -> Reply:
            return Reply(content="yes", usage=Usage(tokens=Tokens(input=7, output=2), cost_usd=0.5))

    watch = Hook(name="Watch", points=("finished",), function=lambda _: None)
    root, session = load_session(tmp_path / "log", language_model=Priced(), hooks=[watch], ack="os")
    with session:
        say(root, "go")
        (verdict,) = lines(session, agent_id="agent_002", role="assistant")
        assert "APPROVE" == verdict["content"]

    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path / "log"]))
        figures = list(repo.stats())
    (of_hook,) = figures[0].agents
    assert (NO_TOKENS, 0, 0) == (of_hook.figures.usage, of_hook.figures.responses, of_hook.unknown_costs)
    assert (500_000, 0) == (figures[-1].figures.cost_usd_micros, figures[-1].unknown_costs)
