"""`harken log`: the chain behind a commit, or everything there is; as a list or as a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    if ref:
        chain = repo.history(ref, limit=limit)
        commits = _with_tails(repo, chain) if everything else _described(repo, chain)
    else:
        commits = _newest(repo, limit, everything=everything)
    for commit in islice(commits, limit):
        if as_json:
            ui.json_line(as_data(commit))
        else:
            ui.line(one_line(commit))


def _described(repo: Repo, commits: Sequence[Commit]) -> Iterator[Shown]:
    for start in range(0, len(commits), CHUNK):
        yield from repo.describe(commits[start : start + CHUNK])


def _with_tails(repo: Repo, chain: Sequence[Commit]) -> Iterator[Shown]:
    """The chain, and before each commit the tails that hung from it until the file grew."""
    known = {commit.id for commit in chain}
    for commit in chain:
        beside = [child for child in repo.store.children(commit.id) if child.id not in known]
        yield from (shown for shown in repo.describe(beside) if shown.superseded)
        yield from repo.describe([commit])


def _newest(repo: Repo, limit: int | None, *, everything: bool) -> Iterator[Shown]:
    """The store's commits; where only a few are wanted, only the newest are read, and more if some are hidden."""
    from harken.context.family import windows

    seen: set[str] = set()  # somebody may be writing while we look, so a count would not do
    for commits in windows(repo.store, limit):
        fresh = [commit for commit in commits if commit.id not in seen]
        yield from (shown for shown in _described(repo, fresh) if everything or not shown.superseded)
        seen.update(commit.id for commit in fresh)


def _draw(repo: Repo, ref: str | None, *, limit: int | None, everything: bool) -> None:
    from harken.context.family import family
    from harken.context.graph import draw

    of = repo.commit(ref).id if ref else ""
    found = family(repo.store, of=of, limit=limit, superseded=everything)
    marks = "unicode" if ui.speaks_unicode() else "ascii"
    rows = draw(found.commits, found.spawned, beyond=found.beyond, limit=limit, marks=marks)
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        shown = {commit.id: commit for commit in repo.describe([row.commit for row in part if row.commit])}
        for row in part:
            ui.line(f"{row.lines}  {one_line(shown[row.commit.id])}" if row.commit else row.lines)
