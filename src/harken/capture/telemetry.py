"""What the bus carries beside the entries: a prompt went out, a tool was used, a prompt was answered."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from harken.clock import now as present
from harken.clock import to_datetime
from harken.events import ToolCall
from harken.formats.transcript.events import plain


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


class InvokedTools:
    """Which calls and results were told of: behind an edit of its history a conversation says them again."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def tell(self, adapter: str, session_id: str, agent_id: str, call: ToolCall, result: str) -> ToolInvoked | None:
        """What there is to tell of a call that was answered; None where that was told."""
        key = hash((agent_id, call.id, call.name, call.input, result))
        if key in self._told:
            return None
        self._told.add(key)
        params = plain(_loaded(call.input))
        params = params if isinstance(params, dict) else None
        return ToolInvoked(adapter, session_id, call.name, call.id, params, result, to_datetime(present()))


def _loaded(text: bytes) -> Any:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(text)
    return None
