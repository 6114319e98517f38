"""Whoever types a word that is no command or option is told which one does that."""

from __future__ import annotations

from typing import Any

import pytest

from harken.cli import COMMANDS
from harken.cli.suggesting import FILTERS, MEANT, command_for
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


@pytest.mark.parametrize(
    ("option", "filter"), [("--since", "since:7d"), ("--folder", "project:shop"), ("--role", "role:human")]
)
def test_an_option_of_search_is_a_filter_of_its_query(repo: Repo, run: Run, option: str, filter: str) -> None:
    done = run("search", "otter", option, "x")

    assert 2 == done.code
    assert f"In a query that is a filter: {filter}" in done.err


def test_every_filter_has_an_example(repo: Repo) -> None:
    assert repo.search_filters().keys() == FILTERS.keys()


def test_colours_are_no_option(repo: Repo, run: Run) -> None:
    assert "NO_COLOR=1" in run("log", "--no-color").err


@pytest.mark.parametrize(
    ("word", "meant"), [("yesterday", "`harken sessions --since yesterday`"), ("shop", "`--project shop`")]
)
def test_what_begins_no_id_may_be_a_time_or_a_folder(repo: Repo, run: Run, word: str, meant: str) -> None:
    done = run("sessions", word)

    assert (0, "") == (done.code, done.out)
    assert meant in done.err


def test_a_session_is_no_view(repo: Repo, run: Run) -> None:
    assert "`harken view timeline 3f2a91bc`" in run("view", "3f2a91bc").err
    assert "Did you mean 'timeline'?" in run("view", "timelin", "3f2a91bc").err
