"""How far an index has come, and what it holds, as values."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

OnProgress = Callable[[int, int], None]
"""Is told how far it is: the number that was reached, and the last one there is."""


class OutdatedIndex(Exception):
    """The index holds what cannot be gone on with: it has to be built anew."""


class IndexProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the index has come."""

    at: int
    """The number of the last change that was taken in."""
    last: int
    """The number of the store's last change."""
    taken: int = 0
    """How many changes were taken in this time."""
    rebuilt: str = ""
    """Why it was built anew, where it was."""
    stale: int = 0
    """Sessions whose numbers are not up to date."""
    problem: str = ""
    """Why it stopped before it was up to date; empty where only time was short."""
    missing: int = 0
    """Commits and rows of the store that cannot be read; `IndexStatus.problems` names them."""
    damaged: int = 0
    """How many of these are damaged; others were evicted, or nothing here reads their format."""
    opened: int = -1
    """Which opening of a file this is told of (`StoreIndex.opened`): another one may hold less."""

    @property
    def behind(self) -> int:
        """How many changes are missing."""
        return max(0, self.last - self.at)


class IndexStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the index holds."""

    path: str
    """Its file; empty where it is held in memory."""
    at: int
    """The number of the last change that was taken in."""
    last: int
    """The number of the store's last change."""
    sessions: int
    messages: int
    bytes: int
    """The size of its files."""
    stale: int
    """Sessions whose numbers are not up to date."""
    problems: tuple[tuple[str, str, str], ...]
    """What could not be read: commit, session and why."""
    damaged: int
    """How many of these are damaged."""
