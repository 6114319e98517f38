"""`harken moves`: where names have been moved on purpose, by whom and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import when
from .options import NAME, json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("moves")
@click.argument("name", required=False, type=NAME, shell_complete=completing.names)
@click.option("-n", "limit", type=click.IntRange(min=0), help="Show at most N moves")
@json_option
@pass_repo
def moves_command(repo: Repo, name: str | None, limit: int | None, as_json: bool) -> None:
    """List where branches and tags have been moved

    Newest first, of one NAME or of all. Branches that advance with a checkpoint are not listed. For example:

        harken moves review
    """
    from harken.api.names import MovesRequest, moves

    for move in moves(repo, MovesRequest(name=name or "", limit=limit)):
        if as_json:
            ui.json_line(move)
            continue
        ends = f"{move.before_short or 'nothing'} → {move.after_short or 'nothing'}"
        ui.row(f"{move.number:>4}", when(move.time), f"{move.kind} {move.name}: {ends}", move.who, move.why)
