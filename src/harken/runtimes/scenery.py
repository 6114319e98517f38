"""What a runtime tells its model about itself, which must not follow a conversation into another runtime.

A runtime sets the scene: the folder and the system it runs on, the tools and skills it has, how it may behave. The
runtime that continues the conversation sets its own, and a model that is told of two sets of tools believes the wrong
one. What people and agents said, what tools answered, and what the project's own files say, is not scenery.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.events import Event, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import Loss

ORIGINS = frozenset(
    (
        # Claude Code: attachments about the program itself
        *("environment", "model", "session_context", "date", "date_change", "remote_session_change"),
        *("deferred_tools_delta", "agent_listing_delta", "skill_listing", "mcp_instructions_delta"),
        *("auto_mode", "plan_mode", "plan_mode_exit", "command_permissions", "total_tokens_reminder"),
        *("task_reminder", "todo_reminder", "prompt_snapshot", "output_style"),
        # Codex: what it puts in the user's place about itself
        *("environment_context", "plugins", "recommended_plugins", "internal_context"),
    )
)
"""Kinds of injected prompts that only set the scene."""


def is_scenery(event: Event) -> bool:
    """Whether an event tells the model about its runtime and nothing about the work."""
    if isinstance(event, Prompt):
        return event.source == "injected" and event.origin.removeprefix("attachment:") in ORIGINS
    return isinstance(event, System) and event.subtype == "instructions" and bool(event.message)


def is_heard(event: Event) -> bool:
    """Whether an event is something the model was told or said, or something nobody could read.

    Figures, notices and records of bookkeeping never went to the model, so leaving them out loses nothing."""
    if isinstance(event, System):
        return event.subtype == "compact_summary" or is_scenery(event)
    if isinstance(event, Output):
        return bool(event.why)
    return isinstance(event, (Prompt, Response, Thinking, ToolCall, ToolResult))


def without_scenery(events: Sequence[Event], runtime: str) -> tuple[list[Event], tuple[Loss, ...]]:
    """What the model heard and said, without scenery, for `runtime` to set its own; what was left out is said."""
    heard = [event for event in events if is_heard(event)]
    kept = [event for event in heard if not is_scenery(event)]
    instructions = sum(isinstance(event, System) and is_scenery(event) for event in heard)
    notices = len(heard) - len(kept) - instructions
    why = f"{runtime} tells its model about its own"
    losses = [
        Loss(what="instructions of the runtime", count=instructions, why=f"{why} rules"),
        Loss(what="notice of the runtime", count=notices, why=f"{why} tools and surroundings"),
    ]
    return kept, tuple(loss for loss in losses if loss.count)
