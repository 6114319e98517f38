"""Qwen Code in the laboratory."""

from __future__ import annotations

import json
from typing import Any

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Cue, Say
from support.wire import Item, chat_items

MODEL = "qwen3-vl-plus"
"""One that it takes to see pictures."""


def _set_up(lab: Lab) -> None:
    auth = {"selectedType": "openai", "apiKey": "loopback", "baseUrl": f"http://127.0.0.1:{lab.port}/v1"}
    settings = {
        "$version": 4,
        "security": {"auth": auth},
        "model": {"name": MODEL},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        # Otherwise a helper goes through every conversation for what to remember, in requests of its own.
        "memory": {"enableManagedAutoMemory": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    folder = lab.home / ".qwen"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings))


def _ask(lab: Lab, text: str, session: str) -> Run:
    return lab.run("qwen", "--yolo", "--output-format", "stream-json", *(("-r", session) if session else ()), text)


PICTURE_ALONE = "[media attached in following user message]"
"""What it says in a result that is nothing but a picture."""


def items(body: dict[str, Any]) -> list[Item]:
    """What a request says, without what it adds."""
    return [Item("result", "", item.id) if item.text == PICTURE_ALONE else item for item in chat_items(body)]


def _delegate(task: str) -> list[Cue]:
    asked = {"description": "look", "subagent_type": "general-purpose", "prompt": task, "run_in_background": False}
    return [[Say("I delegate."), Call("agent", asked)]]


def _compact(lab: Lab, session: str) -> None:
    """It folds nothing that was short: the model says that it was not."""
    _set_up(lab)
    lab.model.input_tokens = 50_000
    lab.model.play([Say("That was a lot.")])
    long = _ask(lab, "Make it long.", session)
    lab.model.play([Say(f"<state_snapshot>{PROGRAM.summary}</state_snapshot>")], to="summary")
    done = _ask(lab, "/compress", session)
    lab.model.input_tokens = 100
    assert (long.code, done.code) == (0, 0), done.err


PROGRAM = Program(
    name="qwen-code",
    home=lambda lab: lab.home / ".qwen",
    set_up=_set_up,
    ask=_ask,
    session=lambda lab, run: str(run.lines[0]["session_id"]),
    items=items,
    shell=lambda command: Call("run_shell_command", {"command": command, "description": "run", "is_background": False}),
    picture=lambda path: Call("read_file", {"file_path": path}),
    delegate=_delegate,
    compact=_compact,
)
