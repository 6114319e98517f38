"""What a runtime tells its model about itself, which must not follow a conversation into another runtime.

A runtime sets the scene: the folder and the system it runs on, the tools and skills it has, how it may behave. The
runtime that continues the conversation sets its own, and a model that is told of two sets of tools believes the wrong
one. What people and agents said, what tools answered, and what the project's own files say, is not scenery.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Container, Sequence

from harken.events import Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import Loss

ORIGINS = frozenset(
    (
        # Claude Code: attachments about the program itself
        *("environment", "model", "session_context", "date", "date_change", "remote_session_change"),
        *("deferred_tools_delta", "agent_listing_delta", "skill_listing", "mcp_instructions_delta"),
        *("auto_mode", "plan_mode", "plan_mode_exit", "command_permissions", "total_tokens_reminder"),
        *("task_reminder", "todo_reminder", "prompt_snapshot", "output_style"),
        *("ultra_effort_enter", "ultra_effort_exit", "dynamic_skill"),
        # Codex: what it puts in the user's place about itself
        *("environment_context", "plugins", "recommended_plugins", "internal_context"),
    )
)
"""Kinds of injected prompts that only set the scene."""
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
"""How a PNG, a JPEG and a GIF begin."""
SEALED_SUMMARY = "compact_summary"

WHY = {
    "instructions of the runtime": "{} tells its model about its own rules",
    "notice of the runtime": "{} tells its model about its own tools and surroundings",
    "provider's own tool call": "what it found is not in the conversation",
    "damaged picture": "it is not a picture that a provider accepts, and would be refused with everything else",
    "sealed summary": "only the provider that wrote it can open it",
}
"""What does not follow, and why."""


def is_scenery(event: Event) -> bool:
    """Whether an event tells the model about its runtime and nothing about the work."""
    if isinstance(event, Prompt):
        return event.source == "injected" and event.origin.removeprefix("attachment:") in ORIGINS
    return isinstance(event, System) and event.subtype == "instructions" and bool(event.message)


def is_heard(event: Event) -> bool:
    """Whether an event is something the model was told or said, or something nobody could read.

    Figures, notices and records of bookkeeping never went to the model, so leaving them out loses nothing."""
    if isinstance(event, System):
        return event.subtype == SEALED_SUMMARY or is_scenery(event)
    if isinstance(event, Output):
        return bool(event.why)
    if isinstance(event, Response):
        return bool(event.content.strip())
    return isinstance(event, (Prompt, Thinking, ToolCall, ToolResult))


def without_scenery(events: Sequence[Event], runtime: str) -> tuple[list[Event], tuple[Loss, ...]]:
    """What the model heard and said, as far as it can go on in `runtime`; what was left out is said."""
    answered = {event.id for event in events if isinstance(event, ToolResult)}
    kept: list[Event] = []
    lost: Counter[str] = Counter()
    for event in events:
        if not is_heard(event):
            continue
        if what := _reason(event, answered):
            lost[what] += 1
            continue
        if isinstance(event, (Prompt, ToolResult)) and event.images:
            sound = tuple(filter(_is_sound, event.images))
            if damaged := len(event.images) - len(sound):
                lost["damaged picture"] += damaged
                event = event.replace(images=sound)
        kept.append(event)
    return kept, tuple(Loss(what=what, count=count, why=WHY[what].format(runtime)) for what, count in lost.items())


def _is_sound(image: Image) -> bool:
    """Whether a provider would take the picture; one that it refuses would make it refuse the whole conversation."""
    if not image.data:
        return bool(image.url)
    try:
        head = base64.b64decode(image.data, validate=True)[:16]
    except ValueError:
        return False
    return head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _reason(event: Event, answered: Container[str]) -> str:
    """Why an event cannot follow, as a key of `WHY`; empty where it can."""
    match event:
        case System(subtype="compact_summary"):
            return "sealed summary"
        case System():
            return "instructions of the runtime"
        case Prompt() if is_scenery(event):
            return "notice of the runtime"
        case ToolCall() if event.server_tool and event.id not in answered:
            return "provider's own tool call"
    return ""
