"""Chains of small commits, for whoever tests a store."""

from __future__ import annotations

from typing import Any

from harken.store import Commit, Draft, Store

T0 = 1_771_756_200_000_000
"""2026-02-22T10:30:00Z."""


def grow(store: Store, count: int, *, parent: str = "", start: int = 0, **fields: Any) -> list[Commit]:
    """A chain of small deltas, one transaction each."""
    made: list[Commit] = []
    for n in range(start, start + count):
        with store.write() as writer:
            artifact = writer.put(f"delta {n}\n".encode())
            facts: dict[str, Any] = {"format": "events-v1", "time": T0 + n * 1_000_000, **fields}
            made.append(writer.commit(Draft(artifact=artifact, parent=parent, **facts)))
        parent = made[-1].id
    return made
