"""A message of a document before it has its number."""

from __future__ import annotations

import msgspec

from harken.events import Event
from harken.events.base import clean
from harken.formats.std.document import Json


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
    """The payload without the fields of which nothing is known; texts as a document can hold them."""
    told = {key: clean(value) if isinstance(value, str) else value for key, value in payload.items()}
    return {key: value for key, value in told.items() if value != ""}
