"""Conversations held by the real programs in the laboratory, each with what its agent knew at the end.

What it knew is not taken from any file: it is the program's own last request, and the scripted answer to it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from support.lab import Lab, Run
from support.programs import program
from support.scripted_model import Call, Say, Think
from support.wire import Item


@dataclass(frozen=True)
class Held:
    """A conversation: its session, and what its agent knew when it ended."""

    runtime: str
    session: str
    knew: list[Item]


def prompt(lab: Lab, runtime: str, text: str, session: str = "") -> Run:
    """Say something to a program, in a new session or an old one; it must end well."""
    known = program(runtime)
    known.set_up(lab)
    done = known.ask(lab, text, session)
    assert done.code == 0, done.err + done.out[-2000:]
    return done


def session_of(lab: Lab, runtime: str, run: Run) -> str:
    """The session that a run was part of."""
    return program(runtime).session(lab, run)


def heard(lab: Lab, runtime: str) -> list[Item]:
    """What the program said to its model last."""
    return program(runtime).items(lab.model.asked()[-1])


def knew(lab: Lab, runtime: str, *answers: str) -> list[Item]:
    """The last request, and what was answered to it."""
    return heard(lab, runtime) + [Item("assistant", text) for text in answers]


def shell(runtime: str, command: str) -> Call:
    """A call of the program's own shell."""
    return program(runtime).shell(command)


def plain(lab: Lab, runtime: str) -> Held:
    """Two prompts, thinking, a tool."""
    call = shell(runtime, "echo the first result")
    lab.model.play([Think("let me see"), Say("I will look."), call], [Say("It worked.")])
    session = session_of(lab, runtime, prompt(lab, runtime, "Please run it."))
    lab.model.play([Say("You are welcome.")])
    prompt(lab, runtime, "Thank you — très bien ☕!", session)
    return Held(runtime, session, knew(lab, runtime, "You are welcome."))


def parallel(lab: Lab, runtime: str) -> Held:
    """Three calls at once, the first the slowest; a second round without words; a failure."""
    calls = [
        shell(runtime, "sleep 0.3; echo one"),
        shell(runtime, "echo two"),
        shell(runtime, "echo three >&2; exit 3"),
    ]
    again = [shell(runtime, "echo four"), shell(runtime, "echo five")]
    lab.model.play([Say("All at once."), *calls], again, [Say("Five results.")])
    session = session_of(lab, runtime, prompt(lab, runtime, "Do it in parallel."))
    return Held(runtime, session, knew(lab, runtime, "Five results."))


def sub_agents(lab: Lab, runtime: str) -> Held:
    """A sub-agent that is waited for, and (in Claude Code) one in the background that reports later."""
    delegate = program(runtime).delegate
    assert delegate is not None
    lab.model.play([Say("Looking."), shell(runtime, "echo inside")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play(*delegate("SUB-ONE: look around"))
    if runtime != "claude-code":
        lab.model.play([Say("It is done.")])
        session = session_of(lab, runtime, prompt(lab, runtime, "Delegate it."))
        return Held(runtime, session, knew(lab, runtime, "It is done."))
    ask = {"description": "look", "subagent_type": "general-purpose"}
    back = Call("Agent", ask | {"prompt": "SUB-TWO: look around", "run_in_background": True})
    # Slow enough that its report comes in a turn of its own.
    lab.model.play([shell(runtime, "sleep 1; echo inside")], [Say("The report of SUB-TWO.")], to="SUB-TWO")
    lab.model.play([back], [Say("One is back.")], [Say("Both are back.")])
    session = session_of(lab, runtime, prompt(lab, runtime, "Delegate it twice."))
    return Held(runtime, session, knew(lab, runtime, "Both are back."))


def pictures(lab: Lab, runtime: str) -> Held:
    """A tool that answers with an image."""
    path = lab.work / "dot.png"
    path.write_bytes(base64.b64decode(DOT))
    look = program(runtime).picture
    assert look is not None
    lab.model.play([Say("Let me see it."), look(str(path))], [Say("A dot.")])
    session = session_of(lab, runtime, prompt(lab, runtime, "What is in the picture?"))
    return Held(runtime, session, knew(lab, runtime, "A dot."))


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGM4ISeHFTEMLQkAkL9BAbKfPiIAAAAASUVORK5CYII="
"""A red square of 8 by 8 points."""


def compacted(lab: Lab, runtime: str) -> Held:
    """A conversation that was folded into a summary, and went on. Claude Code preserves the last answer."""
    session = plain(lab, runtime).session
    compact = program(runtime).compact
    assert compact is not None
    compact(lab, session)
    lab.model.play([shell(runtime, "echo after the fold")], [Say("Still here.")])
    prompt(lab, runtime, "Are you there?", session)
    return Held(runtime, session, knew(lab, runtime, "Still here."))


HELD: dict[str, Callable[[Lab, str], Held]] = {
    "plain": plain,
    "parallel": parallel,
    "sub-agents": sub_agents,
    "pictures": pictures,
    "compacted": compacted,
}
