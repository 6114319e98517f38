"""What is recorded, in the words that a log has for it."""

from __future__ import annotations

import json
from typing import Any

from harken.formats.std.document import Json
from harken.formats.std.drawing import said_in
from harken.formats.std.parts import inner, text, with_error

from .acts import MessageSent


def summary_of(output: object) -> str:
    """What a sub-agent handed in, in words."""
    if not isinstance(output, dict):
        return ""
    said = output.get("summary")
    return said if isinstance(said, str) else json.dumps(output, ensure_ascii=False)


def answer_text(output: Json) -> str:
    """What a tool answered, in words."""
    result, error = output.get("result"), output.get("error")
    told = inner(output, "result").get("display")
    if not isinstance(told, str):
        told = json.dumps(result, ensure_ascii=False) if result else ""
    return with_error(told, error) if isinstance(error, str) else told


def message_text(message_type: str, payload: Any) -> str:
    """A message in words: its type, and what its payload says."""
    said = said_in(payload) or (json.dumps(payload, ensure_ascii=False) if payload else "")
    return f"{message_type}: {said}" if said else message_type


def is_told(message: MessageSent, sub: Json) -> bool:
    """Whether a message says no more than that a sub-session begins or ends: the log has that already, and nobody hears
    it twice."""
    agent, said = text(inner(sub, "agent"), "agent_id"), said_in(message.payload)
    if message.message_type in ("task_assignment", "review_request"):
        return agent == message.to_agent and said in ("", text(inner(sub, "task"), "description"))
    if message.message_type in ("task_completion", "review_result"):
        output = inner(sub, "output")
        known = ("", "completed", "failed", text(output, "summary"), text(output, "verdict"))
        return agent == message.from_agent and "completed_at" in sub and said in known
    return False
