"""What a record is to the views: whose it is, what kind of thing it says, and the line it stands on."""

from __future__ import annotations

import msgspec

from harken.events import Event

ParentLink = str | list[str]
RecordEvents = tuple[Event, ...]
"""The events of one record."""

SAID = "said"
HEARD = "heard"
ACTION = "action"
RECEIVED = "received"
SYSTEM = "system"
THOUGHT = "thought"
TEXT = "text"
CREATED = "created"
TERMINATED = "terminated"
EDITED = "edited"
OTHER = "other"

PERSON = "user"
"""What one dialect calls the person at the keyboard where others name an agent."""


class ViewedAgent(msgspec.Struct, kw_only=True):
    """What the session says of one agent; an agent that is used but never created has only its id."""

    agent_id: str
    name: str = ""
    role: str = ""
    parent: str | None = None
    language_model: str = ""
    created: int | None = None
    terminated: int | None = None
    keeps_verdicts: bool = False
    """A hook of Harken's own: whatever it refuses names the verdict as its cause."""


def close_circle(path: list[int], first: int, root: list[int], hops: list[int]) -> tuple[int, int]:
    """Settle a circle (or the one-member circle of new content) and say where the way into it arrives."""
    circle = path[first:]
    turn = circle.index(min(circle))
    for distance, here in enumerate(reversed(circle[turn + 1 :] + circle[: turn + 1])):
        root[here], hops[here] = circle[turn], distance
    return circle[turn], hops[circle[0]]
