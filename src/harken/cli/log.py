"""`harken log`: the chain behind a commit, or everything there is; as a list or as a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from harken import ids

from . import completing, ui
from .commits import commit_cells
from .opening import pass_repo_or_session
from .options import REF, json_option

if TYPE_CHECKING:
    from harken.repo import Repo

NOTHING = "no commits; `harken import` imports sessions"
PORTION = 200
"""Commits described at a time, so that the first lines come at once."""


@click.command("log")
@click.argument("ref", required=False, type=REF, shell_complete=completing.session_or_file)
@click.option("-n", "limit", type=click.IntRange(min=0), help="Show at most N commits")
@click.option("--graph", is_flag=True, help="Draw the branches, and the sub-agents where they were spawned")
@click.option("--all", "everything", is_flag=True, help="Show tails that a grown file has superseded, too")
@json_option
@pass_repo_or_session
def log_command(repo: Repo, ref: str | None, limit: int | None, graph: bool, everything: bool, as_json: bool) -> None:
    """Show the chain of commits behind a commit

    Newest first, to the root, past every compaction; of a fork, or a session that went back, on into what it goes on
    from. Without a REF, every commit of the store. A line has the commit, when it was made (local time; in a narrow
    window how long ago) and a summary: the one somebody wrote, else what was asked, what was done (`Bash: pytest -q`)
    and what was answered. With --graph, the commits that branch off the chain are shown as well. For example, the last
    ten commits of a session:

        harken log -n 10 3f2a91bc

        harken log --graph review
    """
    from harken.api.commits import LogRequest, log

    if graph and not as_json:
        _draw(repo, ref or "", limit=limit, everything=everything)
        return
    commits = log(repo, LogRequest(ref=ref or "", limit=limit, superseded=everything))
    if as_json:
        for commit in commits:
            ui.json_line(commit)
        return
    shown, wide = 0, ui.width()

    def cells() -> Iterator[Sequence[ui.Words]]:
        nonlocal shown
        for shown, commit in enumerate(commits, start=1):  # noqa: B007 (it is asked for below)
            yield commit_cells(commit, wide)

    ui.rows(cells())
    if not shown and limit != 0:
        ui.note(NOTHING)


def _draw(repo: Repo, ref: str, *, limit: int | None, everything: bool) -> None:
    from harken.api.commits import DescribeRequest, GraphRequest, describe, graph
    from harken.views.graph import draw

    found = graph(repo, GraphRequest(ref=ref, limit=limit, superseded=everything))
    marks = "unicode" if ui.speaks_unicode() else "ascii"
    if not found.commits and limit != 0:
        ui.note(NOTHING)
    wide = ui.width()
    rows = draw(found.commits, found.spawned, beyond=set(found.beyond), limit=limit, marks=marks)
    for start in range(0, len(rows), PORTION):
        part = rows[start : start + PORTION]
        refs = [ids.commit_ref(row.commit.id, len(row.commit.id)) for row in part if row.commit]
        shown = {commit.id: commit for commit in describe(repo, DescribeRequest(refs=refs))}
        for row in part:
            ui.row(row.lines, *(commit_cells(shown[row.commit.id], wide) if row.commit else ()))
