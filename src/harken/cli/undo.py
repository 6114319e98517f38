"""`harken undo`: the last move of a name, taken back by one more move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .commits import me
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("undo")
@click.argument("name", required=False)
@json_option
@pass_repo
def undo_command(repo: Repo, name: str | None, as_json: bool) -> None:
    """Take back the last move of a branch or tag

    Of NAME, or of whichever was moved last. Undoing is a move too, so undoing twice brings the first one back. For
    example:

        harken undo review
    """
    from harken import ids

    back = repo.undo(name, who=me())
    if as_json:
        ui.json_line({"name": back.name, "kind": back.kind, "target": back.target})
    elif back.target:
        ui.line(f"{ids.commit_ref(back.target)}  {back.name}")
    else:
        ui.note(f"{back.kind} {back.name} is gone again")
