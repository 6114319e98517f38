"""Whose place a record takes that stands where a user's message does: a person's, a tool's, or that of whoever put it
there. A record may say several things, and counts once."""

from __future__ import annotations

import msgspec

from .base import clean
from .messages import Prompt
from .tools import ToolResult

ATTACHED = "attachment:"
"""How the origins of texts begin that came along with a prompt instead of standing in its place."""
TOOL_RESULT = "tool_result"
HUMAN = ""


class RecordSoFar(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """What has been counted of a record that comes in pieces."""

    places: tuple[str, ...] = ()
    """As what it counts."""
    replaced: bool = False
    """Whether it told of a compaction: what follows in it was said before."""


NOTHING = RecordSoFar()


def place_of(event: Prompt | ToolResult) -> str | None:
    """Whose place the record takes as far as this event tells; None for what merely came along."""
    if isinstance(event, ToolResult):
        return TOOL_RESULT
    if event.source != "injected":  # what repeats another record's words was handed on by an agent
        return HUMAN if event.substance is None else "agent"
    return None if event.origin.startswith(ATTACHED) else clean(event.origin) or "injected"


def counted_as(places: list[str]) -> tuple[str, ...]:
    """As what a record counts whose events take these places: a result makes it a tool's, a person's words a person's,
    and it may be both. Else it is what it says first."""
    return tuple(one for one in (TOOL_RESULT, HUMAN) if one in places) or tuple(places[:1])
