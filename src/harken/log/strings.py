"""A string that knows which message it is."""

from __future__ import annotations

from typing import Self


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
