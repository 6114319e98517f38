"""pi in the laboratory: a provider of its own in its settings, which speaks the Messages API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Say
from support.wire import Item, anthropic_items

COST = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
"""Dollars for a million tokens."""


def home(lab: Lab) -> Path:
    """pi's own folder."""
    return lab.home / ".pi" / "agent"


def set_up(lab: Lab) -> None:
    """Its models and which of them it asks; the port changes with every new model."""
    model = {"id": "test-model", "name": "Test", "reasoning": True, "input": ["text", "image"], "cost": COST}
    provider = {"baseUrl": f"http://127.0.0.1:{lab.port}", "api": "anthropic-messages", "apiKey": "loopback"}
    models = [model | {"contextWindow": 128000, "maxTokens": 8000}]
    home(lab).mkdir(parents=True, exist_ok=True)
    (home(lab) / "models.json").write_text(json.dumps({"providers": {"loop": provider | {"models": models}}}))
    settings = {"defaultProvider": "loop", "defaultModel": "test-model", "defaultThinkingLevel": "high"}
    (home(lab) / "settings.json").write_text(json.dumps(settings | {"compaction": {"keepRecentTokens": 1}}))


def pi(lab: Lab, *arguments: str, **how: Any) -> Run:
    """pi without a screen, everything it does on stdout as JSON lines."""
    return lab.run("pi", "--mode", "json", *arguments, env={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, **how)


def _ask(lab: Lab, text: str, session: str) -> Run:
    return pi(lab, *(("--session", session) if session else ()), text)


def sessions(lab: Lab) -> list[Path]:
    """Its session files, oldest first."""
    return sorted(home(lab).glob("sessions/*/*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


PICTURE_ALONE = "(see attached image)"
"""What pi says in a result that is nothing but a picture."""


def items(body: dict[str, Any]) -> list[Item]:
    """What a request says, without what pi adds."""
    return [Item("result", "", item.id) if item.text == PICTURE_ALONE else item for item in anthropic_items(body)]


def compact(lab: Lab, session: str) -> None:
    """Have a conversation folded: the model says that it was very long."""
    lab.model.input_tokens = 900_000
    lab.model.play([Say("That was a lot.")])
    lab.model.play([Say(PROGRAM.summary)], to="summary")
    set_up(lab)
    done = _ask(lab, "Make it long.", session)
    lab.model.input_tokens = 100
    assert done.code == 0, done.err


PROGRAM = Program(
    name="pi",
    home=home,
    set_up=set_up,
    ask=_ask,
    session=lambda lab, run: str(run.lines[0]["id"]),
    items=items,
    shell=lambda command: Call("bash", {"command": command}),
    picture=lambda path: Call("read", {"path": path}),
    compact=compact,
)
