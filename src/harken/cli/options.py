"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from harken.repo import Repo

P = ParamSpec("P")
T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line")


def pass_repo(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T]:
    """Open the store that `--store`, HARKEN_STORE or the default names, and close it behind the command."""

    @click.pass_context
    @functools.wraps(function)
    def wrapper(ctx: click.Context, /, *args: Any, **kwargs: Any) -> T:
        import harken

        repo = harken.open(ctx.find_root().obj)
        ctx.call_on_close(repo.close)
        return ctx.invoke(function, repo, *args, **kwargs)

    return wrapper
