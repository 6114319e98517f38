"""Copilot CLI itself: what it wrote is imported, counted, continued in it and elsewhere, and judged on the wire."""

from __future__ import annotations

import pytest

from support.conversations import HELD, Held, compacted, heard, pictures, plain, prompt, sub_agents
from support.harken_cli import harken
from support.lab import Lab
from support.programs import program
from support.programs.copilot_cli import environment
from support.scripted_model import Say
from support.wire import Item, in_order_of_calls

pytestmark = pytest.mark.runtimes
COPILOT = "copilot-cli"
NEXT = "And now?"


def take_in(lab: Lab, runtime: str) -> list[dict[str, object]]:
    return harken(lab, "import", str(program(runtime).home(lab)))


def carry_on(lab: Lab, held: Held, target: str) -> tuple[list[Item], dict[str, object]]:
    """Resume in a program, say one thing more, and read what it sent."""
    take_in(lab, held.runtime)
    home = program(target).home(lab)
    [written] = harken(lab, "resume", held.session, "--in", target, "--home", str(home))
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, str(written["session"]))
    return heard(lab, target), written


# Pictures that a tool shows do not go to a model of the user's own.
@pytest.mark.parametrize("conversation", sorted(HELD.keys() - {"pictures"}))
def test_its_own_session_goes_on_as_it_would_by_itself(lab: Lab, conversation: str) -> None:
    held = HELD[conversation](lab, COPILOT)
    sent, written = carry_on(lab, held, COPILOT)

    lab.model.play([Say("Yes.")])
    prompt(lab, COPILOT, "Go on.", held.session)
    by_itself = heard(lab, COPILOT)
    assert [*by_itself[:-1], Item("user", NEXT)] == sent
    assert (written["tier"], written["losses"]) == ("1", [])


# The others are in the matrix.
@pytest.mark.parametrize(("conversation", "target"), [("plain", "claude-code"), ("parallel", "codex")])
def test_it_goes_on_elsewhere_with_everything_it_knew(lab: Lab, conversation: str, target: str) -> None:
    held = HELD[conversation](lab, COPILOT)
    sent, _ = carry_on(lab, held, target)

    assert [*without_thinking(held), Item("user", NEXT)] == sent


@pytest.mark.parametrize(("conversation", "source"), [("plain", "codex"), ("parallel", "claude-code")])
def test_what_was_held_elsewhere_goes_on_in_it(lab: Lab, conversation: str, source: str) -> None:
    held = HELD[conversation](lab, source)
    sent, written = carry_on(lab, held, COPILOT)

    assert [*in_order_of_calls(without_thinking(held)), Item("user", NEXT)] == sent
    assert written["tier"] == "2s"


def without_thinking(held: Held) -> list[Item]:
    return [item for item in held.knew if item.kind != "thinking"]


def test_its_usage_is_what_the_model_says(lab: Lab) -> None:
    held = compacted(lab, COPILOT)
    take_in(lab, COPILOT)

    [stats] = harken(lab, "stats", held.session)
    asked = [request for request in lab.model.requests if request.kind in ("main", "summary")]
    assert stats["requests"] == len(asked)
    assert stats["usage"]["input"] == 100 * len(asked)


def test_a_picture_in_a_prompt_goes_along(lab: Lab) -> None:
    held = pictures(lab, "claude-code")
    sent, written = carry_on(lab, held, COPILOT)
    lost = {loss["what"] for loss in written["losses"]}  # type: ignore[index, attr-defined]

    assert [item for item in held.knew if item.kind != "image"] == [item for item in sent[:-1] if item.kind != "image"]
    assert "picture in a result" in lost


def test_a_sub_agent_has_a_chain_of_its_own(lab: Lab) -> None:
    held = sub_agents(lab, COPILOT)
    take_in(lab, COPILOT)
    rows = harken(lab, "sessions")

    [agent] = [row for row in rows if row["parent"] == held.session]
    [told] = [
        line for line in lab.run("harken", "materialize", agent["session"]).out.splitlines() if "user.message" in line
    ]
    assert "SUB-ONE: look around" in told


def test_a_sub_agent_goes_on_with_all_that_it_said_and_did(lab: Lab) -> None:
    held = sub_agents(lab, COPILOT)
    take_in(lab, COPILOT)
    [agent] = [row for row in harken(lab, "sessions") if row["parent"] == held.session]
    [written] = harken(lab, "resume", agent["session"], "--in", COPILOT, "--home", str(program(COPILOT).home(lab)))

    lab.model.play([Say("Gladly.")], to="SUB-ONE")
    prompt(lab, COPILOT, NEXT, str(written["session"]))
    sent = program(COPILOT).items(lab.model.requests[-1].body)
    assert ("1", []) == (written["tier"], written["losses"])
    assert "SUB-ONE: look around" in sent[0].text
    assert [("assistant", "The report of SUB-ONE."), ("user", NEXT)] == [(item.kind, item.text) for item in sent[-2:]]
    assert {"call", "result"} <= {item.kind for item in sent}


def test_a_continued_session_is_linked_and_counts_once(lab: Lab) -> None:
    held = plain(lab, "claude-code")
    _, written = carry_on(lab, held, COPILOT)
    take_in(lab, COPILOT)
    [row] = [row for row in harken(lab, "sessions") if row["session"] == written["session"]]
    [stats] = harken(lab, "stats", row["session"])

    assert stats["requests"] == 1


def test_it_runs_under_harken_and_its_sub_agent_is_kept_apart(lab: Lab) -> None:
    delegate = program(COPILOT).delegate
    assert delegate is not None
    lab.model.play([Say("Looking.")], to="SUB-ONE")
    lab.model.play(*delegate("SUB-ONE: look around"), [Say("It is done.")])
    done = lab.run("harken", "run", COPILOT, "--", "-p", "Delegate it.", "--allow-all-tools", env=environment(lab))

    assert (0, "It is done.") == (done.code, done.out.strip()), done.err
    rows = harken(lab, "sessions")
    [main] = [row for row in rows if not row["parent"]]
    assert [main["session"]] == [row["parent"] for row in rows if row["parent"]]
    assert (2, "Delegate it.") == (main["messages"] - 1, main["title"])
    figures = [harken(lab, "stats", row["session"])[0] for row in rows]
    assert len(lab.model.requests) == sum(stats["requests"] for stats in figures)
