"""What Tab offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from harken.cli import harken
from harken.repo import Repo
from support.contexts import keep, turn

Run = Any


def offered(*words: str) -> set[str]:
    """What is offered for the last of these words."""
    complete = ShellComplete(harken, {}, "harken", "_HARKEN_COMPLETE")
    return {item.value for item in complete.get_completions(list(words[:-1]), words[-1])}


@pytest.fixture
def kept(repo: Repo) -> Repo:
    repo.fork(keep(repo, turn(1), session_id="winter-1"), "review")
    return repo


@pytest.mark.parametrize("command", ["log", "show", "materialize", "fork", "pin", "compact", "snapshot", "annotate"])
def test_a_ref_is_a_name_a_session_or_a_commit(kept: Repo, command: str) -> None:
    commit = kept.commit("review").short

    assert {"review", "winter-1", commit} == offered(command, "")
    assert {"winter-1"} == offered(command, "wi")
    assert {commit} == offered(command, "ctx-")


def test_formats_names_and_sessions_are_offered_where_they_belong(kept: Repo) -> None:
    assert {"claude-code-v1", "claude-stream-v1"} <= offered("materialize", "review", "--format", "claude")
    assert {"review"} == offered("branch", "")
    assert {"winter-1"} == offered("sessions", "")
    assert {"winter-1", "w"} == offered("view", "dialog", "w"), "a file, by the shell, or a session"


def test_another_store_is_looked_at_where_one_is_named(kept: Repo, tmp_path: Path) -> None:
    assert set() == offered("--store", str(tmp_path / "other.db"), "log", "")
    assert not (tmp_path / "other.db").exists()


def test_a_store_that_is_none_offers_nothing(where: Path) -> None:
    where.parent.mkdir(parents=True, mode=0o700)
    where.write_bytes(b"this is no database, and never was one" * 100)

    assert set() == offered("log", "")
