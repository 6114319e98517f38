"""`harken tag`: names that stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .naming import name_options, run
from .options import change_repo_if_named, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("tag")
@name_options
@json_option
@change_repo_if_named
def tag_command(
    repo: Repo, name: str | None, ref: str | None, move: bool, delete: bool, why: str, as_json: bool
) -> None:
    """List, make, move or remove tags

    Without a NAME they are listed. A tag is a name for a commit that stays where it is until somebody moves it. For
    example:

        harken tag before-the-rewrite ctx-442044fa
    """
    run(repo, "tag", name, ref, move=move, delete=delete, why=why, as_json=as_json)
