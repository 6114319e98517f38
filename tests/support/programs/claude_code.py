"""Claude Code in the laboratory."""

from __future__ import annotations

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Cue, Say
from support.wire import anthropic_items


def _ask(lab: Lab, text: str, session: str) -> Run:
    return lab.claude(text, *(("--resume", session) if session else ()))


def _delegate(task: str) -> list[Cue]:
    asked = {"description": "look", "subagent_type": "general-purpose", "prompt": task, "run_in_background": False}
    return [[Say("I delegate."), Call("Agent", asked)]]


def _compact(lab: Lab, session: str) -> None:
    lab.model.play([Say(f"<summary>{PROGRAM.summary}</summary>")], to="summary")
    done = _ask(lab, "/compact", session)
    assert done.code == 0, done.err


PROGRAM = Program(
    name="claude-code",
    home=lambda lab: lab.home / ".claude",
    set_up=lambda lab: None,  # the environment tells it everything
    ask=_ask,
    session=lambda lab, run: str(run.lines[0]["session_id"]),
    items=anthropic_items,
    shell=lambda command: Call("Bash", {"command": command, "description": "run"}),
    picture=lambda path: Call("Read", {"file_path": path}),
    delegate=_delegate,
    compact=_compact,
)
