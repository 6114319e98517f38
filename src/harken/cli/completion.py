"""`harken completion`: the script that makes a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import harken, ui

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell

    Load it once per shell, or put the line into the shell's start-up file:

        eval "$(harken completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    ui.block(found(harken, {}, "harken", "_HARKEN_COMPLETE").source())
