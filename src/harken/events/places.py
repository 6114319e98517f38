"""Whose place a record takes that stands where a user's message does: a person's, a tool's, or that of whoever put it
there. A record may say several things, and counts once."""

from __future__ import annotations

from .messages import Prompt
from .tools import ToolResult

ATTACHED = "attachment:"
"""How the origins of texts begin that came along with a prompt instead of standing in its place."""
TOOL_RESULT = "tool_result"
HUMAN = ""


def place_of(event: Prompt | ToolResult) -> str | None:
    """Whose place the record takes as far as this event tells; None for what merely came along."""
    if isinstance(event, ToolResult):
        return TOOL_RESULT
    if event.source != "injected":  # what repeats another record's words was handed on by an agent
        return HUMAN if event.substance is None else "agent"
    return None if event.origin.startswith(ATTACHED) else event.origin or "injected"


def counted_as(places: list[str]) -> list[str]:
    """As what a record counts whose events take these places: a result makes it a tool's, a person's words a person's,
    and it may be both. Else it is what it says first."""
    return [one for one in (TOOL_RESULT, HUMAN) if one in places] or places[:1]
