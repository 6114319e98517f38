"""A debate of many agents: one discussion, in which each hears everything that the others say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from harken import Session, load_session
from harken.agents import Agent, Model, Reply, Request, tool_call

WORDS = ["the", "bridge", "holds", "because", "what", "carries", "it", "was", "counted", "twice", "by", "others"]


class Debater:
    """Root makes the others and lets them debate; what each says follows from who it is and how often it has spoken.
    It remembers nothing, so an interrupted debate goes on with the same words."""

    name = "debater"

    def __init__(self, speakers: int, rounds: int, **how: Any) -> None:
        self.names = [f"Speaker {number:02}" for number in range(1, speakers + 1)]
        self.rounds, self.how = rounds, how

    async def complete(self, request: Request) -> Reply:
        """The next words, or what root does next."""
        if len(request.path) > 1:
            start = (request.turn * 7 + self.names.index(request.name)) % len(WORDS)
            said = " ".join(WORDS[start:] + WORDS[:start])
            return Reply(content=f"{request.name}, point {request.turn + 1}: {said}.")
        if request.turn == 0:
            made = [tool_call(f"make_{name}", "task", f'{{"name": "{name}"}}') for name in self.names]
            return Reply(tool_calls=tuple(made))
        if request.turn == 1:
            arguments = {"prompt": "Does the bridge hold?", "rounds": self.rounds, **self.how}
            return Reply(tool_calls=(tool_call("debate", "discuss", json.dumps(arguments)),))
        return Reply(content="It is over.")


def open_debate(path: Path, model: Model | str) -> tuple[Agent, Session]:
    """The root of a debate; `ack` is `os`, since no power is cut here."""
    return load_session(path, language_model=model, ack="os")


def hold(path: Path, model: Model | str) -> Path:
    """Hold a debate from its beginning to its end."""
    root, session = open_debate(path, model)
    with session:
        root.harken("Let them debate.")
        assert asyncio.run(root.response()) == "It is over."
    return path


def same_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log without what differs from one time to the next: when it was, and what the model is called."""
    changing = {"time", "timestamp", "language_model"}
    with Session.load(path, readonly=True) as session:
        return [{key: value for key, value in data.items() if key not in changing} for data in session.records()]
