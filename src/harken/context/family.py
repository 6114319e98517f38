"""Which commits a drawing shows: the tree a commit stands in, and the trees of the sub-agents that were spawned in it.

Commits are taken newest first. Where only a few are wanted, a few more than that are read, and twice as many again
until there are enough; so a drawing of five commits does not read a hundred thousand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec

from harken.errors import Corrupt, NotFound
from harken.store.base import Commit, Store

from .chains import is_superseded
from .materialize import DEFAULT_FORMAT
from .names import is_own
from .spawned import spawn_points
from .turns import EXPLICIT
from .walk import DELTA

LEAST = 64
"""Commits read at the first try."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Commits that belong together, newest first."""

    commits: list[Commit]
    spawned: dict[str, str]
    """From a chain's first commit to the commit it was spawned at."""
    beyond: frozenset[str] = frozenset()
    """Parents that were not read because enough is there without them."""


def windows(store: Store, limit: int | None) -> Iterator[list[Commit]]:
    """The newest commits of the store: all of them, or more each time, until there are no more."""
    size = None if limit is None else max(LEAST, limit * 2)
    while True:
        commits = store.commits(limit=size)
        yield commits
        if size is None or len(commits) < size:
            return
        size *= 4


def family(store: Store, *, of: str = "", limit: int | None = None, superseded: bool = False) -> Family:
    """The commits of the tree that `of` stands in (without it, of all), with the sub-agents' trees.

    With a limit the answer has at least as many, if there are. Tails that a grown file has superseded are left out
    unless asked for, and so are the recordings of runs whose sessions have been imported since."""
    origins = _Origins(store)
    found: list[Commit] = []
    commits: list[Commit] = []
    for commits in windows(store, limit):
        origins.learn(commits)
        found = [commit for commit in commits if not of or origins.within(commit, of)]
        found = found if superseded else _not_superseded(store, found, of)
        if limit is not None and len(found) >= limit:
            break
    read = {commit.id for commit in commits}
    beyond = frozenset(commit.parent for commit in found if commit.parent and commit.parent not in read)
    return Family(commits=found, spawned=origins.spawned(found), beyond=beyond)


class _Origins:
    """Which tree each commit stands in, and which tree each of these was spawned in. Asked once, kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parents: dict[str, str] = {}
        self._roots: dict[str, str] = {}
        self._commits: dict[str, Commit] = {}
        self._places: dict[str, str] = {}

    def learn(self, commits: Sequence[Commit]) -> None:
        """Take note of commits that were read."""
        self._parents.update((commit.id, commit.parent) for commit in commits)
        self._commits.update((commit.id, commit) for commit in commits if not commit.parent)
        roots = [self._first(root) for root in dict.fromkeys(self.root(commit.id) for commit in commits)]
        fresh = [root for root in roots if root.spawned_from and root.id not in self._places]
        self._places.update(dict.fromkeys((root.id for root in fresh), ""))
        self._places.update(spawn_points(self._store, fresh))

    def root(self, commit: str) -> str:
        """The first commit of the tree."""
        passed = []
        while commit not in self._roots and self._parents.get(commit):
            passed.append(commit)
            commit = self._parents[commit]
        if commit not in self._roots:
            self._roots[commit] = commit if commit in self._parents else self._look_up(commit)
        root = self._roots[commit]
        self._roots.update(dict.fromkeys(passed, root))
        return root

    def _look_up(self, commit: str) -> str:
        try:
            return self._store.walk(commit)[-1].id
        except NotFound:
            # Whoever wrote down where a sub-agent was spawned may have had another store.
            return commit

    def within(self, commit: Commit, other: str) -> bool:
        """Whether the commit stands in the other's tree, or in one that was spawned from there."""
        wanted, seen = self.root(other), set()
        root = self.root(commit.id)
        while root != wanted:
            place = self._places.get(root)
            if not place or root in seen:
                return False
            seen.add(root)
            root = self.root(place)
        return True

    def spawned(self, commits: Sequence[Commit]) -> dict[str, str]:
        """For each chain's first commit among these the commit it was spawned at."""
        return {commit.id: place for commit in commits if (place := self._places.get(commit.id))}

    def _first(self, root: str) -> Commit:
        if root not in self._commits:
            self._commits[root] = self._store.get_commit(root)
        return self._commits[root]


def _not_superseded(store: Store, commits: Sequence[Commit], of: str) -> list[Commit]:
    """The commits without the ends that were superseded; one that something hangs from is part of the line, and so is
    the one that was asked for."""
    children: dict[str, int] = {}
    for commit in commits:
        children[commit.parent] = children.get(commit.parent, 0) + 1
    by_id = {commit.id: commit for commit in commits}
    ends = [commit for commit in commits if not children.get(commit.id)]
    hidden: set[str] = set()
    while ends:
        said = store.annotations_of([end.id for end in ends])
        recorded = _past_recordings(store, ends)
        gone = [end for end in ends if end.id != of and (end.id in recorded or is_superseded(said[end.id]))]
        hidden.update(end.id for end in gone)
        for end in gone:
            children[end.parent] -= 1
        above = {end.parent for end in gone}
        ends = [by_id[id] for id in above if id in by_id and not children[id]]
    return [commit for commit in commits if commit.id not in hidden]


def _past_recordings(store: Store, ends: Sequence[Commit]) -> set[str]:
    """The ends of what was recorded of runs whose session goes by its file now. What people named, or made themselves,
    is none of these, nor is what the session stands at or stood at before."""
    made = [end for end in ends if (end.format, end.commit_type) == (DEFAULT_FORMAT, DELTA)]
    made = [end for end in made if end.session_id and end.checkpoint != EXPLICIT]
    named = store.names_at([end.id for end in made])
    kept: dict[str, set[str]] = {}
    for session in {end.session_id for end in made}:
        with contextlib.suppress(Corrupt):  # a row that cannot be read hides nothing
            if (row := store.find_session(session)) is not None and row.source:
                kept[session] = {row.tip, row.live, *row.older}
    return {
        end.id
        for end in made
        if end.session_id in kept and end.id not in kept[end.session_id] and all(map(is_own, named[end.id]))
    }
