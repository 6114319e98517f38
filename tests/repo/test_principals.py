"""What principals keep: as docs/FORMAT.md has it, bounded, and whole when many say something at once."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import harken
from harken.errors import Conflict
from harken.events import System
from harken.repo import Repo, principals
from harken.repo.principal_figures import PrincipalFigures
from support.contexts import memory_repo
from support.sessions import conversation


def test_it_is_written_down_as_the_format_says() -> None:
    repo = memory_repo()
    repo.put_key("claude-code:3f2a", "notes/plan", b"x", time="2026-02-22T08:00:00Z")
    repo.start_session("s/1", principal="claude-code:3f2a", machine="desk", time="2026-02-22T08:00:00Z")

    assert [
        "principals/claude-code%3A3f2a/keys/notes/plan",
        "principals/claude-code%3A3f2a/running/s%2F1",
        "principals/claude-code%3A3f2a/sessions",
    ] == sorted(name.name for name in repo.names())
    (event,) = repo.delta("principals/claude-code%3A3f2a/keys/notes/plan")
    assert isinstance(event, System)
    assert ("key_kept", "notes/plan", repo.put(b"x")) == (
        event.subtype,
        json.loads(event.metadata)["key"],
        json.loads(event.metadata)["artifact"],
    )
    commit = repo.commit("principals/claude-code%3A3f2a/sessions")
    assert ("harken", "", "", "") == (commit.template, commit.principal, commit.machine, commit.session_id)


def test_a_principal_has_so_many_keys_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(principals, "KEYS_EACH", 2)
    repo = memory_repo()
    for key in "ab":
        repo.put_key("me", key, b"x")

    with pytest.raises(Conflict, match="2 keys already"):
        repo.put_key("me", "c", b"x")
    repo.put_key("me", "a", b"y")
    repo.put_key("you", "c", b"x")
    repo.delete_key("me", "b")
    repo.put_key("me", "c", b"x")
    assert ["a", "c"] == [one.key for one in repo.keys("me")]


def test_who_writes_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    harken.open(tmp_path / "store.db").close()

    def say(number: int) -> None:
        with harken.open(tmp_path / "store.db") as own:
            for turn in range(5):
                own.put_key("me", "shared", f"{number} {turn}".encode())
                own.put_key("me", f"own-{number}", str(turn).encode())

    threads = [threading.Thread(target=say, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with harken.open(tmp_path / "store.db") as repo:
        assert 20 == len(repo.history(repo.get_key("me", "shared").commit))
        assert [b"4"] * 4 == [_bytes(repo, f"own-{number}") for number in range(4)]
        assert repo.fsck(read_data=True).ok


def test_what_a_grown_file_has_said_counts_once(tmp_path: Path) -> None:
    """Each time it grows, its last commit gives way to one that says it again, and more."""
    file, session = tmp_path / "aaa.jsonl", conversation("aaa")
    with harken.open(tmp_path / "grown.db") as grown, harken.open(tmp_path / "whole.db") as whole:
        for turn in range(4):
            session.side({"type": "mode", "mode": f"m{turn}"})
            file.write_bytes(session.data)
            list(grown.import_sessions([file], principal="me"))
            counted = grown.principal_metrics("me").total
        list(whole.import_sessions([file], principal="me"))

        assert whole.principal_metrics("me").total == counted
        assert counted == _told_anew(tmp_path / "grown.db")

        file.write_bytes(session.data[: session.data.rindex(b"\n", 0, -1) + 1])  # an older tail comes back
        list(grown.import_sessions([file], principal="me"))
        assert grown.principal_metrics("me").total == _told_anew(tmp_path / "grown.db")


def _told_anew(store: Path) -> PrincipalFigures:
    with harken.open(store) as repo:
        return repo.principal_metrics("me").total


def _bytes(repo: Repo, key: str) -> bytes:
    return repo.get(repo.get_key("me", key).artifact)
