"""Whose conversation is written, where events of several agents are given: a request holds what one agent knew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harken.events import Event, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.edits import INSTRUCTIONS

OTHER_AGENTS = "records of other agents"
WHY_OTHERS = "a context holds what one agent knew"


def speaker_of(events: Iterable[Event]) -> str:
    """The agent that is heard or spoken to first."""
    return next((event.agent_id for event in events if isinstance(event, Prompt | Response | ToolCall)), "")


def of_one_agent(events: Sequence[Event]) -> tuple[Sequence[Event], int]:
    """The events without what other agents than the first heard and said, and how many records these are."""
    whose = speaker_of(events)
    kept = [event for event in events if not _is_of_another(event, whose)]
    return kept, len(events) - len(kept)


def _is_of_another(event: Event, whose: str) -> bool:
    if isinstance(event, System):
        return event.subtype == INSTRUCTIONS and event.agent_id not in ("", whose)
    return event.agent_id != whose and isinstance(event, Prompt | Response | ToolCall | ToolResult | Thinking)
