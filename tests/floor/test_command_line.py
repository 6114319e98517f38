"""The table of commands is in step with the commands, and the command line starts quickly and fails clearly."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from harken.cli import COMMANDS, harken, ui
from support.commands import LEAVES


def run(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harken", *args], input=stdin, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says_of_itself(name: str) -> None:
    command = harken.get_command(click.Context(harken), name)

    assert command is not None
    assert COMMANDS[name][1] == (command.help or "").splitlines()[0]


@pytest.mark.parametrize("words", LEAVES)
def test_every_command_shows_an_example(words: str) -> None:
    assert re.search(rf"^    .*harken {words}\b", LEAVES[words].help or "", re.M), "a reader learns from an example"


@pytest.mark.parametrize("words", LEAVES)
def test_every_option_says_what_it_is_for(words: str) -> None:
    silent = [one.name for one in LEAVES[words].params if isinstance(one, click.Option) and not one.help]

    assert [] == silent


def test_help_loads_no_command() -> None:
    script = (
        "import atexit, sys\n"
        "atexit.register(lambda: print([m for m in sys.modules if m.startswith('harken.')], file=sys.stderr))\n"
        "import harken.cli; harken.cli.main(['--help'])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    loaded = ast.literal_eval(done.stderr.strip().splitlines()[-1])
    assert {"harken.cli", "harken.cli.ui", "harken.errors", "harken.text"} == set(loaded)


def test_importing_harken_imports_no_dependency() -> None:
    script = (
        "import sys, harken\n"
        "print({m.split('.')[0] for m in sys.modules} & {'msgspec', 'orjson', 'rich', 'click', 'litellm', 'sqlite3'})"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert "set()" == done.stdout.strip()


def test_a_misspelt_command_gets_a_suggestion_and_exit_2() -> None:
    done = run("materialise")

    assert 2 == done.returncode
    assert "Did you mean 'materialize'?" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    done = run("completion", shell)

    assert 0 == done.returncode
    assert "_HARKEN_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\x202eb"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("carriage\rreturn", "carriage\\x0dreturn"),
    ],
)
def test_control_characters_never_reach_a_terminal(hostile: str, shown: str) -> None:
    assert shown == ui.safe(hostile)


def test_json_is_valid_whatever_the_terminal_can_show(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"message_id":"m1","event_type":"agent_created","agent_id":"a","name":"Zoë 漢 😀"}\n', "utf-8")
    env = os.environ | {"PYTHONIOENCODING": "ascii"}

    done = subprocess.run(
        [sys.executable, "-m", "harken", "view", "tree", str(log), "--json"], env=env, capture_output=True, timeout=60
    )

    assert "Zoë 漢 😀" == json.loads(done.stdout.splitlines()[0])["name"]
