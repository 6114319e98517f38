"""`harken moves`: where names have been moved on purpose, by whom and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .commits import short_of, stamp, when
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("moves")
@click.argument("name", required=False)
@click.option("-n", "limit", type=click.IntRange(min=0), help="Show at most N moves")
@json_option
@pass_repo
def moves_command(repo: Repo, name: str | None, limit: int | None, as_json: bool) -> None:
    """List where branches and tags have been moved

    Newest first, of one NAME or of all. Branches that advance with a checkpoint are not listed. For example:

        harken moves review
    """
    for move in repo.store.moves(name, limit=limit):
        if as_json:
            ui.json_line(
                {
                    "number": move.number,
                    "name": move.name,
                    "kind": move.kind,
                    "before": move.before,
                    "after": move.after,
                    "time": stamp(move.time),
                    "who": move.who,
                    "why": move.why,
                }
            )
            continue
        before, after = (short_of(repo, end) if end else "nothing" for end in (move.before, move.after))
        about = "  ".join(part for part in (move.who, move.why) if part)
        ui.line(f"{move.number:>4}  {when(move.time)}  {move.kind} {move.name}: {before} → {after}  {about}".rstrip())
