"""OpenCode in the laboratory."""

from __future__ import annotations

import json
import sys
from typing import Any

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Cue, Say
from support.wire import anthropic_items

MODEL = {
    "name": "Scripted",
    "reasoning": True,
    "tool_call": True,
    "attachment": True,
    "modalities": {"input": ["text", "image"], "output": ["text"]},
    "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
    "limit": {"context": 200_000, "output": 8000},
}


def settings(lab: Lab) -> dict[str, Any]:
    """What its settings say: the scripted model, and no traffic but the conversation's own."""
    options = {"baseURL": f"http://127.0.0.1:{lab.port}/v1", "apiKey": "loopback"}
    provider = {"npm": "@ai-sdk/anthropic", "name": "Lab", "options": options, "models": {"scripted": MODEL}}
    chosen = {"model": "lab/scripted", "small_model": "lab/scripted"}
    return chosen | {"autoupdate": False, "share": "disabled", "provider": {"lab": provider}}


def set_up(lab: Lab) -> None:
    """Its settings name the model's port."""
    write_settings(lab, "opencode")


def write_settings(lab: Lab, program: str) -> None:
    """The settings of a program with this command line."""
    path = lab.home / ".config" / program / f"{program}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings(lab)))


def ask(lab: Lab, text: str, session: str) -> Run:
    """One prompt, everything it does on stdout as JSON lines. What is typed on its command line it puts in quotation
    marks, so the prompt comes from stdin."""
    going_on = ("-s", session) if session else ()
    return lab.run("opencode", "run", "--auto", "--format", "json", *going_on, stdin=text)


SERVE = r"""
import json, subprocess, sys, time, urllib.request
server = subprocess.Popen(["opencode", "serve", "--port", "4096"], stdout=subprocess.PIPE, text=True)
try:
    while "listening" not in server.stdout.readline():
        pass
    body = json.dumps({"providerID": "lab", "modelID": "scripted"}).encode()
    asked = urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})
    urllib.request.urlopen(asked, timeout=60).read()
finally:
    server.kill()
    server.wait()
"""


def compact(lab: Lab, session: str) -> None:
    """Fold the conversation into a summary, as `/compact` does on the screen."""
    set_up(lab)
    lab.model.play([Say(PROGRAM.summary)], to="summary")
    done = lab.run(sys.executable, "-c", SERVE, f"http://127.0.0.1:4096/session/{session}/summarize")
    assert done.code == 0, done.err


def _delegate(task: str) -> list[Cue]:
    asked = {"description": "look", "prompt": task, "subagent_type": "general"}
    return [[Say("I delegate."), Call("task", asked)]]


PROGRAM = Program(
    name="opencode",
    home=lambda lab: lab.home / ".local" / "share" / "opencode",
    set_up=set_up,
    ask=ask,
    session=lambda lab, run: str(run.lines[0]["sessionID"]),
    items=anthropic_items,
    shell=lambda command: Call("bash", {"command": command, "description": "run"}),
    picture=lambda path: Call("read", {"filePath": path}),
    delegate=_delegate,
    compact=compact,
)
