"""Runtimes by name on the command line: any that is registered, those that can do what is asked in the completion."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ui

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class RuntimeName(click.ParamType):  # type: ignore[type-arg]
    """The name of a runtime that is registered."""

    name = "runtime"

    def __init__(self, ability: str) -> None:
        self.ability = ability

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from harken.api.runtimes import RuntimesRequest, runtimes
        from harken.errors import BadRequest

        warn_of_plugins()
        try:
            (found,) = runtimes(None, RuntimesRequest(name=value))
        except BadRequest as problem:
            able = [one.name for one in runtimes(None, RuntimesRequest(can=self.ability))]
            raise BadRequest(str(problem), hint=f"those that can {self.ability}: {', '.join(able)}") from None
        return found.name

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from harken.api.runtimes import RuntimesRequest, runtimes

        able = runtimes(None, RuntimesRequest(can=self.ability))
        return [CompletionItem(one.name, help=one.label) for one in able if one.name.startswith(incomplete)]


def warn_of_plugins() -> None:
    """Name the plug-ins that cannot be used, each once in a command."""
    from harken.api.runtimes import RuntimesRequest, runtimes

    told = click.get_current_context().meta.setdefault("harken.plugins", set())
    for one in runtimes(None, RuntimesRequest(broken=True)):
        if one.problem not in told:
            told.add(one.problem)
            ui.warn(one.problem)


def working_folder() -> Path:
    """The folder that the command was started in; somebody may have removed it meanwhile."""
    from harken.errors import NotFound

    try:
        return Path.cwd()
    except FileNotFoundError:
        raise NotFound("the working folder is not there any more", hint="change to a folder that is") from None


def environment() -> dict[str, str]:
    """The environment, with a home folder in it even where only the user's account has one, and with the runtimes'
    folders that the configuration names."""
    from .config import homes

    known = dict(os.environ)
    if not known.get("HOME"):
        from harken.errors import NotFound
        from harken.repo import home_folder

        with suppress(NotFound):  # a store and files that are named need none
            known["HOME"] = str(home_folder())
    return known | homes(known)
