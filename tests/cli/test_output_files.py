"""Files that a command writes: nothing is written over that nobody offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.repo import Repo
from support.contexts import chain

Run = Any


@pytest.fixture
def kept(repo: Repo) -> Repo:
    repo.fork(chain(repo, [1]), "b")
    return repo


def test_a_file_that_exists_is_left_alone_and_the_hint_names_force(kept: Repo, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("mine")

    done = run("materialize", "b", "-o", str(file))

    assert (4, "mine") == (done.code, file.read_text())
    assert "--force" in done.err


def test_force_replaces_a_file(kept: Repo, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("mine")

    assert 0 == run("materialize", "b", "-o", str(file), "--force").code
    assert kept.materialize("b").bytes == file.read_bytes()


def test_a_pipe_or_device_is_written_to(kept: Repo, run: Run) -> None:
    assert 0 == run("materialize", "b", "-o", "/dev/null").code


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-lock", "-cache"])
def test_the_files_of_the_store_are_never_written_over(
    kept: Repo, run: Run, where: Path, tmp_path: Path, suffix: str
) -> None:
    done = run("materialize", "b", "-o", f"{where}{suffix}", "--force")

    assert (2, True) == (done.code, "a file of the store" in done.err)
    assert 0 == run("log", "b").code


def test_the_store_by_another_name_is_the_store(kept: Repo, run: Run, where: Path, tmp_path: Path) -> None:
    (tmp_path / "soft.db").symlink_to(where)
    (tmp_path / "hard.db").hardlink_to(where)

    for name in ("soft.db", "hard.db"):
        assert 2 == run("materialize", "b", "-o", str(tmp_path / name), "--force").code
    assert 0 == run("log", "b").code


def test_a_new_chat_does_not_go_on_in_a_file_that_is_there(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("mine")

    done = run("chat", "--file", str(file))

    assert (2, "mine") == (done.code, file.read_text())
    assert "hint: " in done.err
