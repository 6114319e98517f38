"""Commits in a list, newest first, each with its summary and names.

They are described in portions, so that the first lines come at once and a short list reads little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from harken.store.base import Commit, Store

from .describe import Shown, show
from .family import windows
from .lineage import lineage

PORTION = 200
"""Commits described at a time."""


def chain(store: Store, tip: Commit, *, limit: int | None = None, superseded: bool = False) -> Iterator[Shown]:
    """The commits behind `tip`, it included, and those it was handed down; on request with the tails that hung from
    them until their file grew."""
    commits = lineage(store, tip.id, limit)
    found = _with_tails(store, commits) if superseded else described(store, commits)
    return islice(found, limit)


def newest(store: Store, *, limit: int | None = None, superseded: bool = False) -> Iterator[Shown]:
    """The store's commits. Where few are wanted few are read, and more only if some of them are hidden."""
    return islice(_newest(store, limit, superseded=superseded), limit)


def described(store: Store, commits: Sequence[Commit]) -> Iterator[Shown]:
    """The commits with their summaries and names, a portion at a time."""
    for start in range(0, len(commits), PORTION):
        yield from show(store, commits[start : start + PORTION])


def _newest(store: Store, limit: int | None, *, superseded: bool) -> Iterator[Shown]:
    seen: set[str] = set()  # somebody may be writing while we look, so a count would not do
    for commits in windows(store, limit):
        fresh = [commit for commit in commits if commit.id not in seen]
        yield from (shown for shown in described(store, fresh) if superseded or not shown.superseded)
        seen.update(commit.id for commit in fresh)


def _with_tails(store: Store, commits: Sequence[Commit]) -> Iterator[Shown]:
    known = {commit.id for commit in commits}
    for start in range(0, len(commits), PORTION):
        both: list[Commit] = []
        for commit in commits[start : start + PORTION]:
            both += [child for child in store.children(commit.id) if child.id not in known]
            both.append(commit)
        yield from (shown for shown in show(store, both) if shown.superseded or shown.id in known)
