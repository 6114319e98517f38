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
    "serve": "answers every operation",
    "token create": "says who may ask; nobody may find that out by asking",
    "token list": "says who may ask; nobody may find that out by asking",
    "token revoke": "says who may ask; nobody may find that out by asking",
}
"""Commands without an operation, and why."""
NO_COMMAND = {
    "changes": "programs follow the store; a person has nothing to do with its numbers",
    "commit_rows": "rows for the page, in ranges; a person at a terminal has `log --graph`",
    "compaction": "what a compaction dropped, for the page; a person at a terminal has `diff` and `show`",
    "delete_key": "as `put_key`",
    "document": "the page shows it; a person has `std show` and `std validate`",
    "documents": "the list of the page; a person has `sessions`",
    "end_session": "as `start_session`",
    "event_bytes": "`events` in their own bytes, for clients",
    "events": "for programs; a person looks at `view timeline`",
    "fidelity": "the page asks before one chooses; `resume` says it as it writes",
    "flow_knows": "as `flow_page`; a person at a terminal has `view knows`",
    "flow_page": "rows for the page, in ranges; a person at a terminal has `view flow`",
    "flow_place": "as `flow_page`",
    "get_key": "as `put_key`",
    "history": "`log` without what is said about the commits, for programs that walk far",
    "home": "the first page; a person at a terminal has `sessions` and `stats`",
    "keys": "as `put_key`",
    "lanes": "a drawing for the page; a person at a terminal has `stats SESSION --details`",
    "latest_session": "as `start_session`",
    "principal_metrics": "for whoever runs agents; a person has `stats`",
    "put_key": "agents keep what is theirs; a person has files",
    "raw_records": "the page shows them in ranges; a person has `materialize`",
    "running_sessions": "as `start_session`",
    "search_values": "for programs that help with a search; a person has completion and the hint of an error",
    "session_page": "the head of a session on the page; a person at a terminal has `sessions` and `stats`",
    "session_rows": "`sessions` as the store has them, for clients",
    "sessions_page": "the list on the page; a person at a terminal has `sessions` and `search`",
    "start_session": "whoever runs agents says so; `harken run` needs nobody to",
    "stats_page": "charts for the page; a person at a terminal has `stats`",
    "transcript": "rows for the page, in ranges; a person at a terminal has `export` and `view timeline`",
    "transcript_find": "as `transcript`; in all sessions, `search`",
    "transcript_outline": "as `transcript`",
    "transcript_place": "as `transcript`",
    "transcript_row": "as `transcript`",
    "update_metadata": "`annotate` and `tag` in one, for programs",
    "view_who_knows": "`view_knows` for all agents at once; a person at a terminal has `view knows`",
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
