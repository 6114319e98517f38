"""How a session stands: done, failed, or in the middle of something."""

from __future__ import annotations

from collections.abc import Sequence

from harken.events import Error, Event, Metric, Prompt, Response, System, ToolCall, ToolResult
from harken.formats.std.models import Status

_ASKING = frozenset(
    {
        "",
        "agent",
        "teammate",
        "peer",
        "coordinator",
        "task_notification",
        "subagent_notification",
        "plan",
        "continuation",
    }
)
"""Kinds of injected prompts that an agent answers; the others come along with something else, or are for the user."""
_INTERRUPTIONS = frozenset({"interruption", "stopped", "turn_aborted"})
"""Kinds of prompts that say that a turn was broken off."""
_BROKEN_OFF = ("[Request interrupted by user", "<turn_aborted>")
"""How their words begin, where a sub-agent's file does not tell them from what the agent was given."""


def is_interruption(event: Event) -> bool:
    """Whether an agent is told that its turn was broken off."""
    if not isinstance(event, Prompt):
        return False
    is_in_place = event.source == "injected" and event.origin == "agent"
    return event.origin in _INTERRUPTIONS or (is_in_place and event.content.startswith(_BROKEN_OFF))


def status_of(events: Sequence[Event]) -> Status:
    """How a conversation stands, by the last thing in it: an answer is an end, an error or an interruption a failure,
    and anything that waits for an answer means that it goes on."""
    for event in reversed(events):
        match event:
            case Metric() if event.ends_run:
                return "success" if event.status == "success" else "failed"
            case System(subtype="completed" | "recording_closed", message="success" | "failed" as told):
                return told  # a document that was imported, or a recording, says so itself
            case Error():
                return "failed"
            case Prompt() if is_interruption(event):
                return "failed"
            case Prompt(source="injected") if event.origin not in _ASKING:
                continue
            case Response():
                return "success"
            case Prompt() | ToolCall() | ToolResult():
                return "in_progress"
    return "in_progress"
