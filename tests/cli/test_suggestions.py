"""Whoever types a word that is no command or option is told which one does that."""

from __future__ import annotations

from typing import Any

import pytest

from harken.cli import COMMANDS
from harken.cli.suggesting import MEANT, command_for
from harken.repo import Repo

Run = Any
JOBS = {
    "find": "search",
    "grep": "search",
    "ls": "sessions",
    "list": "sessions",
    "delete": "forget",
    "rm": "forget",
    "cost": "stats",
    "usage": "stats",
    "history": "log",
    "open": "view",
    "continue": "resume",
}


@pytest.mark.parametrize("word", [word for word, command in JOBS.items() if command in COMMANDS])
def test_a_word_for_the_same_job_gives_the_command(run: Run, word: str) -> None:
    done = run(word, "something", "--json")

    assert 2 == done.code
    assert f"Did you mean '{JOBS[word]}'?" in done.err


def test_what_is_misspelled_gives_what_is_spelled_like_it() -> None:
    assert ["materialize", "sessions", "stats", "log"] == [
        command_for(word, COMMANDS) for word in ("materialise", "sesions", "stat", "lo")
    ]


def test_a_word_never_means_a_command_that_is_not_there() -> None:
    assert None is command_for("grep", {"log", "show"})


def test_no_word_means_two_commands_or_is_one() -> None:
    words = [word for group in MEANT.values() for word in group]

    assert sorted(set(words)) == sorted(words)
    assert set() == {*words} & COMMANDS.keys()


def test_what_nobody_knows_says_where_the_commands_are(run: Run) -> None:
    assert "`harken --help` lists the commands" in run("xyzzy").err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["sessions", "--limit", "3"], "-n"),
        (["sessions", "--after", "7d"], "--since"),
        (["sessions", "--folder", "x"], "--project"),
        (["log", "--max", "3"], "-n"),
        (["materialize", "b", "--out", "x"], "-o"),
        (["resume", "b", "--runtime", "codex"], "--in"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_an_option_that_others_have_gives_ours(repo: Repo, run: Run, words: list[str], option: str) -> None:
    done = run(*words)

    assert 2 == done.code
    assert option in done.err.partition("Did you mean ")[2]
