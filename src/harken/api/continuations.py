"""A tree of commits with the sessions that go on from it: what another runtime continued is part of the drawing."""

from __future__ import annotations

from collections.abc import Mapping

from harken.context.family import Family
from harken.errors import HarkenError
from harken.repo import Repo
from harken.store import Commit


def with_continuations(repo: Repo, found: Family, *, limit: int, whole: bool) -> tuple[list[Commit], dict[str, str]]:
    """The commits, newest first, and from the first commit of each chain that begins at another to that one.

    A continued session is a tree of its own: it holds what was handed to it, and says where that came from. `whole`
    says that every commit of the store is among those found. Of a session that goes on from the tree its chain is put
    above the commit it goes on from, whatever its times say: what was handed over is as old as it was there."""
    commits, links = list(found.commits), dict(found.spawned)
    for chain in [] if whole else _chains(repo, commits, limit):
        origin = chain[-1].forked_from
        at = next(at for at, commit in enumerate(commits) if commit.id == origin)
        commits[at:at] = chain
    places = {commit.id: at for at, commit in enumerate(commits)}
    return commits, _forks(commits, places) | links


def _chains(repo: Repo, commits: list[Commit], limit: int) -> list[list[Commit]]:
    known = {commit.id for commit in commits}
    found: list[list[Commit]] = []
    for session, origin in repo.resumed_sessions().items():
        if origin.commit not in known:
            continue
        try:
            chain = repo.history(session, limit)
        except HarkenError:  # it was written, and has not been imported yet
            continue
        # One that is cut off at the limit has no beginning that a line could lead from.
        if chain[-1].forked_from in known and not chain[-1].parent and chain[0].id not in known:
            found.append(chain)
            known |= {commit.id for commit in chain}
    return found


def _forks(commits: list[Commit], places: Mapping[str, int]) -> dict[str, str]:
    """A line leads down: where a chain stands below what it goes on from, none is drawn."""
    return {
        commit.id: commit.forked_from
        for at, commit in enumerate(commits)
        if commit.forked_from and not commit.parent and places.get(commit.forked_from, -1) > at
    }
