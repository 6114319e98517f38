"""A small stage for agents: a session, a script, and a word to the root."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from harken import Session, load_session
from harken.agents import Agent, Retries, ScriptedModel


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A scripted line that uses a tool."""
    return {"call": {"tool": tool, "arguments": arguments}}


def open_stage(path: Path, parts: dict[str, Any], **options: Any) -> tuple[Agent, Session]:
    """A session whose agents play these parts; `ack` is `os`, since no test here cuts the power."""
    model = ScriptedModel({"agents": parts}, name="scripted:stage")
    retries = options.pop("retries", Retries(attempts=3, first=0))
    return load_session(path, language_model=model, retries=retries, ack="os", **options)


def say(agent: Agent, text: str) -> str:
    """Tell an agent something and get its answer."""
    agent.harken(text)
    return asyncio.run(agent.response())


def lines(session: Session, **wanted: Any) -> list[dict[str, Any]]:
    """The lines of the log that have these values."""
    return [data for data in session.records() if all(data.get(key) == value for key, value in wanted.items())]


def contents(agent: Agent, role: str) -> list[str]:
    """What an agent's transcript holds under a role."""
    return [entry.get("content", "") for entry in agent.transcript if entry["role"] == role]
