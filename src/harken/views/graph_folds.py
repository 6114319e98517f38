"""Runs of commits that tell nothing new, folded into one row of a drawing.

A run is a piece of one line: each of its commits but the newest has one child, and none is to be seen by itself. The
drawing then sees the run as one commit, which stands where its newest stood and leads to where its oldest led.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic

import msgspec

from .graph import C


class FoldedRun(msgspec.Struct, Generic[C], frozen=True, kw_only=True):
    """One row: a commit, or several that belong to one line."""

    commits: tuple[C, ...]
    """The newest first."""

    @property
    def id(self) -> str:
        """The row is called after its newest commit."""
        return self.commits[0].id

    @property
    def parent(self) -> str:
        """Where its line leads."""
        return self.commits[-1].parent

    @property
    def commit_type(self) -> str:
        """As its newest has it."""
        return self.commits[0].commit_type

    @property
    def time(self) -> Any:
        """When its newest was made."""
        return self.commits[0].time


def unfolded(commits: Iterable[C]) -> list[FoldedRun[C]]:
    """Every commit by itself."""
    return [FoldedRun(commits=(commit,)) for commit in commits]


def folded(
    commits: Sequence[C], links: Mapping[str, str], is_loud: Callable[[C], bool], joins: Callable[[C, C], bool]
) -> list[FoldedRun[C]]:
    """The commits with their quiet runs folded. `is_loud` says whether a commit is to be seen by itself, `joins`
    whether a commit is part of what the one above it, its child, tells."""
    children: dict[str, list[str]] = {}
    by_id = {commit.id: commit for commit in commits}
    for commit in commits:
        if parent := commit.parent or links.get(commit.id, ""):
            children.setdefault(parent, []).append(commit.id)
    sources = set(links.values())

    def is_alone(commit: C) -> bool:
        only = len(children.get(commit.id, ())) == 1 and commit.id not in sources
        return only and bool(commit.parent) and not is_loud(commit)

    quiet = {commit.id for commit in commits if is_alone(commit)}
    told = {commit.id: commit.parent for commit in commits if commit.parent in quiet}
    told = {above: below for above, below in told.items() if above not in quiet and joins(by_id[above], by_id[below])}
    quiet.difference_update(told.values())
    joined = set(told.values())
    found: list[FoldedRun[C]] = []
    for commit in commits:
        if commit.id in joined or (commit.id in quiet and children[commit.id][0] in quiet):
            continue  # another row has it
        run, below = [commit], told.get(commit.id) or (commit.parent if commit.id in quiet else "")
        while below in quiet or below in joined:
            run.append(by_id[below])
            below = by_id[below].parent if below in quiet else ""
        found.append(FoldedRun(commits=tuple(run)))
    return found
