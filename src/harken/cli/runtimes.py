"""Runtimes by name on the command line: any that is registered, those that can do what is asked in the completion."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ui

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from harken.runtimes import Runtime


class RuntimeName(click.ParamType):  # type: ignore[type-arg]
    """The name of a runtime; the command gets the runtime itself."""

    name = "runtime"

    def __init__(self, ability: str) -> None:
        self.ability = ability

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Runtime:
        from harken import runtimes

        warn_of_plugins()
        return value if isinstance(value, runtimes.Runtime) else runtimes.get(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from harken import runtimes

        able = [name for name in runtimes.names() if self.ability in runtimes.get(name).can]
        return [CompletionItem(name) for name in able if name.startswith(incomplete)]


def warn_of_plugins() -> None:
    """Name the plug-ins that cannot be used, each once in a command."""
    from harken import runtimes

    told = click.get_current_context().meta.setdefault("harken.plugins", set())
    for text in map(str, runtimes.problems()):
        if text not in told:
            told.add(text)
            ui.warn(text)


def environment() -> dict[str, str]:
    """The environment, with a home folder in it even where only the user's account has one."""
    return {"HOME": str(Path.home()), **os.environ}
