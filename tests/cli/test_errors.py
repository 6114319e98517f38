"""How a command fails: a sentence and a hint for people, one JSON object for programs, the same exit code for both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken.repo import Repo
from support.contexts import chain

Run = Any


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (["log", "nowhere"], "not_found", 3),
        (["fork", "b", "--name", "b"], "conflict", 4),
        (["log", "-n", "-1"], "bad_request", 2),
        (["log", "--colour"], "bad_request", 2),
        (["show"], "bad_request", 2),
        (["undo", "b", "--move", "1"], "bad_request", 2),
        (["resolve", "nobody", "now"], "not_found", 3),
        (["materialize", ""], "bad_request", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_error_is_one_json_object_under_json(
    repo: Repo, run: Run, args: list[str], code: str, exit_code: int
) -> None:
    repo.fork(chain(repo, [1]), "b")

    plain, done = run(*args), run(*args, "--json")

    (line,) = done.err.splitlines()
    error = json.loads(line)["error"]
    assert (exit_code, exit_code, "") == (plain.code, done.code, done.out)
    assert ({"code", "message", "hint"}, code) == (error.keys(), error["code"])
    assert error["message"].splitlines()[0] in plain.err


def test_a_usage_error_of_the_group_is_one_too(run: Run) -> None:
    done = run("--json", "materialise")

    assert (2, "bad_request") == (done.code, json.loads(done.err)["error"]["code"])


def test_hostile_text_in_an_error_is_escaped(repo: Repo, run: Run) -> None:
    done = run("show", "\x9b31m\nforged", "--json")

    assert (1, True) == (len(done.err.splitlines()), "\x9b" not in done.err)


def test_json_behind_two_dashes_is_not_ours(run: Run, tmp_path: Path) -> None:
    done = run("log", "--colour", "--", "--json")

    assert (2, True) == (done.code, done.err.startswith("Usage:"))


@pytest.mark.parametrize(
    "words",
    [
        ("import", "/nonexistent"),
        ("import", "/etc/hostname"),
        ("chat", "--file", "/nope/x.jsonl"),
        ("moves", "nosuchname"),
        ("show", "nosuchname"),
    ],
)
def test_what_cannot_be_done_says_what_to_do_instead(run: Run, repo: Repo, words: tuple[str, ...]) -> None:
    done = run(*words)

    assert 0 != done.code
    assert "hint: " in done.err + done.out
