"""What a document about a session is made of: passages, in reading order."""

from __future__ import annotations

import msgspec

from harken.events import Image


class Speech(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody said something, in words and pictures."""

    who: str
    time: int | None
    parts: tuple[str | Image, ...]
    is_user: bool = False


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """Text that a reader may well skip: reasoning, instructions, what the harness put in."""

    title: str
    who: str
    time: int | None
    parts: tuple[str | Image, ...]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A tool was called, and answered or not."""

    who: str
    time: int | None
    tool: str
    what: str
    """What was asked of it, on one line."""
    arguments: tuple[tuple[str, str], ...]
    answered: bool
    failed: bool
    parts: tuple[str | Image, ...]
    """The result."""

    @property
    def outcome(self) -> str:
        """What is said beside the call: nothing where it went well."""
        return "no result" if not self.answered else "failed" if self.failed else ""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, on one line."""

    text: str
    time: int | None
    alert: bool = False


class SummedUp(msgspec.Struct, frozen=True, kw_only=True):
    """From here on the model had a summary in place of what came before."""

    text: str
    time: int | None


class AgentBegins(msgspec.Struct, frozen=True, kw_only=True):
    """The story of a sub-agent begins here, inside the story of the one that asked for it."""

    name: str
    time: int | None


class AgentEnds(msgspec.Struct, frozen=True, kw_only=True):
    """The story of the sub-agent that began last ends here."""

    name: str


Passage = Speech | Aside | Step | Remark | SummedUp | AgentBegins | AgentEnds
