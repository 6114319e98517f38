"""What the bus carries beside the entries: a prompt went out, a tool was used, a prompt was answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptRendered:
    """A request is about to be sent."""

    adapter: str
    session_id: str
    messages: tuple[Any, ...]
    """What is new in it, as the provider gets it."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ToolInvoked:
    """A tool was called and has answered; told when the host sends the answer on."""

    adapter: str
    session_id: str
    name: str
    call_id: str
    params: dict[str, Any] | None
    result: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PromptExecuted:
    """The model has answered, and asks for nothing more."""

    adapter: str
    session_id: str
    result: str
    usage: dict[str, int]
    created_at: datetime
