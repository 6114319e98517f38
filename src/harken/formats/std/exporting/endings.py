"""How a session stands: done, failed, or in the middle of something."""

from __future__ import annotations

from collections.abc import Sequence

from harken.events import Error, Event, Metric, Prompt, Response, System, ToolCall, ToolResult
from harken.formats.std.models import Status
from harken.formats.std.spellings import session_status

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

CLOSING = frozenset({"completed", "recording_closed"})
"""Notices by which a document that was imported, or a recording, says itself how it ended, or that it goes on."""
_OUTPUTS = {"command": "local_command_output", "bash_input": "bash_output"}
"""What a person may type beside prompts, and what answers it; a command that stands for a prompt the model answers."""


def is_interruption(event: Event) -> bool:
    """Whether an agent is told that its turn was broken off."""
    if not isinstance(event, Prompt):
        return False
    is_in_place = event.source == "injected" and event.origin == "agent"
    return event.origin in _INTERRUPTIONS or (is_in_place and event.content.startswith(_BROKEN_OFF))


def _closing(events: Sequence[Event]) -> System | None:
    """By what a document that was imported, or a recording, says that it ended, where nothing comes behind that."""
    for event in reversed(events):
        if isinstance(event, System) and event.subtype in CLOSING:
            return event
        if isinstance(event, Prompt | Response | ToolCall | ToolResult):
            break
    return None


def completed_at(events: Sequence[Event]) -> int | None:
    """When a document that was imported, or a recording, says that it ended; the times in it may be later."""
    closing = _closing(events)
    return closing.time if closing is not None else None


def is_status_told(events: Sequence[Event]) -> bool:
    """Whether it says how it ended."""
    closing = _closing(events)
    return closing is not None and session_status(closing.message) is not None


def status_of(events: Sequence[Event]) -> Status:
    """How a conversation stands, by the last thing in it: an answer is an end, an error or an interruption a failure,
    and anything that waits for an answer means that it goes on. A session that is over, in words that nobody knows,
    went as the last thing in it did."""
    behind: set[str] = set()
    is_over = False
    for event in reversed(events):
        match event:
            case Metric() if event.ends_run:
                return "success" if event.status == "success" else "failed"
            case System(subtype=subtype, message=word) if subtype in CLOSING:
                if (told := session_status(word)) is not None:
                    return told
                is_over = True
            case Error():
                return "failed"
            case Prompt() if is_interruption(event):
                return "failed"
            case ToolResult() if is_over:
                return "failed" if event.is_error else "success"
            case Prompt() | ToolCall() if is_over:
                continue
            case Prompt(source="injected", origin=("command" | "bash_input") as given) if _OUTPUTS[given] not in behind:
                return "in_progress"
            case Prompt(source="injected") if event.origin not in _ASKING:
                behind.add(event.origin)
            case Response():
                return "success"
            case Prompt() | ToolCall() | ToolResult():
                return "in_progress"
    return "success" if is_over else "in_progress"
