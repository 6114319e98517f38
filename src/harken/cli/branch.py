"""`harken branch`: names that move along with a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .naming import name_options, run
from .options import change_repo_if_named, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("branch")
@name_options
@click.option("-a", "--all", "all_", is_flag=True, help="List those too that Harken keeps for itself")
@json_option
@change_repo_if_named
def branch_command(
    repo: Repo, name: str | None, ref: str | None, move: bool, delete: bool, why: str, all_: bool, as_json: bool
) -> None:
    """List, make, move or remove branches

    Without a NAME they are listed. A branch is a name that moves along when a checkpoint is made on it; moving it by
    hand is written down, and `harken undo` takes it back. For example:

        harken branch retry ctx-442044fa

        harken branch --move retry ctx-1f0c2d3e --why "the summary was better"
    """
    run(repo, "branch", name, ref, move=move, delete=delete, why=why, as_json=as_json, all=all_)
