"""What Tab offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from harken.cli import harken
from harken.repo import Repo
from support.commands import LEAVES
from support.contexts import keep, turn
from support.viewed import cafe, write_log

Run = Any


def offered(*words: str) -> set[str]:
    """What is offered for the last of these words."""
    complete = ShellComplete(harken, {}, "harken", "_HARKEN_COMPLETE")
    return {item.value for item in complete.get_completions(list(words[:-1]), words[-1])}


@pytest.fixture
def kept(repo: Repo) -> Repo:
    repo.fork(keep(repo, turn(1), session_id="winter-1", template="codex"), "review")
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


REFS = {"ref", "a", "b", "start", "parent", "stop"}
SESSIONS = {"session", "sessions", "session_id", "prefix"}
AGENTS = {"agent", "agents"}
RUNTIMES = {"runtime", "runtimes"}


def offered_for(words: str, param: click.Parameter) -> set[str]:
    """What is offered for that parameter, which may be an argument behind others."""
    if isinstance(param, click.Option):
        return offered(*words.split(), param.opts[0], "")
    arguments = [one for one in LEAVES[words].params if isinstance(one, click.Argument)]
    before = ["winter-1"] * arguments.index(param)
    return offered(*words.split(), *before, "")


class TestEveryPlaceForANameIsCompleted:
    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [(REFS, "review"), (SESSIONS, "winter-1"), (AGENTS, "codex"), (RUNTIMES, "codex")],
        ids=["REF", "SESSION", "AGENT", "RUNTIME"],
    )
    def test_wherever_one_may_stand(self, kept: Repo, kinds: set[str], expected: str) -> None:
        places = [(words, param) for words, one in LEAVES.items() for param in one.params if param.name in kinds]

        assert len(places) >= 4
        assert [] == [f"{words} {param.name}" for words, param in places if expected not in offered_for(words, param)]

    def test_agents_of_a_log_are_offered_without_a_store(self, tmp_path: Path) -> None:
        log = write_log(tmp_path / "cafe.jsonl", cafe())

        assert {"Jack", "Jill"} == offered("view", "dialog", str(log), "J")

    def test_how_far_back_is_a_word_or_a_ref(self, kept: Repo) -> None:
        assert {"compaction", "root", "review"} <= offered("materialize", "review", "--stop", "")


def test_another_store_is_looked_at_where_one_is_named(kept: Repo, tmp_path: Path) -> None:
    assert set() == offered("--store", str(tmp_path / "other.db"), "log", "")
    assert not (tmp_path / "other.db").exists()


def test_a_store_that_is_none_offers_nothing(where: Path) -> None:
    where.parent.mkdir(parents=True, mode=0o700)
    where.write_bytes(b"this is no database, and never was one" * 100)

    assert set() == offered("log", "")
