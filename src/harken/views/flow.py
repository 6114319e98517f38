"""The flow: what came from what. Backwards to the beginning, and on to all who got it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from harken.events.edits import is_entry

from .base import ACTION, HEARD, SAID, SYSTEM, TEXT, ParentLink
from .hearing import Compiled, Heard, compiled_into, deliveries, hearings, source_of
from .index import Index


class Flow(TypedDict):
    """One piece of content on its way."""

    message_id: str
    content: str
    agent_id: str | None
    source: str | None
    """Where it came from if no agent said it: `user` or `initial` (a person), `injected` (a notice of the runtime, the
    question to a hook), empty where nobody knows; None where an agent said it."""
    time: str | None
    causes: list[str]
    heard: list[Heard]
    results: list[Compiled]
    """Tool results that name it among their causes."""


def causality(index: Index) -> dict[str, ParentLink]:
    """Each message that has one: what it repeats, what triggered it, or the call it answers. Lists stay lists."""
    found: dict[str, ParentLink] = {}
    for at, message_id in enumerate(index.ids):
        if links := index.parent_ids(at):
            as_list = len(links) > 1 or (at in index.links and isinstance(index.records[at][0].cause, tuple))
            found.setdefault(message_id, list(links) if as_list else links[0])
    return found


def ancestry(index: Index, position: int) -> list[int]:
    """The message and everything it came from, oldest first. Circles end where they began."""
    if position < 0:
        return []
    seen = {position}
    stack = [position]
    while stack:
        for parent in index.parents(stack.pop()):
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return sorted(seen)


def references(index: Index, position: int) -> list[int]:
    """The transcript entries whose substance is this very message."""
    group = index.copies.get(index.content_root(position), ())
    return [at for at in group if index.source[at] == position and is_entry(index.records[at][0])]


def flow(index: Index, agent_ids: Collection[str] | None = None) -> list[Flow]:
    """Every piece of content that somebody could hear, in file order, with those who got it.

    With agents, only what one of them said, made or heard.
    """
    return [content_flow(index, root) for root in contents(index, agent_ids)]


def contents(index: Index, agent_ids: Collection[str] | None = None) -> list[int]:
    """The roots of all that was said, made for others, or heard, each at the place of its first event.

    With agents, only of what one of them said, made or heard.
    """
    roots = _contents(index)
    if agent_ids is None:
        return roots
    chosen = set(agent_ids)
    return [
        root
        for root in roots
        if (root >= 0 and index.authors[root] in chosen) or any(agent in chosen for _, agent in hearings(index, root))
    ]


def _contents(index: Index) -> list[int]:
    places: dict[int, int] = {}
    for at, kind in enumerate(index.kinds):
        if (kind in (SAID, TEXT, HEARD) and index.texts[at]) or (
            index.source[at] != at and kind not in (ACTION, SYSTEM)
        ):
            root = index.root[at]
            places.setdefault(root, root if root >= 0 else at)
    return sorted(places, key=places.__getitem__)


def content_flow(index: Index, root: int) -> Flow:
    """The way of one content."""
    heard = deliveries(index, root)
    wording = index.texts[root] if root >= 0 else ""
    return Flow(
        message_id=index.id_of(root),
        content=wording or (heard[0]["content"] if heard else ""),
        agent_id=index.authors[root] if root >= 0 else None,
        source=source_of(index, root),
        time=index.time_text(root),
        causes=list(index.parent_ids(root)) if root >= 0 else [],
        heard=heard,
        results=compiled_into(index, root),
    )
