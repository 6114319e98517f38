"""Conversations held by the real programs in the laboratory, each with what its agent knew at the end.

What it knew is not taken from any file: it is the program's own last request, and the scripted answer to it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.lab import Lab, Run
from support.scripted_model import Call, Say, Think
from support.wire import Item, anthropic_items, responses_items

ITEMS: dict[str, Callable[[dict[str, Any]], list[Item]]] = {"claude-code": anthropic_items, "codex": responses_items}


@dataclass(frozen=True)
class Held:
    """A conversation: its session, and what its agent knew when it ended."""

    runtime: str
    session: str
    knew: list[Item]


def prompt(lab: Lab, runtime: str, text: str, session: str = "") -> Run:
    """Say something to a program, in a new session or an old one; it must end well."""
    if runtime == "claude-code":
        done = lab.claude(text, *(("--resume", session) if session else ()))
    else:
        done = lab.codex(*(("resume", session) if session else ()), text)
    assert done.code == 0, done.err + done.out[-2000:]
    return done


def session_of(runtime: str, run: Run) -> str:
    """The session that a run was part of."""
    if runtime == "claude-code":
        return str(run.lines[0]["session_id"])
    return str(run.lines[0]["thread_id"])


def heard(lab: Lab, runtime: str) -> list[Item]:
    """What the program said to its model last."""
    return ITEMS[runtime](lab.model.asked()[-1])


def knew(lab: Lab, runtime: str, *answers: str) -> list[Item]:
    """The last request, and what was answered to it."""
    return heard(lab, runtime) + [Item("assistant", text) for text in answers]


def shell(runtime: str, command: str) -> Call:
    """A call of the program's own shell."""
    if runtime == "claude-code":
        return Call("Bash", {"command": command, "description": "run"})
    return Call("exec_command", {"cmd": command})


def plain(lab: Lab, runtime: str) -> Held:
    """Two prompts, thinking, a tool."""
    call = shell(runtime, "echo the first result")
    lab.model.play([Think("let me see"), Say("I will look."), call], [Say("It worked.")])
    session = session_of(runtime, prompt(lab, runtime, "Please run it."))
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
    session = session_of(runtime, prompt(lab, runtime, "Do it in parallel."))
    return Held(runtime, session, knew(lab, runtime, "Five results."))


def sub_agents(lab: Lab, runtime: str) -> Held:
    """A sub-agent that is waited for, and (in Claude Code) one in the background that reports later."""
    lab.model.play([Say("Looking."), shell(runtime, "echo inside")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    if runtime == "codex":
        spawn = Call("spawn_agent", {"message": "SUB-ONE: look around"}, namespace="multi_agent_v1")
        lab.model.play([Say("I delegate."), spawn], _wait_for_agent, [Say("It is done.")])
        session = session_of(runtime, prompt(lab, runtime, "Delegate it."))
        return Held(runtime, session, knew(lab, runtime, "It is done."))
    ask = {"description": "look", "subagent_type": "general-purpose"}
    front = Call("Agent", ask | {"prompt": "SUB-ONE: look around", "run_in_background": False})
    back = Call("Agent", ask | {"prompt": "SUB-TWO: look around", "run_in_background": True})
    # Slow enough that its report comes in a turn of its own.
    lab.model.play([shell(runtime, "sleep 1; echo inside")], [Say("The report of SUB-TWO.")], to="SUB-TWO")
    lab.model.play([Say("I delegate."), front], [back], [Say("One is back.")], [Say("Both are back.")])
    session = session_of(runtime, prompt(lab, runtime, "Delegate it twice."))
    return Held(runtime, session, knew(lab, runtime, "Both are back."))


def _wait_for_agent(body: dict[str, Any]) -> list[Call]:
    """Codex chooses the agent's id; the call that waits has to name it."""
    outputs = [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    agent = json.loads(outputs[-1])["agent_id"]
    return [Call("wait_agent", {"targets": [agent], "timeout_ms": 20000}, namespace="multi_agent_v1")]


def pictures(lab: Lab, runtime: str) -> Held:
    """A tool that answers with an image."""
    path = lab.work / "dot.png"
    path.write_bytes(base64.b64decode(DOT))
    if runtime == "claude-code":
        look = Call("Read", {"file_path": str(path)})
    else:
        look = Call("view_image", {"path": str(path)})
    lab.model.play([Say("Let me see it."), look], [Say("A dot.")])
    session = session_of(runtime, prompt(lab, runtime, "What is in the picture?"))
    return Held(runtime, session, knew(lab, runtime, "A dot."))


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGM4ISeHFTEMLQkAkL9BAbKfPiIAAAAASUVORK5CYII="
"""A red square of 8 by 8 points."""


def compacted(lab: Lab, runtime: str) -> Held:
    """A conversation that was folded into a summary, and went on. Claude Code preserves the last answer."""
    session = plain(lab, runtime).session
    if runtime == "claude-code":
        lab.model.play([Say("<summary>SUMMARY: they ran it.</summary>")], to="summary")
        prompt(lab, runtime, "/compact", session)
        lab.model.play([shell(runtime, "echo after the fold")], [Say("Still here.")])
        prompt(lab, runtime, "Are you there?", session)
    else:
        lab.model.input_tokens = 900_000
        lab.model.play([Say("That was a lot.")])
        _small_window(lab, session, "Make it long.")
        lab.model.input_tokens = 100
        lab.model.play([Say("SUMMARY: they ran it.")], to="summary")
        lab.model.play([shell(runtime, "echo after the fold")], [Say("Still here.")])
        _small_window(lab, session, "Are you there?")
    return Held(runtime, session, knew(lab, runtime, "Still here."))


def _small_window(lab: Lab, session: str, text: str) -> None:
    window = ("-c", "model_context_window=10000", "-c", "model_auto_compact_token_limit=9000")
    done = lab.codex(*window, "resume", session, text)
    assert done.code == 0, done.err


HELD: dict[str, Callable[[Lab, str], Held]] = {
    "plain": plain,
    "parallel": parallel,
    "sub-agents": sub_agents,
    "pictures": pictures,
    "compacted": compacted,
}
