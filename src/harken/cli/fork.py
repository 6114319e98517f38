"""`harken fork`: a branch from any commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import me
from .options import REF, change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("fork")
@click.argument("ref", type=REF, shell_complete=completing.refs)
@click.option("--name", required=True, help="What the branch is called")
@click.option("--why", default="", metavar="TEXT", help="The reason, for `harken moves`")
@json_option
@change_repo
def fork_command(repo: Repo, ref: str, name: str, why: str, as_json: bool) -> None:
    """Start a branch from any commit

    It shares every byte with the chain it comes from; a checkpoint whose parent is the branch moves it on. For
    example, to ask the reviewer about one finding without the others hearing of it:

        harken fork ctx-442044fa --name finding-1
    """
    from harken.api.names import ForkRequest, fork

    made = fork(repo, ForkRequest(ref=ref, name=name, who=me(repo), why=why))
    if as_json:
        ui.json_line(made)
    else:
        ui.line(made.name)
