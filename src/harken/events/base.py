"""The envelope every event carries.

An event is a frozen value: it knows no clock, looks nothing up and does nothing. What several records have in
common rides here; what a kind says for itself is in the file of its family.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import msgspec

from harken.errors import BadRequest

Cause = str | tuple[str, ...] | None


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that happened, as one agent's record tells it."""

    kind: ClassVar[str] = ""

    message_id: str = ""
    """The record it came from, unique per record; empty where the source has no ids."""
    agent_id: str = ""
    """Whose record it is; empty where there is only one agent."""
    time: int | None = None
    """The instant in microseconds (see `harken.clock`), or None where nobody wrote it down."""
    substance: str | None = None
    """The message whose content this is again, perhaps in another wording."""
    cause: Cause = None
    """The message, or messages, that triggered this new content."""
    index: int = 0
    """Its place among the events of one record that says several things."""
    api_id: str = ""
    """The provider's own id of the message, which several records may share."""

    def __post_init__(self) -> None:
        if self.substance is not None and self.cause is not None:
            raise BadRequest(
                f"event {self.message_id or '(unnamed)'} names both a substance and a cause",
                hint="substance says 'the same content as', cause says 'triggered by'; an event has one or neither",
            )

    def causes(self) -> tuple[str, ...]:
        """The causes as a tuple, however many there are."""
        if self.cause is None:
            return ()
        return (self.cause,) if isinstance(self.cause, str) else self.cause

    def replace(self, **changes: Any) -> Any:
        """The same event with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class Image(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A picture that was part of a message or of a tool's result."""

    media_type: str = ""
    data: str = ""
    """Base64, as it stood in the record; empty where only an address is known."""
    url: str = ""


class LoggedString(str):
    """Text with the id of the message whose content it is; everywhere else it is simply a string.

    What an agent said carries its own id; a formatted version of it carries the original's. Whoever logs the text
    asks for `message_id` and records it as the substance, so nothing has to be passed along beside the words.
    """

    __slots__ = ("message_id",)

    message_id: str | None

    def __new__(cls, content: object, message_id: str | None = None) -> Self:
        text = super().__new__(cls, content)
        text.message_id = message_id
        return text

    def __reduce__(self) -> tuple[type[Self], tuple[str, str | None]]:
        return type(self), (str(self), self.message_id)
