"""In order: everything that happened, and who said what to whom."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from harken.events.edits import is_entry

from .base import ACTION, CREATED, OTHER
from .flow import contents
from .hearing import compilations, hearings, is_changed
from .index import Index
from .perspective import actions


class Happening(TypedDict):
    """One event in one line."""

    message_id: str
    time: str | None
    agent_id: str | None
    kind: str
    """`said`, `heard`, `action`, `received`, `system`, `thought`, `text`, `created`, `terminated`, `edited`, or the
    event's own type."""
    content: str
    links: list[str]


class Arrow(TypedDict):
    """Somebody said something to somebody."""

    message_id: str
    time: str | None
    speaker: str | None
    hearers: list[str]
    returned: list[str]
    """Agents that got it in a tool result."""
    content: str
    changed: list[str]
    """Those among the hearers who heard it in another wording."""


def timeline(index: Index, agent_ids: Collection[str] | None = None) -> list[Happening]:
    """Every event, in file order; with agents, only theirs."""
    chosen = None if agent_ids is None else set(agent_ids)
    wanted = (at for at in range(len(index.records)) if chosen is None or index.holders[at] in chosen)
    return [happening(index, at) for at in wanted]


def happening(index: Index, at: int) -> Happening:
    """One event as a line of the timeline."""
    return Happening(
        message_id=index.ids[at],
        time=index.time_text(at),
        agent_id=index.holders[at],
        kind=_kind(index, at),
        content=_content(index, at),
        links=list(index.parent_ids(at)),
    )


def _kind(index: Index, at: int) -> str:
    kind = index.kinds[at]
    first = index.records[at][0]
    return first.kind if kind == OTHER and not is_entry(first) else kind


def _content(index: Index, at: int) -> str:
    if index.kinds[at] == ACTION:
        return "\n".join(actions(index.records[at]))
    if index.kinds[at] == CREATED:
        return index.name(index.holders[at])
    return index.texts[at]


def sequence(index: Index, agent_ids: Collection[str] | None = None) -> list[Arrow]:
    """Who said what to whom, in the order of saying; what nobody heard has no hearers."""
    return [_arrow(index, root) for root in contents(index, agent_ids)]


def _arrow(index: Index, root: int) -> Arrow:
    heard = list(hearings(index, root))
    wording = index.texts[root] if root >= 0 else ""
    return Arrow(
        message_id=index.id_of(root),
        time=index.time_text(root),
        speaker=index.authors[root] if root >= 0 else None,
        hearers=list(dict.fromkeys(agent for _, agent in heard)),
        returned=list(dict.fromkeys(index.holders[at] or "" for at in compilations(index, root))),
        content=wording or (index.texts[heard[0][0]] if heard else ""),
        changed=list(dict.fromkeys(agent for at, agent in heard if is_changed(index, at))),
    )
