"""Every command is a shell around operations of `api`, and every operation has a door."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest

import harken.cli
from harken.api import OPERATIONS
from harken.cli import COMMANDS
from support.commands import LEAVES

FOLDER = Path(harken.cli.__file__).parent

NO_OPERATION = {
    "completion": "prints a script for the shell, about the commands themselves",
    "config path": "only the command line reads the configuration",
    "config show": "only the command line reads the configuration",
}
"""Commands without an operation, and why."""
NO_COMMAND = {
    "changes": "programs follow the store; a person has nothing to do with its numbers",
    "events": "for programs; a person looks at `view timeline`",
    "history": "`log` without what is said about the commits, for programs that walk far",
}
"""Operations without a command, and why."""


def place(words: str, command: click.Command) -> tuple[str, str, str]:
    """A command's words, its module and, where that holds several, its function."""
    module, callback = COMMANDS[words.split()[0]][0], command.callback
    assert callback is not None
    own = callback.__module__.rpartition(".")[2] if " " in words else module
    return words, own, callback.__name__ if " " in words and own == module else ""


COMMAND_LINE = [place(words, command) for words, command in LEAVES.items()]
"""Every command: its words, its module and, in a group, its function."""


def called(module: str, function: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """The operations that a module of the command line imports, those of its own helpers included; with a function,
    what that function imports."""
    tree: ast.AST = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    if function:
        (tree,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        if (node.module or "").startswith("harken.api."):
            found |= {
                alias.name
                for alias in node.names
                if OPERATIONS.get(alias.name) == (node.module or "").rpartition(".")[2]
            }
        elif node.level == 1 and node.module == "naming" and node.module not in seen:
            found |= called(node.module, "", seen | {module})
    return found


@pytest.mark.parametrize(("words", "module", "function"), COMMAND_LINE, ids=LEAVES)
def test_a_command_has_its_operations(words: str, module: str, function: str) -> None:
    operations = called(module, function) | ({"chat"} if module == "chat" else set())

    assert bool(operations) != (words in NO_OPERATION)


def test_a_chat_at_the_terminal_is_the_operation_that_stays_open() -> None:
    """`chat` says what it is given and closes; a person's next words are not known yet, so the command keeps the
    session that the operation opens."""
    assert "OpenChat" in (FOLDER / "chat.py").read_text("utf-8")


def test_an_operation_asks_repo_and_nothing_inside_it() -> None:
    """A remote client answers like `Repo`, and has no store."""
    assert [] == [path.name for path in FOLDER.parent.glob("api/*.py") if "repo.store" in path.read_text("utf-8")]


def test_an_operation_has_a_command_or_a_reason() -> None:
    used = {"chat"}.union(*(called(path.stem, "") for path in FOLDER.glob("*.py")))

    assert OPERATIONS.keys() == used | NO_COMMAND.keys()
    assert set() == used & NO_COMMAND.keys()
