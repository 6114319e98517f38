"""Every command of the command line that does something, with words that it takes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from harken.cli import COMMANDS, harken


def leaves() -> Iterator[tuple[str, click.Command]]:
    """The commands by their words, those of a group one by one."""
    for name in COMMANDS:
        command = harken.get_command(click.Context(harken), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {word}", inner) for word, inner in command.commands.items())
        else:
            yield name, command


def needed(command: click.Command) -> list[str]:
    """The words without which a command makes no sense; each is the name of something that may not be there."""
    words: list[str] = []
    for param in command.params:
        value = {"runtime": "codex", "shell": "bash"}.get(param.name or "", "nowhere")
        if isinstance(param, click.Argument) and param.required:
            words += [value] * (2 if param.name == "words" else 1)
        elif isinstance(param, click.Option) and param.required:
            words += [param.opts[0], value]
    return words


LEAVES = dict(leaves())
