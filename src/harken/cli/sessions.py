"""`harken sessions`: what sessions there are, where they came from and how far they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import ui
from .commits import short_of, stamp, when
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.store import SessionRow


@click.command("sessions")
@click.argument("prefix", default="")
@click.option("--runtime", metavar="R", help="Only those of this runtime")
@click.option("--top", is_flag=True, help="Leave out the sessions of sub-agents")
@json_option
@pass_repo
def sessions_command(repo: Repo, prefix: str, runtime: str | None, top: bool, as_json: bool) -> None:
    """List the sessions in the store

    Oldest first; those whose id begins with PREFIX, or all. For example:

        harken sessions --runtime claude-code --top
    """
    rows = [
        row for row in repo.sessions(prefix) if (runtime is None or row.runtime == runtime) and not (top and row.parent)
    ]
    for row in sorted(rows, key=lambda row: (row.started or 0, row.session)):
        if as_json:
            ui.json_line(as_data(repo, row))
        else:
            _print(repo, row)
    if not rows and not as_json:
        ui.note("no sessions" + (f" begin with {prefix!r}" if prefix else "; `harken import` takes some in"))


def as_data(repo: Repo, row: SessionRow) -> dict[str, Any]:
    """A session for `--json`."""
    return {
        "session": row.session,
        "runtime": row.runtime,
        "title": row.title,
        "tip": repo.store.get_commit(row.tip).short if row.tip else None,
        "tip_id": row.tip or None,
        "started": stamp(row.started),
        "ended": stamp(row.ended),
        "messages": row.messages,
        "parent": row.parent or None,
        "agent": row.agent or None,
        "source": row.source or None,
    }


def _print(repo: Repo, row: SessionRow) -> None:
    from harken.context.summary import excerpt

    tip = short_of(repo, row.tip) if row.tip else "(empty)     "
    inset = "  └ " if row.parent else ""
    ui.line(
        f"{tip}  {when(row.started):<19}  {row.messages:>5} messages  {row.runtime:<12}  "
        f"{inset}{row.session}  {excerpt(row.title, 60)}".rstrip()
    )
