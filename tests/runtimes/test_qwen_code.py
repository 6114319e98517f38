"""The real Qwen Code: what it held is imported, goes on in itself and in the others, and theirs in it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from support.conversations import DOT, Held, heard, knew, parallel, plain, prompt, session_of, shell
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.programs import program
from support.scripted_model import Call, Say
from support.wire import Item

pytestmark = pytest.mark.runtimes
QWEN = "qwen-code"
NEXT = "And now?"


def pictures(lab: Lab) -> Held:
    """A tool that answers with a picture, and one in the prompt."""
    path = lab.work / "dot.png"
    path.write_bytes(base64.b64decode(DOT))
    lab.model.play([Say("Let me see it."), Call("read_file", {"file_path": str(path)})], [Say("A dot.")])
    session = session_of(lab, QWEN, prompt(lab, QWEN, "What is in the picture?"))
    return Held(QWEN, session, knew(lab, QWEN, "A dot."))


def sub_agents(lab: Lab) -> Held:
    """A sub-agent that is waited for, and one in the background that reports later."""
    ask = {"description": "look", "subagent_type": "general-purpose"}
    front = Call("agent", ask | {"prompt": "SUB-ONE: look around", "run_in_background": False})
    back = Call("agent", ask | {"prompt": "SUB-TWO: look around", "run_in_background": True})
    calls = [shell(QWEN, "echo inside"), shell(QWEN, "echo beside")]
    lab.model.play([Say("Looking."), *calls], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([shell(QWEN, "sleep 1; echo inside")], [Say("The report of SUB-TWO.")], to="SUB-TWO")
    lab.model.play([Say("I delegate."), front], [back], [Say("One is back.")], [Say("Both are back.")])
    session = session_of(lab, QWEN, prompt(lab, QWEN, "Delegate it twice."))
    return Held(QWEN, session, knew(lab, QWEN, "Both are back."))


def compacted(lab: Lab) -> Held:
    """A conversation that was folded into a summary, and went on."""
    lab.model.input_tokens = 50_000
    lab.model.play([Say("I will look."), shell(QWEN, "echo before the fold")], [Say("It worked.")])
    session = session_of(lab, QWEN, prompt(lab, QWEN, "Please run it."))
    lab.model.play([Say("<state_snapshot>SUMMARY: they ran it.</state_snapshot>")], to="summary")
    prompt(lab, QWEN, "/compress", session)
    lab.model.input_tokens = 100
    lab.model.play([shell(QWEN, "echo after the fold")], [Say("Still here.")])
    prompt(lab, QWEN, "Are you there?", session)
    return Held(QWEN, session, knew(lab, QWEN, "Still here."))


HELD: dict[str, Callable[[Lab], Held]] = {
    "plain": lambda lab: plain(lab, QWEN),
    "parallel": lambda lab: parallel(lab, QWEN),
    "pictures": pictures,
    "sub-agents": sub_agents,
    "compacted": compacted,
}


INTO = {
    "plain": ("claude-code", "codex"),
    "parallel": ("codex",),
    "pictures": ("claude-code",),
    "sub-agents": ("codex",),
    "compacted": ("claude-code",),
}
"""Which other programs go on with each; a run of one takes seconds."""


def carry_on(lab: Lab, ref: str, target: str) -> tuple[list[Item], dict[str, Any]]:
    """Resume in a program, say one thing more, and read what it sent."""
    [written] = harken(lab, "resume", ref, "--in", target, "--home", str(program(target).home(lab)))
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, written["session"])
    return heard(lab, target), written


def told(items: list[Item]) -> list[Item]:
    """Without reasoning, which stays with its model."""
    return [item for item in items if item.kind != "thinking"]


@pytest.mark.parametrize("conversation", HELD)
def test_what_it_held_goes_on_in_every_program_once_and_in_order(lab: Lab, conversation: str) -> None:
    held = HELD[conversation](lab)
    used = usage(lab)
    [row] = [row for row in take_in(lab) if row.get("session") == held.session]
    assert used == counted(lab, held.session)

    sent, written = carry_on(lab, held.session, QWEN)

    assert sent == [*held.knew, Item("user", NEXT)]
    assert ("1", []) == (written["tier"], written["losses"])
    [again] = [line for line in take_in(lab) if line.get("session") == written["session"]]
    assert again["forked_from"] == row["tip"]
    for target in INTO[conversation]:
        sent, written = carry_on(lab, held.session, target)
        assert sent == [*told(held.knew), Item("user", NEXT)]
        lost = {"thinking": 1} if conversation == "plain" else {"error mark": 1} if conversation == "parallel" else {}
        assert lost == {loss["what"]: loss["count"] for loss in written["losses"]}
    if conversation == "sub-agents":
        check_sub_agent(lab, held)


def usage(lab: Lab) -> tuple[int, int]:
    """What the model says that it was asked and that it said, in tokens: of every request."""
    return len(lab.model.requests), sum(10 + len(turn) for turn in lab.model.played)


def counted(lab: Lab, session: str) -> tuple[int, int]:
    [told] = harken(lab, "stats", session)
    return told["requests"], told["usage"]["output"]


@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_what_others_held_goes_on_in_it(lab: Lab, source: str) -> None:
    held = plain(lab, source) if source == "claude-code" else parallel(lab, source)
    take_in(lab)
    program(QWEN).set_up(lab)

    sent, written = carry_on(lab, held.session, QWEN)

    assert sent == [*told(held.knew), Item("user", NEXT)]
    assert "2s" == written["tier"]
    [line] = [line for line in take_in(lab) if line.get("session") == written["session"]]
    assert line["forked_from"]
    assert 1 == counted(lab, written["session"])[0], "what was said elsewhere counts there"


def check_sub_agent(lab: Lab, held: Held) -> None:
    """A sub-agent can be gone on with, and knows only what it was told."""
    known = [*program(QWEN).items(lab.model.asked("SUB-ONE")[-1]), Item("assistant", "The report of SUB-ONE.")]
    rows = [row for row in harken(lab, "sessions", "--all") if row.get("parent") == held.session]
    assert 2 == len(rows)
    lab.fresh_model()
    for row in rows:
        if "SUB-ONE" in row["title"]:
            sent, _ = carry_on(lab, row["session"], QWEN)
            assert sent == [*known, Item("user", NEXT)]
            return
    raise AssertionError("the sub-agent's session was not found")


def test_its_own_fork_is_linked_and_counts_what_it_copied_once(lab: Lab) -> None:
    lab.model.play([Say("Hello.")])
    session = session_of(lab, QWEN, prompt(lab, QWEN, "Say hello."))
    take_in(lab)
    lab.model.play([Say("Forked.")])
    done = lab.run(
        "qwen", "--yolo", "--output-format", "stream-json", "-r", session, "--fork-session", "And in another way?"
    )
    assert 0 == done.code, done.err
    fork = str(done.lines[0]["session_id"])
    [line] = [line for line in take_in(lab) if line.get("session") == fork]

    original = [commit["short"] for commit in harken(lab, "log", session)]
    assert line["forked_from"] == original[0]
    *_, together = harken(lab, "stats")
    assert len(lab.model.requests) == together["total"]["requests"]


def test_a_run_is_kept_and_shown(lab: Lab) -> None:
    program(QWEN).set_up(lab)
    lab.model.play([Say("Looking."), shell(QWEN, "echo seen")], [Say("It is there.")])

    done = lab.run("harken", "run", QWEN, "--", "--yolo", "Is it there?")

    assert (0, "It is there.") == (done.code, done.out.strip()), done.err
    [row] = harken(lab, "sessions")
    assert ("qwen-code", "Is it there?") == (row["runtime"], row["title"])
    assert 2 == counted(lab, row["session"])[0]
    lab.model.play([Say("Still there.")])
    again = lab.run("harken", "run", QWEN, "--from", row["session"], "--", "--yolo", "And now?")
    assert "Still there." == again.out.strip(), again.err
    assert [Item("user", "Is it there?"), Item("assistant", "Looking.")] == heard(lab, QWEN)[:2]
