"""`harken resolve`: what a principal knew at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .commits import as_data
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("resolve")
@click.argument("principal")
@click.argument("time", default="now")
@json_option
@pass_repo
def resolve_command(repo: Repo, principal: str, time: str, as_json: bool) -> None:
    """Find what a principal knew at a time

    The newest commit at or before TIME (like 2026-11-15T10:30:00Z; `now` unless given). For example:

        harken resolve claude-code:3f2a91bc 2026-11-15T10:30:00+01:00
    """
    from harken.errors import NotFound

    commit = repo.resolve(principal, None if time == "now" else time)
    if commit is None:
        raise NotFound(
            f"{principal!r} has no commit at or before {time}",
            hint="`harken log --json` shows the principals; they are written like claude-code:SESSION",
        )
    if as_json:
        ui.json_line(as_data(repo.show(commit)))
    else:
        ui.line(commit.short)
