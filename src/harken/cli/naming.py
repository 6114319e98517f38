"""What `branch` and `tag` have in common: list, make, move, remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import ui
from .commits import me, print_names

if TYPE_CHECKING:
    from harken.repo import Repo

F = TypeVar("F", bound=Callable[..., Any])


def name_options(function: F) -> F:
    """The arguments and options both commands take."""
    for decorate in (
        click.option("--why", default="", metavar="TEXT", help="The reason, for `harken moves`"),
        click.option("--delete", is_flag=True, help="Remove the name; the commits stay"),
        click.option("--move", is_flag=True, help="Move a name that is there already"),
        click.argument("ref", required=False),
        click.argument("name", required=False),
    ):
        function = decorate(function)
    return function


def run(
    repo: Repo, kind: str, name: str | None, ref: str | None, *, move: bool, delete: bool, why: str, as_json: bool
) -> None:
    """Do what the arguments say."""
    if name is None:
        if move or delete:
            raise click.UsageError(f"which {kind}? Give its NAME.")
        print_names(repo, repo.store.names(kind), as_json=as_json)
        return
    if delete:
        if move or ref:
            raise click.UsageError("--delete takes a NAME and nothing else.")
        repo.move(name, None, kind=kind, who=me(), why=why or "delete")
        ui.note(f"removed {kind} {name}; `harken undo {name}` brings it back")
        return
    if ref is None:
        raise click.UsageError(f"where to? `harken {kind} {name} REF`")
    expect = _target(repo, kind, name) if move else ""
    repo.move(name, ref, kind=kind, expect=expect, who=me(), why=why or ("move" if move else "new"))
    found = repo.store.find_name(name)
    print_names(repo, [found] if found else [], as_json=as_json)


def _target(repo: Repo, kind: str, name: str) -> str:
    """Where the name points now."""
    from harken.errors import NotFound

    if (found := repo.store.find_name(name)) is None:
        raise NotFound(f"no {kind} {name!r} to move", hint=f"`harken {kind} {name} REF` makes it")
    return found.target
