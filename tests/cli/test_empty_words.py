"""A word that names something is never empty: every command says so, and how it is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest

from harken.cli.options import NotEmpty
from support.commands import LEAVES, needed

Run = Any

NAMING = {"ref", "a", "b", "session", "sessions", "session_id", "words", "agent", "agents", "message", "name", "parent"}
OTHERS = {("run", "words"), ("fork", "name")}
"""Arguments for the runtime; the name of a new branch, which the store checks."""


def cases() -> Iterator[Any]:
    """Each command with each word that names something left empty."""
    for words, command in LEAVES.items():
        for place, param in enumerate(p for p in command.params if isinstance(p, click.Argument)):
            if isinstance(param.type, NotEmpty):
                given = needed(command)
                given += ["nowhere"] * (place - len(given))  # those before it may be left out
                given[place : place + 1] = [""]
                yield pytest.param([*words.split(), *given], param.type, id=f"{words} {param.name}")
        for option in (p for p in command.params if isinstance(p, click.Option) and isinstance(p.type, NotEmpty)):
            yield pytest.param(
                [*words.split(), *needed(command), option.opts[0], ""], option.type, id=f"{words} {option.opts[0]}"
            )


@pytest.mark.parametrize(("args", "kind"), list(cases()))
def test_an_empty_word_is_an_error_with_a_hint(run: Run, args: list[str], kind: NotEmpty) -> None:
    done = run(*args)

    assert (2, "") == (done.code, done.out)
    assert [f"error: an empty {kind.name.upper()} names nothing", f"hint: {kind.hint}"] == done.err.splitlines()


@pytest.mark.parametrize("words", LEAVES)
def test_every_word_that_names_something_is_checked(words: str) -> None:
    unchecked = {
        (words, param.name)
        for param in LEAVES[words].params
        if (param.name in NAMING or param.metavar in ("REF", "SESSION")) and not isinstance(param.type, NotEmpty)
    }

    assert unchecked <= OTHERS
