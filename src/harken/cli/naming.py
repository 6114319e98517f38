"""What `branch` and `tag` have in common: list, make, move, remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import completing, ui
from .commits import me, print_names
from .options import NAME, REF

if TYPE_CHECKING:
    from harken.repo import Repo

F = TypeVar("F", bound=Callable[..., Any])


def name_options(function: F) -> F:
    """The arguments and options both commands take."""
    for decorate in (
        click.option("--why", default="", metavar="TEXT", help="The reason, for `harken moves`"),
        click.option("--delete", is_flag=True, help="Remove the name; the commits stay"),
        click.option("--move", is_flag=True, help="Move a name that is there already"),
        click.argument("ref", required=False, type=REF, shell_complete=completing.refs),
        click.argument("name", required=False, type=NAME, shell_complete=completing.own_names),
    ):
        function = decorate(function)
    return function


def run(
    repo: Repo,
    kind: str,
    name: str | None,
    ref: str | None,
    *,
    move: bool,
    delete: bool,
    why: str,
    as_json: bool,
    all: bool = False,
) -> None:
    """Do what the arguments say."""
    from harken.api.names import DeleteNameRequest, NamesRequest, SetNameRequest, delete_name, names, set_name

    if name is None:
        if move or delete:
            raise click.UsageError(f"which {kind}? Give its NAME.")
        print_names(names(repo, NamesRequest(kind=kind, all=all)), as_json=as_json)
        return
    if delete:
        if move or ref:
            raise click.UsageError("--delete takes a NAME and nothing else.")
        gone = delete_name(repo, DeleteNameRequest(name=name, kind=kind, who=me(repo), why=why))
        if as_json:
            ui.json_line(gone)
        ui.note(f"removed {kind} {name}; `harken undo {name}` brings it back")
        return
    if ref is None:
        raise click.UsageError(f"where to? `harken {kind} {name} REF`")
    made = set_name(repo, SetNameRequest(name=name, kind=kind, ref=ref, move=move, who=me(repo), why=why))
    print_names([made], as_json=as_json)
