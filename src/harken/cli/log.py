"""`harken log`: the chain behind a commit, or everything there is; as a list or as a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from . import ui
from .commits import as_data, one_line
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.context import Shown
    from harken.repo import Repo
    from harken.store import Commit

CHUNK = 200
"""Commits described at a time, so that the first lines come at once."""


@click.command("log")
@click.argument("ref", required=False)
@click.option("-n", "limit", type=click.IntRange(min=0), help="Show at most N commits")
@click.option("--graph", is_flag=True, help="Draw the branches, and the sub-agents where they were spawned")
@click.option("--all", "everything", is_flag=True, help="Show tails that a grown file has superseded, too")
@json_option
@pass_repo
def log_command(repo: Repo, ref: str | None, limit: int | None, graph: bool, everything: bool, as_json: bool) -> None:
    """Show the chain of commits behind a commit

    Newest first, to the root, past every compaction. Without a REF, every commit of the store. With --graph, the
    commits that branch off the chain are shown as well. For example, the last ten commits of a session:

        harken log -n 10 3f2a91bc

        harken log --graph review
    """
    if graph and not as_json:
        _draw(repo, ref, limit=limit, everything=everything)
        return
    commits = repo.history(ref, limit=limit) if ref else repo.store.commits()
    for commit in islice(_visible(repo, commits, everything=everything or bool(ref)), limit):
        if as_json:
            ui.json_line(as_data(commit))
        else:
            ui.line(one_line(commit))


def _visible(repo: Repo, commits: list[Commit], *, everything: bool) -> Iterator[Shown]:
    for start in range(0, len(commits), CHUNK):
        for commit in repo.describe(commits[start : start + CHUNK]):
            if everything or not commit.superseded:
                yield commit


def _draw(repo: Repo, ref: str | None, *, limit: int | None, everything: bool) -> None:
    from harken.context.graph import draw
    from harken.context.spawned import places

    commits = _family(repo, ref) if ref else repo.store.commits()
    shown = {commit.id: commit for commit in _visible(repo, commits, everything=everything)}
    known = [commit for commit in commits if commit.id in shown]
    left = limit
    for row in draw(known, places(repo.store, known)):
        if row.commit is None:
            ui.line(row.lines)
            continue
        if left == 0:
            break
        left = None if left is None else left - 1
        ui.line(f"{row.lines}  {one_line(shown[row.commit.id])}")


def _family(repo: Repo, ref: str) -> list[Commit]:
    """The chain behind a commit and everything that hangs from it, sub-agents included."""
    found = {commit.id: commit for commit in repo.history(ref)}
    waiting = list(found)
    below = [row for row in repo.sessions() if row.parent and row.tip]
    while waiting:
        _add_descendants(repo, found, waiting)
        sessions = {commit.session_id for commit in found.values()}
        rows = [row for row in below if row.parent in sessions]
        below = [row for row in below if row.parent not in sessions]
        waiting = _add_spawned(repo, found, [row.tip for row in rows])
    return list(found.values())


def _add_descendants(repo: Repo, found: dict[str, Commit], waiting: list[str]) -> None:
    while waiting:
        for child in repo.store.children(waiting.pop()):
            if child.id not in found:
                found[child.id] = child
                waiting.append(child.id)


def _add_spawned(repo: Repo, found: dict[str, Commit], tips: list[str]) -> list[str]:
    """Add the first commits of the chains that were spawned at a commit that was found; the answer is which."""
    from harken.context.spawned import places

    firsts = [repo.store.get_commit(repo.store.walk(tip)[-1].id) for tip in tips]
    spawned = places(repo.store, firsts)
    fresh = [first for first in firsts if spawned.get(first.id) in found and first.id not in found]
    found.update((first.id, first) for first in fresh)
    return [first.id for first in fresh]
