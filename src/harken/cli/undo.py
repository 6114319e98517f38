"""`harken undo`: the last move of a name, taken back by one more move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import me
from .options import NAME, change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("undo")
@click.argument("name", required=False, type=NAME, shell_complete=completing.names)
@click.option(
    "--move", "number", type=click.IntRange(min=1), help="The move to take back, as `harken moves` numbers it"
)
@json_option
@change_repo
def undo_command(repo: Repo, name: str | None, number: int | None, as_json: bool) -> None:
    """Take back the last move of a branch or tag

    Without a NAME, of the branch or tag that was moved last; with the number of a move, that move. Undoing is a move
    too, so undoing twice brings the first one back: to go further back, give the numbers one by one. For example:

        harken undo review

        harken moves review; harken undo 7
    """
    if name is not None and number is not None:
        raise click.UsageError("give a NAME or a move, not both.")
    from harken.api.names import UndoRequest, undo

    back = undo(repo, UndoRequest(name=name or "", number=number, who=me(repo)))
    if as_json:
        ui.json_line(back)
    elif back.target:
        ui.row(back.short, back.name)
    else:
        ui.note(f"{back.kind} {back.name} is removed again")
