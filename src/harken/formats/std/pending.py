"""A message of a document before it has its number."""

from __future__ import annotations

import msgspec

from harken.events import Event

from .document import Json


class PendingMessage(msgspec.Struct, kw_only=True, eq=False):
    """What one agent told another."""

    place: int
    """Where in the order of the log."""
    event: Event
    """What its time is taken from."""
    sender: str
    hearer: str
    kind: str
    payload: Json
    correlation: str = ""
    """The task that it is about."""
    answers: PendingMessage | None = None
    derived: tuple[str, ...] = ()
    """Fields that the session does not say."""
    is_unheard: bool = False
    """Whether it was said, but the session does not bring it to the agent it is for."""


def without_empty(payload: Json) -> Json:
    """The payload without the fields of which nothing is known."""
    return {key: value for key, value in payload.items() if value not in ("", None)}
