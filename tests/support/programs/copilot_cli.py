"""Copilot CLI in the laboratory: it speaks Anthropic's Messages to a provider of the user's own."""

from __future__ import annotations

import re
from typing import Any

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Cue, Say
from support.wire import Item, anthropic_items

_DATED = re.compile(r"\A<current_datetime>[^<]*</current_datetime>\n+")
_REMINDER = re.compile(r"\n*<system_reminder>.*?</system_reminder>\s*\Z", re.DOTALL)


def environment(lab: Lab) -> dict[str, str]:
    """What makes it talk to the scripted model and to nobody else."""
    return {
        "COPILOT_HOME": str(lab.home / ".copilot"),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{lab.port}",
        "COPILOT_PROVIDER_TYPE": "anthropic",
        "COPILOT_PROVIDER_API_KEY": "loopback",
        "COPILOT_MODEL": "claude-sonnet-4.5",
        "COPILOT_AUTO_UPDATE": "false",
    }


def ask(lab: Lab, text: str, session: str, *more: str) -> Run:
    """One prompt, in a new session or an old one."""
    resumed = (f"--resume={session}",) if session else ()
    return lab.run("copilot", "-p", text, "--allow-all-tools", *resumed, *more, env=environment(lab))


def session_of(lab: Lab, run: Run) -> str:
    """The session that was written to last."""
    found = (lab.home / ".copilot" / "session-state").glob("*/events.jsonl")
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent.name


def items(body: dict[str, Any]) -> list[Item]:
    """A request without the time that it puts before every prompt."""
    found = anthropic_items(body)
    return [_bare(item) if item.kind == "user" else item for item in found]


def _bare(item: Item) -> Item:
    return Item(item.kind, _REMINDER.sub("", _DATED.sub("", item.text)))


def _delegate(task: str) -> list[Cue]:
    asked = {"description": "look", "name": "reader", "prompt": task, "agent_type": "general-purpose", "mode": "sync"}
    return [[Say("I delegate."), Call("task", asked)]]


def _compact(lab: Lab, session: str) -> None:
    lab.model.play([Say(PROGRAM.summary)])
    done = ask(lab, "/compact", session)
    assert done.code == 0, done.err


PROGRAM = Program(
    name="copilot-cli",
    home=lambda lab: lab.home / ".copilot",
    set_up=lambda lab: None,  # the environment tells it everything
    ask=ask,
    session=session_of,
    items=items,
    shell=lambda command: Call("bash", {"command": command, "description": "run"}),
    delegate=_delegate,
    compact=_compact,
    environment=environment,
)
