"""The parts of a document as far as they are what they should be: for whoever looks at one that may be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken import clock

from .document import Json
from .models import ReviewerOutput, output_model

UNCOUNTED = ("x_harken_owner", "x_harken_derived")
"""Marks of a call among the main ones that the main agent did not make."""


def objects(value: object) -> Iterator[tuple[int, Json]]:
    """The objects in a list, each with its place; nothing where it is no list."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            if isinstance(item, dict):
                yield place, item


def values(value: object) -> list[Json]:
    """The objects in a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def inner(value: object, key: str) -> Json:
    """The object below a key; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object, key: str) -> str:
    """The text below a key; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def number(value: object) -> float | None:
    """A number that is one: not a flag, and none that a calculation would trip over."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e15:
        return None
    return value


def instant(value: object, key: str) -> int | None:
    """The instant that the text below a key names; None where it names none."""
    found = value.get(key) if isinstance(value, dict) else None
    return clock.parse_instant(found)


def own_calls(data: Json) -> list[Json]:
    """The main agent's calls, without those that are listed only so that links find them."""
    return [call for call in values(data.get("tool_calls")) if not any(map(call.get, UNCOUNTED))]


def agents(data: Json) -> dict[str, Json]:
    """Every agent by its id: the orchestrator, the participants, and whoever else has a sub-session, in this order."""
    collaboration = inner(data, "collaboration")
    named: list[Any] = [inner(collaboration, "orchestrator"), *values(collaboration.get("participants"))]
    named += [inner(sub, "agent") for sub in values(data.get("sub_sessions"))]
    found: dict[str, Json] = {}
    for agent in named:
        if name := text(agent, "agent_id"):
            found.setdefault(name, agent)
    return found


def requested_reviews(data: Json) -> set[str]:
    """The ids of reviews that a message asks for."""
    asked = (one for one in values(data.get("messages")) if one.get("message_type") == "review_request")
    return {name for one in asked if (name := text(inner(one, "payload"), "review_id"))}


def is_review(sub: Json, requested: set[str]) -> bool:
    """Whether a sub-session is a review: by what it hands in, by its task, or by what its agent is called."""
    agent, output = inner(sub, "agent"), inner(sub, "output")
    if output and output_model(output, text(agent, "agent_type")) is ReviewerOutput:
        return True
    if text(inner(sub, "task"), "task_id") in requested:
        return True
    names = (text(agent, "agent_type"), text(agent, "agent_id"), text(sub, "x_harken_name"))
    return any("review" in name.lower() for name in names)
