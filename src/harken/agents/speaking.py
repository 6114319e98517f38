"""Two tools for speaking outside a discussion, to be passed like any of your own: `broadcast` and `whisper`.

An agent reaches those below it and those beside it, who have the same parent. What it says is one piece of text, and
each of them hears it once: a call that a crash has stopped is taken up again, and passes over who has heard it. Neither
runs beside another call of its message, so that everybody hears things in the same order each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from harken.errors import BadRequest, NotFound
from harken.events.base import likeness

from .actions import written
from .tools import Call, make_tool
from .watching import deliver

if TYPE_CHECKING:
    from .agent import Agent


def within_reach(agent: Agent) -> list[Agent]:
    """Those below an agent and those beside it."""
    beside = agent.parent.subagents.values() if agent.parent is not None else ()
    return [*agent.subagents.values(), *(other for other in beside if other is not agent)]


async def _say(call: Call, text: str, to: list[Agent], prefix: str) -> None:
    """Let agents hear a text, once each."""
    said, window = written(call, text), call.window
    known = said.message_id or ""
    await deliver(call.agent, said, to, prefix=prefix, unless=lambda other: window.has_heard(other.agent_id, known))


async def _broadcast(call: Call, text: Annotated[str, "What everybody is to hear"]) -> str:
    """Say something that everybody below you and beside you hears. Nobody answers."""
    audience = within_reach(call.agent)
    if not audience:
        raise BadRequest(f"there is nobody who could hear {call.agent.label}", hint="create subagents with task")
    await _say(call, text, audience, f"[{call.agent.label}]: ")
    return "Heard by: " + ", ".join(other.label for other in audience)


async def _whisper(
    call: Call,
    name: Annotated[str, "Who is to hear it: somebody below you or beside you"],
    text: Annotated[str, "What nobody else is to hear"],
) -> str:
    """Say something that only one other agent hears. It does not answer now."""
    near = within_reach(call.agent)
    found = [other for other in near if likeness(other.label) == likeness(name)]
    if not found:
        raise NotFound(
            f"nobody near {call.agent.label} is called {name!r}",
            hint="near are: " + (", ".join(other.label for other in near) or "none"),
        )
    await _say(call, text, found[:1], f"[{call.agent.label}, whispering]: ")
    return f"{found[0].label} has heard it."


broadcast = make_tool(_broadcast, name="broadcast", redo=True, alone=True)
whisper = make_tool(_whisper, name="whisper", redo=True, alone=True)
