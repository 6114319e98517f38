"""Who told whom how much, as `substance` says: what repeats somebody's words was heard from whoever said them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.events import Event


class FlowEdge(msgspec.Struct, kw_only=True, frozen=True):
    """What went from one agent to another."""

    source: str
    """The agent that said it; empty for a person or whoever has no name."""
    target: str
    """The agent that heard it."""
    messages: int
    characters: int


def of(events: Iterable[Event]) -> tuple[FlowEdge, ...]:
    """The edges, the one with the most messages first. Words that were handed on come from whoever said them first."""
    said: dict[str, Event] = {}
    found: dict[tuple[str, str], tuple[int, int]] = {}
    held = list(events)
    for event in held:
        said.setdefault(event.message_id, event)
    for event in held:
        if event.substance is None:
            continue
        first = _origin(event, said)
        if first is not None and first.agent_id != event.agent_id:
            edge = (first.agent_id, event.agent_id)
            messages, characters = found.get(edge, (0, 0))
            found[edge] = (messages + 1, characters + len(getattr(event, "content", "")))
    edges = (FlowEdge(source=s, target=t, messages=m, characters=c) for (s, t), (m, c) in found.items())
    return tuple(sorted(edges, key=lambda edge: (-edge.messages, edge.source, edge.target)))


def _origin(event: Event, said: dict[str, Event]) -> Event | None:
    """The first that said it; None where that is not among the events. Circles end where they began."""
    seen: set[str] = set()
    found: Event | None = event
    while found is not None and found.substance is not None and found.substance not in seen:
        seen.add(found.substance)
        found = said.get(found.substance)
    return found
