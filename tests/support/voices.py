"""Native agents that a stand-in for Claude Code speaks for."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from harken import Repo, load_session
from harken.agents import Agent
from harken.repo.live import KeptSession
from harken.repo.voices import RuntimeUse
from support.fake_runtime import NOTES, STEPS, install
from support.stream_lines import init, result, says


class Desk:
    """A store, and a session whose root has a stand-in for Claude Code as its model."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo, self.folder = repo, folder
        self.log = folder / "log.jsonl"

    def steps(self, *steps: dict[str, Any]) -> None:
        (self.folder / "steps.json").write_text(json.dumps(steps))

    def answers(self, text: str) -> None:
        self.steps({"stdin": True}, init(), says(text), result(text))

    @property
    def notes(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "notes.json").read_text())
        return found

    def use(self, **more: Any) -> RuntimeUse:
        environ = {
            "PATH": f"{install(self.folder / 'bin')}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            STEPS: str(self.folder / "steps.json"),
            NOTES: str(self.folder / "notes.json"),
        }
        return RuntimeUse(environ=environ, cwd=self.folder, **more)

    def open(self, **settings: Any) -> tuple[Agent, KeptSession]:
        session = self.repo.session(self.log, ack="os", **{"runtimes": self.use(), **settings})
        return load_session(session, language_model="runtime:claude-code", system_prompt="You are Jill.")[0], session

    def turns(self, session: KeptSession) -> list[dict[str, Any]]:
        return [data["metadata"] for data in session.records() if data.get("subtype") == "runtime_turn"]


def say(agent: Agent, text: str) -> str:
    agent.harken(text)
    return str(asyncio.run(agent.response()))
