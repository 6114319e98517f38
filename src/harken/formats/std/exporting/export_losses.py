"""What is in a session and in no document of it."""

from __future__ import annotations

from collections import Counter

from harken.events import (
    AgentTerminated,
    Error,
    Event,
    Metric,
    Output,
    PieceOfText,
    Prompt,
    Recovery,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.formats.base import Loss
from harken.formats.std.skeleton import is_skeleton

from .spawning import SessionTree

_WHY = "STD-001 has no place for it"
_REASONS = {
    "records that are no conversation": "a document tells of what was said, heard and done",
    "records that could not be read": "nobody knows what they say",
    "bytes that are no text": "JSON holds text alone; they are written as U+FFFD",
}
_KINDS: tuple[tuple[type[Event] | tuple[type[Event], ...], str], ...] = (
    ((Response, PieceOfText), "what agents said"),
    (Prompt, "what agents heard"),
    (Thinking, "thoughts"),
    (System, "instructions and notices"),
    (Metric, "counts of tokens"),
    (Error, "errors of the runtime"),
    (TranscriptEdit, "changes to a transcript"),
    (AgentTerminated, "ends of agents"),
    ((Output, Recovery), "records that are no conversation"),
)


def losses_of(tree: SessionTree, lost: Counter[str], *, with_agents: bool, has_prompt: bool) -> list[Loss]:
    """The losses; `lost` counts what a document with agents leaves out, and `has_prompt` says that there is a
    `user_prompt`."""
    found = lost if with_agents else _without_agents(tree, has_prompt=has_prompt)
    return [Loss(what=what, count=count, why=_REASONS.get(what, _WHY)) for what, count in found.items() if count]


def _without_agents(tree: SessionTree, *, has_prompt: bool) -> Counter[str]:
    """What a document of one agent leaves out: everything but that agent's calls and what it was asked first."""
    found: Counter[str] = Counter()
    calls = {event.id for event in tree.main_events if isinstance(event, ToolCall)}
    for event in tree.events:
        is_own = event.agent_id in (tree.main, "")
        if isinstance(event, ToolCall):
            found["calls of sub-agents"] += not is_own
        elif isinstance(event, ToolResult):
            found["results of sub-agents"] += not is_own
            found["results without a call"] += is_own and event.id not in calls
        elif isinstance(event, Output) and event.why:
            found["records that could not be read"] += 1
        elif not is_skeleton(event):
            what = next((name for kinds, name in _KINDS if isinstance(event, kinds)), "")
            found[what] += bool(what)
        if isinstance(event, Prompt | ToolResult) and is_own:
            found["pictures"] += len(event.images)
    found["what agents heard"] -= has_prompt  # it is one of these
    found["sub-agents that no call of the main agent made"] = sum(
        agent.call is None or agent.call.agent_id not in (tree.main, "") for agent in tree.agents.values()
    )
    return found
