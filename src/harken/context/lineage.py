"""What a chain goes on from: a fork, a sub-agent or a session that went back was handed a context of another chain. And
the other way: which sub-agents a session has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harken.errors import HarkenError
from harken.formats import Loss, events_v1, find
from harken.store.base import Commit, SessionRow, Store

from .walk import Callers, inherited


def names_agents(format: str) -> bool:
    """Whether the records of that format name the agents themselves."""
    known = find(format)
    return format == events_v1.FORMAT.name or (known is not None and known.tells_agents)


class HandedDown(NamedTuple):
    """The contexts that a whole chain goes on from, nearest first, by what their records are called after there."""

    found: dict[str, Commit]
    missing: Loss | None = None
    """The next one, where it cannot be found."""


def handed_down(store: Store, tip: str, root: str = "") -> HandedDown:
    """What a whole chain goes on from. `root` is its first commit, where that is known: a walk takes time."""
    found: dict[str, Commit] = {}
    names, seen = Callers(), {tip}
    root = root or (store.walk(tip)[-1].id if tip else "")
    while root and (given := inherited(store, root)):
        if isinstance(given, Loss):
            return HandedDown(found, missing=given)
        if given.id in seen:
            break
        seen.add(given.id)
        found[names(given)] = given
        root = store.walk(given.id)[-1].id
    return HandedDown(found)


def lineage(store: Store, tip: str, limit: int | None = None) -> list[Commit]:
    """The chain at `tip`, newest first, and behind its root the chains whose contexts were handed down to it."""
    found: list[Commit] = []
    seen: set[str] = set()
    while tip not in seen:
        seen.add(tip)
        found += store.chain(tip, limit=None if limit is None else limit - len(found))
        if (limit is not None and len(found) >= limit) or not found:
            break
        given = inherited(store, found[-1].id)
        tip = given.id if isinstance(given, Commit) else tip
    return found


def told_in(store: Store, session: str) -> list[str]:
    """The session and those whose contexts were handed down to it, nearest first: it has these without a copy."""
    try:
        row = store.find_session(session)
        steps = lineage(store, row.tip) if row is not None and row.tip else []
    except HarkenError:  # of what cannot be read nothing is known
        steps = []
    return list(dict.fromkeys([session, *(step.session_id for step in steps if step.session_id)]))


def agents_below(store: Store, row: SessionRow) -> list[SessionRow]:
    """The sub-agents of a session and theirs, which may have ids of their own."""
    return below(row, lambda session: store.sessions(parent=session))


def below(row: SessionRow, children: Callable[[str], Sequence[SessionRow]]) -> list[SessionRow]:
    """The sub-agents of a session and theirs; one that names itself or a descendant as its parent comes once."""
    found = {row.session: row}
    waiting = [row]
    while waiting:
        fresh = [other for other in children(waiting.pop(0).session) if other.session not in found]
        found.update((other.session, other) for other in fresh)
        waiting += fresh
    return list(found.values())[1:]


def agent_name(row: SessionRow) -> str:
    """What a row's agent is called, in every list and view: its own name, the id of a sub-agent that has none, or the
    runtime's for the session's main agent (where no runtime is known, the session's)."""
    return row.agent or (row.session if row.parent else row.runtime) or row.session


def errand_title(title: str, errand: str) -> str:
    """What a sub-agent's work is called where it has no name: as the call that made it says in a few words, else as
    its chain is called. Of a call that only begins as the chain does the chain says more."""
    return title if not errand or title.startswith(errand.removesuffix("…")) else errand
