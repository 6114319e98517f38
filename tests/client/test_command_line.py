"""`harken --store URL`: commands that only need what is served say the same, others that they need the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.repo import Repo
from harken.service.running import RunningService
from support.command_line import Run
from support.contexts import Ticking, keep, turn
from support.service import serving, token

LOOKING = (
    "log --json",
    "log --graph --json",
    "log winter --json",
    "show winter --json",
    "sessions --json",
    "sessions",
    "agents winter --json",
    "branch --json",
    "tag --json",
    "moves --json",
    "diff winter review --json",
    "resolve me --json",
    "materialize winter --json",
    "materialize winter --format codex-v1",
    "stats --json",
    "stats winter --json",
    "stats --since 2020-01-01 --json",
    "search question --json",
    "sql --json -- SELECT session FROM sessions",
    "view timeline winter --json",
    "view dialog winter --json",
    "trace winter m1a --json",
    "export winter --to md -o -",
    "export winter --to jsonl -o -",
    "secrets --json",
    "index --status --json",
    "std export winter -o - --json",
)
NEEDS_STORE = ("backup copy.db", "serve --port 0", "token list", "watch", "run claude-code", "doctor")


@pytest.fixture
def served(where: Path) -> Iterator[RunningService]:
    with harken.open(where, clock=Ticking()) as repo, serving(repo, path=where.parent / "run" / "socket") as service:
        first = keep(repo, turn(1), session_id="winter", principal="me", template="claude-code")
        repo.fork(first, "review")
        repo.tag(first, "v1")
        keep(repo, turn(2), parent=first, session_id="winter", principal="me", template="claude-code")
        repo.keep_index()
        yield service


def words(line: str) -> list[str]:
    before, mark, query = line.partition(" -- ")
    return [*before.split(), *([query] if mark else [])]


@pytest.mark.parametrize("line", LOOKING)
def test_a_look_over_the_socket_is_the_same(served: RunningService, where: Path, run: Run, line: str) -> None:
    here = run("--store", str(where), *words(line))
    there = run("--store", f"unix:{served.socket}", *words(line))

    assert (0, here.code, here.data, here.err) == (here.code, there.code, there.data, there.err)


def test_what_is_changed_over_http_is_in_the_store(
    served: RunningService, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARKEN_TOKEN", token(served, "context/write", principal="ci", machine="runner"))
    store = ("--store", served.url)

    assert 0 == run(*store, "fork", "winter", "--name", "again").code
    assert 0 == run(*store, "annotate", "again", "said over a wire").code
    made = run(*store, "checkpoint", "--format", "blob-v1", "--json", "-", stdin=b"some bytes").json[0]

    assert ("ci", "runner") == (made["principal"], made["machine"])
    assert ("said over a wire", "ci") == (repo.show("again").summary, repo.show("again").annotations[-1].who)


def test_a_file_is_taken_in_by_its_place_here(
    served: RunningService, repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talk.jsonl").write_bytes(repo.materialize("winter", format="claude-code-v1").bytes)
    monkeypatch.chdir(tmp_path)

    done = run("--store", f"unix:{served.socket}", "import", "talk.jsonl", "--json")

    assert (0, "new") == (done.code, done.json[0]["status"])


@pytest.mark.parametrize("line", NEEDS_STORE)
def test_what_needs_the_store_itself_says_so(
    served: RunningService, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)

    done = run("--store", f"unix:{served.socket}", *line.split())

    assert 2 == done.code
    assert "needs the store itself" in done.err


def test_a_service_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    done = run("--store", f"unix:{tmp_path}/nothing", "log")

    assert 1 == done.code
    assert "nobody answers at unix:" in done.err
    assert "harken serve" in done.err


def test_without_a_token_nobody_is_told_anything(served: RunningService, run: Run) -> None:
    done = run("--store", served.url, "log", "--json")

    assert (1, "not_signed_in") == (done.code, json.loads(done.err)["error"]["code"])
