"""A run stops within one request of its limit, says so in the log, and goes on with a higher one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from harken import Session, load_session
from harken.agents import Agent, AgentPool, HookAgent, Reply, Request, Retries, RunLimits, ScriptedModel, Used
from harken.agents.models import Usage
from harken.errors import BadRequest, LimitReached, ModelFailed
from harken.events import Tokens
from support.stage import call, contents, lines, say

PRICE = 0.25
LOOKS = {"root": [*[call("look")] * 9, "Done."]}


class Priced(ScriptedModel):
    """A script of which every reply costs something."""

    def __init__(self, parts: dict[str, Any], cost: float | None = PRICE) -> None:
        super().__init__({"agents": parts}, name="scripted:priced")
        self.asked: list[str] = []
        self.cost = cost

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request.name)
        reply = await super().complete(request)
        usage = Usage(tokens=Tokens(input=90, output=10), cost_usd=self.cost)
        return Reply(content=reply.content, tool_calls=reply.tool_calls, usage=usage)


def look() -> str:
    """Look around."""
    return "seen"


def stage(path: Path, parts: dict[str, Any], cost: float | None = PRICE, **more: Any) -> tuple[Agent, Session, Priced]:
    model = Priced(parts, cost)
    more = {"tools": [look], "retries": Retries(first=0), "ack": "os"} | more
    root, session = load_session(path, language_model=model, **more)
    return root, session, model


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        (RunLimits(cost_usd=0.6), 3),
        (RunLimits(cost_usd=0.5), 2),
        (RunLimits(tokens=250), 3),
        (RunLimits(steps=4), 4),
        (RunLimits(cost_usd=9, tokens=10_000, steps=1), 1),
    ],
)
def test_a_run_stops_within_one_request_of_its_limit_and_goes_on_with_a_higher_one(
    tmp_path: Path, limits: RunLimits, asked: int
) -> None:
    path = tmp_path / "log"
    root, session, model = stage(path, LOOKS, limits=limits)
    with session:
        with pytest.raises(LimitReached, match="the limit of the session on"):
            say(root, "Look around.")
        assert asked == len(model.asked)
        assert ["seen"] * asked == contents(root, "tool")
        (notice,) = lines(session, subtype="limit")
        name = notice["metadata"]["limit"]
        assert getattr(limits, name) == notice["metadata"]["most"] <= notice["metadata"]["used"]
        assert root.is_pending
    root, session, model = stage(path, LOOKS, limits=RunLimits(cost_usd=100))
    with session:
        assert "Done." == asyncio.run(root.resume())
        assert 10 - asked == len(model.asked)
        assert Used(cost_usd=2.5, tokens=1000, steps=10) == AgentPool.of(session).used()


def test_a_limit_comes_back_with_the_session(tmp_path: Path) -> None:
    root, session, _ = stage(tmp_path / "log", LOOKS, limits=RunLimits(steps=2))
    with session, pytest.raises(LimitReached):
        say(root, "Look around.")
    root, session, model = stage(tmp_path / "log", LOOKS)
    with session:
        with pytest.raises(LimitReached):
            asyncio.run(root.resume())
        assert [] == model.asked


def test_a_limit_of_an_agent_is_of_all_below_it_and_of_nobody_else(tmp_path: Path) -> None:
    parts = {
        "Ann": [call("task", name="Eve", prompt="Help."), "Eve helped."],
        "Eve": [call("look"), call("look"), "I helped."],
        "Bob": [call("look"), call("look"), call("look"), "I looked."],
    }
    root, session, model = stage(tmp_path / "log", parts)
    with session:
        ann = root.spawn("Ann", "You are Ann.", limits=RunLimits(steps=3))
        bob = root.spawn("Bob", "You are Bob.")
        with pytest.raises(LimitReached, match="Eve was stopped: the limit of Ann on steps is 3"):
            say(ann, "Go.")
        assert "I looked." == say(bob, "Go.")
        assert ["Ann", "Eve", "Eve"] == [name for name in model.asked if name != "Bob"]
        assert (3, 2) == tuple(AgentPool.of(session).used(one.agent_id).steps for one in (ann, ann.subagents["Eve"]))
    root, session, _ = stage(tmp_path / "log", parts)
    with session:
        ann = root.subagents["Ann"]
        assert RunLimits(steps=3) == ann.limits
        ann.limits = RunLimits(steps=9)

        assert "Eve helped." == asyncio.run(ann.resume())


def test_what_hooks_use_is_used_by_the_agent_they_watch(tmp_path: Path) -> None:
    parts = {"root": ["Hello."], "Reviewer": ["APPROVE"]}
    reviewer = HookAgent(name="Reviewer", points=("finished",), instructions="Look.")
    root, session, _ = stage(tmp_path / "log", parts, hooks=[reviewer])
    with session:
        say(root, "Hello?")
        assert 2 == AgentPool.of(session).used(root.agent_id).steps


def test_a_log_cut_after_any_line_never_uses_more_than_one_request_beyond(tmp_path: Path) -> None:
    path = tmp_path / "log"
    root, session, _ = stage(path, LOOKS, limits=RunLimits(cost_usd=1.0))
    with session, pytest.raises(LimitReached):
        say(root, "Look around.")
    whole = path.read_bytes().splitlines(keepends=True)
    for cut in range(3, len(whole)):
        path.write_bytes(b"".join(whole[:cut]))
        root, session, _ = stage(path, LOOKS)
        with session:
            if root.is_pending:
                with pytest.raises(LimitReached):
                    asyncio.run(root.resume())
                used = AgentPool.of(session).used()
                assert 1.0 == used.cost_usd, f"cut after line {cut}"
                assert used.steps <= 5, "one reply may have lost the line that says what it cost"


def test_a_cost_that_nobody_knows_stops_a_run_that_must_not_cost_more(tmp_path: Path) -> None:
    root, session, model = stage(tmp_path / "log", LOOKS, cost=None, limits=RunLimits(cost_usd=5))
    with session:
        with pytest.raises(LimitReached, match="is not known"):
            say(root, "Look around.")
        assert (1, 1) == (len(model.asked), len(lines(session, subtype="limit")))


def test_a_limit_is_reached_by_figures_that_add_up_to_it(tmp_path: Path) -> None:
    root, session, model = stage(tmp_path / "log", LOOKS, cost=0.1, limits=RunLimits(cost_usd=0.8))
    with session:
        with pytest.raises(LimitReached, match=r"is 0\.8, and 0\.8 is used"):
            say(root, "Go.")
        assert 8 == len(model.asked)


def test_a_script_costs_nothing(tmp_path: Path) -> None:
    model = ScriptedModel({"agents": {"root": ["Hello."]}})
    root, session = load_session(tmp_path / "log", language_model=model, ack="os", limits=RunLimits(cost_usd=0.01))
    with session:
        assert "Hello." == say(root, "Hello?")


class TestTime:
    def test_tools_and_models_use_it_up(self, tmp_path: Path) -> None:
        async def doze() -> None:
            await asyncio.sleep(0.03)

        parts = {"root": [*[call("doze")] * 9, "Done."]}
        root, session, _ = stage(tmp_path / "log", parts, tools=[doze], limits=RunLimits(seconds=0.05))
        with session:
            with pytest.raises(LimitReached, match="on seconds"):
                say(root, "Sleep.")
            results = {line["message_id"] for line in lines(session, role="tool")}
            worked = lines(session, subtype="worked")
            slept = [line["metadata"]["seconds"] for line in worked if line["cause"] in results]
            assert len(slept) in (1, 2)  # a busy machine may sleep through the limit at once
            assert all(0.02 < one < 5 for one in slept)
            assert AgentPool.of(session).used().seconds >= sum(slept)

    def test_a_request_is_cut_off_when_it_is_over_and_the_wait_counts(self, tmp_path: Path) -> None:
        parts = {"root": [{"say": "Too late.", "delay": 60}]}
        root, session, _ = stage(tmp_path / "log", parts, limits=RunLimits(seconds=0.05))
        with session:
            with pytest.raises(LimitReached, match="on seconds"):
                say(root, "Hurry.")
            assert AgentPool.of(session).used().seconds >= 0.05
        root, session, model = stage(tmp_path / "log", {"root": ["In time."]})
        with session:
            with pytest.raises(LimitReached):
                asyncio.run(root.resume())
            assert [] == model.asked
            load_session(session, language_model=model, tools=[look], limits=RunLimits(seconds=60))
            assert "In time." == asyncio.run(root.resume())

    def test_is_noted_only_where_it_is_limited(self, tmp_path: Path) -> None:
        root, session, _ = stage(tmp_path / "log", {"root": [call("look"), "Done."]}, limits=RunLimits(steps=9))
        with session:
            say(root, "Look.")
            assert [] == lines(session, subtype="worked")


def test_too_deep_is_refused_and_the_turn_goes_on(tmp_path: Path) -> None:
    parts = {
        "root": [call("task", name="Ann", prompt="Go."), "Done."],
        "Ann": [call("task", name="Eve"), "I stay alone."],
    }
    root, session, _ = stage(tmp_path / "log", parts, limits=RunLimits(depth=1))
    with session:
        assert "Done." == say(root, "Go.")
        assert "the limit of the session on depth is 1" in contents(root.subagents["Ann"], "tool")[0]
        assert ["depth"] == [line["metadata"]["limit"] for line in lines(session, subtype="limit")]
        with pytest.raises(BadRequest, match="depth"):
            root.subagents["Ann"].spawn("Eve")


def test_a_limit_is_a_failure_of_the_model_for_whoever_knows_no_better() -> None:
    assert issubclass(LimitReached, ModelFailed)


@pytest.mark.parametrize("wrong", [-1, "many", True, 2.5, float("nan"), float("inf"), 2**64])
def test_a_limit_is_a_number(wrong: Any) -> None:
    with pytest.raises(BadRequest, match="steps of RunLimits cannot be"):
        RunLimits(steps=wrong)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_limit_on_cost_is_finite(wrong: float) -> None:
    with pytest.raises(BadRequest, match="cost_usd of RunLimits cannot be"):
        RunLimits(cost_usd=wrong)


@pytest.mark.parametrize("of_an_agent", [False, True])
def test_a_whole_number_that_is_written_as_a_float_limits_all_the_same(tmp_path: Path, *, of_an_agent: bool) -> None:
    limits: Any = RunLimits(tokens=2e2, cost_usd=9)  # type: ignore[arg-type]
    root, session, model = stage(tmp_path / "log", LOOKS, limits=None if of_an_agent else limits)
    with session:
        if of_an_agent:
            root.limits = limits
        with pytest.raises(LimitReached, match="on tokens is 200"):
            say(root, "Go.")
        assert 2 == len(model.asked)


def test_a_limit_that_a_log_has_as_a_float_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "log"
    made = {
        "message_id": "m1",
        "event_type": "agent_created",
        "agent_id": "a",
        "attributes": {"limits": {"steps": 2.0}},
    }
    path.write_text(json.dumps(made) + "\n")
    root, session, _ = stage(path, LOOKS)
    with session:
        assert RunLimits(steps=2) == root.limits


@pytest.mark.parametrize("found", [7, {"steps": "many"}, {"cost_usd": -1}])
def test_limits_that_a_log_has_wrong_are_none(tmp_path: Path, found: Any) -> None:
    path = tmp_path / "log"
    made = {"message_id": "m1", "event_type": "agent_created", "agent_id": "a", "attributes": {"limits": found}}
    odd = {"message_id": "m2", "event_type": "metric", "agent_id": "a", "cost_usd": "x", "input_tokens": -5}
    path.write_text(json.dumps(made) + "\n" + json.dumps(odd) + "\n")
    root, session, _ = stage(path, {"root": ["Hello."]})
    with session:
        assert RunLimits() == root.limits
        assert "Hello." == say(root, "Hello?")
        assert Used(cost_usd=PRICE, tokens=100, steps=1) == AgentPool.of(session).used()


def test_what_an_agent_begins_with_is_none_of_its_steps(tmp_path: Path) -> None:
    path, parts = tmp_path / "log", {"*": {"otherwise": "Hm."}}
    root, session, _ = stage(path, parts)
    with session:
        for _ in range(3):
            say(root, "Well?")
        ann = Agent(session, None, root.transcript, name="Ann", parent=root, limits=RunLimits(steps=1))
        assert "Hm." == say(ann, "And you?")
        with pytest.raises(LimitReached):
            say(ann, "And now?")
        used = AgentPool.of(session).used
        assert (4, 1) == (used().steps, used(ann.agent_id).steps)
    root, session, _ = stage(path, parts)
    with session:
        assert 4 == AgentPool.of(session).used().steps
