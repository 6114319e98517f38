"""What a command says where there is nothing, where nobody reads on, and where the disk is full."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken.cli import targets
from harken.repo import Repo
from harken.store import copying
from support.contexts import chain
from support.logs import as_bytes, example

Run = Any
ROOM = "nothing was half written; make room and try again"


@pytest.mark.parametrize("options", [[], ["--graph"]])
def test_the_log_of_an_empty_store_says_that_there_is_nothing(repo: Repo, run: Run, options: list[str]) -> None:
    done = run("log", *options)

    assert (0, b"") == (done.code, done.data)
    assert "no commits; `harken import`" in done.err


def test_an_empty_store_is_refused_in_the_words_of_the_command_line(run: Run) -> None:
    done = run("--store", "", "log")

    assert 2 == done.code
    assert "'--store': '' names no file" in done.err


def test_a_store_that_is_not_there_is_no_empty_one_though_a_file_is_called_like_an_option(tmp_path: Path) -> None:
    (tmp_path / "day").touch()
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "harken", "stats", "--by", "day"]

    done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=60)

    assert 3 == done.returncode
    assert done.stderr.startswith("error: there is no store at ")


def test_a_backup_that_has_no_room_says_so(
    repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(repo, [1])

    def full(*_: object) -> None:
        problem = sqlite3.OperationalError("database or disk is full")
        problem.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise problem

    monkeypatch.setattr(copying, "_copy", full)

    done = run("backup", str(tmp_path / "copy.db"))

    assert 1 == done.code
    assert (True, True) == (f"no room to write {tmp_path / 'copy.db'}" in done.err, ROOM in done.err)


def test_a_file_that_has_no_room_says_so(repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = chain(repo, [1])

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(targets, "write_whole", full)

    done = run("materialize", tip.short, "-o", str(tmp_path / "out"))

    assert (1, True) == (done.code, ROOM in done.err)


@pytest.mark.parametrize("command", ["log", "log --json"])
def test_whoever_reads_only_the_first_line_has_had_an_answer(repo: Repo, where: Path, command: str) -> None:
    chain(repo, list(range(1500)))  # more than a pipe and a buffer hold
    script = f'{sys.executable} -m harken --store {where} {command} | head -1 >/dev/null; echo "${{PIPESTATUS[0]}}"'

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)

    assert ("0\n", "") == (done.stdout, done.stderr)


def test_whoever_reads_only_the_first_line_of_a_view_has_had_an_answer(where: Path, tmp_path: Path) -> None:
    long = "a line\n" * 50_000
    lines = [{**line, "content": long} if "content" in line else line for line in example(1)]
    (tmp_path / "log.jsonl").write_bytes(as_bytes(lines))
    command = f"{sys.executable} -m harken --store {where} view dialog {tmp_path / 'log.jsonl'}"

    done = subprocess.run(
        ["bash", "-c", f'{command} | head -1 >/dev/null; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert ("0\n", "") == (done.stdout, done.stderr)
