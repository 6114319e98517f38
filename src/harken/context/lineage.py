"""What a chain goes on from: a fork, a sub-agent or a session that went back was handed a context of another chain."""

from __future__ import annotations

from harken.store.base import Commit, Store

from .walk import Callers, inherited


def handed_down(store: Store, tip: str) -> dict[str, Commit]:
    """The contexts that a whole chain goes on from, nearest first, by what their records are called after there."""
    found: dict[str, Commit] = {}
    names, seen = Callers(), {tip}
    while tip and isinstance(given := inherited(store, store.walk(tip)[-1].id), Commit) and given.id not in seen:
        seen.add(given.id)
        found[names(given)] = given
        tip = given.id
    return found


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
