"""What the bus hears of a run beside its entries."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from harken.capture.telemetry import PromptExecuted, PromptRendered, ToolInvoked
from harken.clock import now as present
from harken.clock import to_datetime
from harken.events import Event, Metric, Prompt, Response, ToolCall, ToolResult
from harken.log import Session

from .records import WrittenRecord

ADAPTER = "claude_agent_sdk"


class Telling:
    """Tells the bus that a prompt went out, a tool was used, a prompt was answered."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = session.path.stem
        self._calls: dict[str, ToolCall] = {}
        """Calls that were not answered yet."""

    def record(self, record: WrittenRecord, events: list[Event]) -> None:
        """A record was logged as these events."""
        when = to_datetime(present())
        prompts = tuple(event.content for event in events if isinstance(event, Prompt))
        if prompts:
            messages: tuple[Any, ...] = tuple({"role": "user", "content": words} for words in prompts)
            self._session.dispatch(PromptRendered(ADAPTER, self._name, messages, when))
        for event in events:
            if isinstance(event, ToolCall):
                self._calls[event.id] = event
            elif isinstance(event, ToolResult) and (call := self._calls.pop(event.id, None)) is not None:
                params = _object(call.input)
                told = ToolInvoked(ADAPTER, self._name, call.name, call.id, params, event.output, when)
                self._session.dispatch(told)
        said = [event.content for event in events if isinstance(event, Response)]
        if said and record.about.get("stop_reason") not in (None, "tool_use", "pause_turn"):
            usage = next((event.tokens for event in events if isinstance(event, Metric)), None)
            counts = msgspec.structs.asdict(usage) if usage is not None else {}
            known = {key: count for key, count in counts.items() if count is not None}
            self._session.dispatch(PromptExecuted(ADAPTER, self._name, "\n".join(said), known, when))


def _object(given: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(given)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
