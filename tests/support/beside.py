"""A scripted session whose calls run side by side, for tests that kill it; also a worker (`python beside.py FOLDER`).

Every tool leaves a line in `effects` when it begins and when it ends, so that a test can count how often it ran.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from harken import SessionViewer, load_session
from harken.agents import Agent, ScriptedModel, make_tool

PAUSE = 0.02


def _calls(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"call": [{"tool": tool, "arguments": arguments} for tool, arguments in calls]}


SCRIPT: dict[str, Any] = {
    "agents": {
        "root": [
            _calls(
                ("task", {"name": "Ann", "prompt": "Look around."}),
                ("look", {"what": "door"}),
                ("pay", {"whom": "baker"}),
                ("task", {"name": "Bob", "system_prompt": "You are Bob.", "prompt": "Look around."}),
            ),
            _calls(
                ("pay", {"whom": "miller"}),
                ("look", {"what": "window"}),
                ("discuss", {"prompt": "Well?", "speakers": ["Ann"], "listeners": []}),
                ("discuss", {"prompt": "Well?", "speakers": ["Bob"], "listeners": []}),
            ),
            "Everything is done.",
        ],
        "Ann": [
            _calls(("look", {"what": "roof"}), ("pay", {"whom": "roofer"})),
            {"say": "The roof is fine.", "delay": PAUSE},
            {"say": "I have nothing to add.", "delay": PAUSE},
        ],
        "Bob": [
            _calls(("pay", {"whom": "gardener"}), ("look", {"what": "garden"})),
            {"say": "The garden is wild.", "delay": PAUSE},
            {"say": "Nor have I.", "delay": 2 * PAUSE},
        ],
    }
}
SAID = {
    "root": ["Everything is done."],
    "Ann": ["The roof is fine.", "I have nothing to add."],
    "Bob": ["The garden is wild.", "Nor have I."],
}


def tools(folder: Path) -> list[Any]:
    """One that may be redone and one that may not."""

    def leave(line: str) -> None:
        with (folder / "effects").open("a") as file:
            file.write(line + "\n")
            file.flush()

    def look(what: str) -> str:
        """Look at something."""
        leave(f"look {what}")
        time.sleep(PAUSE)
        return f"There is a {what}."

    async def pay(whom: str) -> str:
        """Pay somebody."""
        leave(f"pay {whom}")
        await asyncio.sleep(PAUSE)
        return f"The {whom} is paid."

    return [make_tool(look, redo=True), pay]


def play(folder: Path, **options: Any) -> Agent:
    """Do whatever is left to do."""
    model = ScriptedModel(SCRIPT, name="scripted:beside")
    given = tools(folder)
    root, session = load_session(folder / "log.jsonl", name="root", language_model=model, tools=given, **options)
    with session:
        if not root.transcript:
            root.harken("Begin.")
        asyncio.run(root.resume())
        return root


def said(folder: Path) -> dict[str, list[str]]:
    """What each agent has said, in its own order."""
    viewer = SessionViewer(folder / "log.jsonl")
    return {
        name: [
            entry["content"]
            for entry in viewer.get_transcript(agent_id)
            if entry["role"] == "assistant" and not entry.get("tool_calls")
        ]
        for agent_id, name in viewer.list_agents().items()
    }


def effects(folder: Path) -> list[str]:
    """What the tools have done, whole lines only."""
    path = folder / "effects"
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    print("begun", flush=True)
    play(Path(sys.argv[1]))
    print("done", flush=True)
    os._exit(0)
