"""How a command fails: a sentence and a hint for people, one JSON object for programs, the same exit code for both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken.cli import main, ui
from harken.repo import Repo
from support.commands import LEAVES, needed
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


STORELESS = {
    *("completion", "config path", "config show", "current-context", "doctor"),
    *("std repair", "std show", "std validate"),
}
"""Commands that open no store, or tell of one that is none."""
WITHOUT_STORE = {*STORELESS, "chat", "run", "import", "watch", "serve", "checkpoint"}
"""Commands that need no store, or make one."""
WITHOUT_JSON = {"completion", "config path", "chat", "run"}
"""What they print is for a person or a shell; `--json` is a word that they refuse."""


def failed(done: Any, exit_code: int, code: str) -> None:
    """It ended so, with nothing on stdout and one JSON object on stderr."""
    *remarks, last = done.err.splitlines()
    assert all(remark.startswith("warning: ") for remark in remarks)
    error = json.loads(last)["error"]
    assert (exit_code, "", code) == (done.code, done.out, error["code"])
    assert {"code", "message", "hint"} == error.keys()
    assert error["message"]
    assert error["hint"]


class TestEveryCommand:
    """Under `--json` an error is one object on stderr, and stdout is empty or whole JSON."""

    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some of them write a file when nothing is wrong."""
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("words", LEAVES)
    def test_with_an_option_that_is_none(self, run: Run, words: str) -> None:
        failed(run(*words.split(), "--colour", "--json"), 2, "bad_request")

    @pytest.mark.parametrize("words", [words for words, one in LEAVES.items() if needed(one)])
    def test_with_too_few_words(self, run: Run, words: str) -> None:
        failed(run(*words.split(), "--json"), 2, "bad_request")

    @pytest.mark.parametrize("words", LEAVES)
    def test_with_too_many_words(self, run: Run, words: str) -> None:
        if any(param.nargs == -1 for param in LEAVES[words].params):
            failed(run(*words.split(), "--json", "--json=x"), 2, "bad_request")
        else:
            failed(run(*words.split(), *["x"] * 9, "--json"), 2, "bad_request")

    @pytest.mark.parametrize("words", sorted(WITHOUT_JSON))
    def test_that_prints_no_json(self, run: Run, words: str) -> None:
        failed(run(*words.split(), *needed(LEAVES[words]), "--json"), 2, "bad_request")

    @pytest.mark.parametrize("words", sorted(LEAVES.keys() - WITHOUT_STORE))
    def test_without_a_store(self, run: Run, words: str, where: Path) -> None:
        failed(run(*words.split(), *needed(LEAVES[words]), "--json"), 3, "not_found")

    @pytest.mark.parametrize("words", sorted(LEAVES.keys() - STORELESS - WITHOUT_JSON))
    def test_with_a_store_that_is_none(self, run: Run, words: str, where: Path) -> None:
        where.parent.mkdir(parents=True, mode=0o700)
        where.write_bytes(b"this is no database, and never was one" * 100)

        done = run(*words.split(), *needed(LEAVES[words]), "--json", stdin=b"x")

        error = json.loads(done.err.splitlines()[-1])["error"]
        assert "is not a store of Harken's" in error["message"] or words in ("import", "watch")
        assert (True, "") == (done.code in (1, 2), done.out)
        assert error["hint"]

    @pytest.mark.parametrize("words", sorted(LEAVES.keys() - {"completion", "watch", "serve", *WITHOUT_JSON}))
    def test_about_something_that_is_not_there(self, repo: Repo, run: Run, words: str) -> None:
        """Those that name nothing answer; of the others each line of stdout is JSON, and so is the error."""
        repo.fork(chain(repo, [1]), "b")

        done = run(*words.split(), *needed(LEAVES[words]), "--json", stdin=b"x")

        assert all(isinstance(json.loads(line), dict) for line in done.lines)
        if done.code:
            error = json.loads(done.err.splitlines()[-1])["error"]
            assert ({"code", "message", "hint"}, True) == (error.keys(), bool(error["hint"]))

    def test_that_meets_a_fault_of_ours(self, run: Run, monkeypatch: pytest.MonkeyPatch, repo: Repo) -> None:
        monkeypatch.setattr("harken.api.sessions.sessions", lambda *_, **__: 1 // 0)

        failed(run("sessions", "--json"), 1, "internal")
        with pytest.raises(ZeroDivisionError):
            main(["sessions"])


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
@pytest.mark.parametrize("words", ["sessions", "log nowhere", "checkpoint", "--help", "nothing"])
def test_a_closed_stream_changes_nothing_but_what_is_seen(repo: Repo, where: Path, words: str, closed: str) -> None:
    def run(redirect: str) -> subprocess.CompletedProcess[str]:
        line = f'"$0" -m harken --store "$1" {words} {redirect}'
        return subprocess.run(
            ["/bin/sh", "-c", line, sys.executable, str(where)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    repo.fork(chain(repo, [1]), "b")
    plain, done = run(""), run(closed)

    assert plain.returncode == done.returncode
    assert ("" if "1>" in closed else plain.stdout, "" if "2>" in closed else plain.stderr) == (
        done.stdout,
        done.stderr,
    )


def test_a_usage_error_of_the_group_is_one_too(run: Run) -> None:
    done = run("--json", "materialise")

    assert (2, "bad_request") == (done.code, json.loads(done.err)["error"]["code"])


def test_hostile_text_in_an_error_is_escaped(repo: Repo, run: Run) -> None:
    done = run("show", "\x9b31m\nforged", "--json")

    assert (1, True) == (len(done.err.splitlines()), "\x9b" not in done.err)


def test_no_character_that_a_terminal_obeys_is_in_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    others = [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    obeyed = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *others)]

    for character in obeyed:
        ui.json_line({"é →": [f"before {character} behind"]})

    lines = capsys.readouterr().out.split("\n")
    assert [f"before {character} behind" for character in obeyed] == [json.loads(line)["é →"][0] for line in lines[:-1]]
    assert [] == [line for line, character in zip(lines, obeyed, strict=False) if character in line]


def test_json_behind_two_dashes_is_not_ours(run: Run, tmp_path: Path) -> None:
    done = run("log", "--colour", "--", "--json")

    assert (2, True) == (done.code, done.err.startswith("Usage:"))


def test_a_file_that_is_not_imported_is_an_error_for_programs_too(run: Run, repo: Repo) -> None:
    done = run("import", "/nonexistent/session.jsonl", "--json")

    (error,) = [json.loads(line)["error"] for line in done.err.splitlines()]
    assert (1, True) == (done.code, "/nonexistent/session.jsonl" in error["message"])
    assert json.loads(done.out.splitlines()[0])["error"] in error["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("import", "/nonexistent/session.jsonl"),
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
