"""Which conversation of a session is spoken in, where somebody says so by hand."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Self

from harken.events.base import check_name

if TYPE_CHECKING:
    from .session import Session


def chosen(session: Session) -> str | None:
    """The conversation that was chosen by hand in this thread or task; None where none was."""
    return session.chosen.get() if session.chosen is not None else None


class ChosenConversation:
    """A conversation that is spoken in from now on, or until the block ends."""

    def __init__(self, session: Session, name: str) -> None:
        check_name(name)
        self.name = name
        with session.lock:
            session.chosen = session.chosen or ContextVar("conversation", default=None)
        self._variable = session.chosen
        self._token: Token[str | None] | None = self._variable.set(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._token is not None:
            with suppress(ValueError):  # entered in one thread or task and left in another, which chose nothing
                self._variable.reset(self._token)
            self._token = None
