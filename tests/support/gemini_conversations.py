"""Conversations that the real Gemini CLI holds in the laboratory, where they are not like everybody's."""

from __future__ import annotations

import base64
from collections.abc import Callable

from support.conversations import DOT, Held, knew, parallel, plain, prompt, session_of, shell
from support.lab import Lab
from support.programs import gemini_cli
from support.scripted_model import Call, Say

NAME = "gemini-cli"


def delegated(lab: Lab) -> Held:
    """A sub-agent that is waited for."""
    report = Call("complete_task", {"result": {"response": "The report of SUB-ONE."}})
    lab.model.play([Say("Looking."), shell(NAME, "echo inside")], [Say("Reporting."), report], to="SUB-ONE")
    ask = Call("invoke_agent", {"agent_name": "generalist", "prompt": "SUB-ONE: look around"})
    lab.model.play([Say("I delegate."), ask], [Say("It is done.")])
    session = session_of(lab, NAME, prompt(lab, NAME, "Delegate it."))
    return Held(NAME, session, knew(lab, NAME, "It is done."))


def pictured(lab: Lab) -> Held:
    """A picture that a tool answers with, and one that came along with a prompt."""
    path = lab.work / "dot.png"
    path.write_bytes(base64.b64decode(DOT))
    lab.model.play([Say("Let me see it."), Call("read_file", {"file_path": str(path)})], [Say("A dot.")])
    session = session_of(lab, NAME, prompt(lab, NAME, "What is in the picture?"))
    lab.model.play([Say("The same.")])
    prompt(lab, NAME, "Look at @dot.png again.", session)
    return Held(NAME, session, knew(lab, NAME, "The same."))


def folded(lab: Lab) -> Held:
    """A conversation that was folded into a summary, and went on."""
    session = plain(lab, NAME).session
    gemini_cli.fold(lab, session, "Are you there?", "Still here.")
    return Held(NAME, session, knew(lab, NAME, "Still here."))


HELD: dict[str, Callable[[Lab], Held]] = {
    "plain": lambda lab: plain(lab, NAME),
    "parallel": lambda lab: parallel(lab, NAME),
    "pictures": pictured,
    "sub-agents": delegated,
    "compacted": folded,
}
