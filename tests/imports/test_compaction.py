"""The last turn before a compaction is a place of its own: found, read as it was, and forked from (#31)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.rollouts import THREAD, Rollout, message
from support.sessions import ClaudeSession

from .conftest import Import


def claude(compacted: bool = True) -> tuple[ClaudeSession, str]:
    session = ClaudeSession("sss")
    session.prompt("find the leak")
    session.call("Bash", "three files")
    last = session.answer("it is in the second file")
    if compacted:
        session.compact("a leak was looked for")
        session.prompt("go on")
    return session, last


def test_in_claude_code(repo: Any, take_in: Import, tmp_path: Path) -> None:
    session, last = claude()
    (tmp_path / "sss.jsonl").write_bytes(session.data)
    before = claude(compacted=False)[0].data

    take_in(tmp_path)

    assert before == repo.materialize(f"sss@{last}").bytes
    fork = repo.fork(f"sss@{last}", name="second-try")
    assert before == repo.materialize(fork.name).bytes
    assert session.data == repo.materialize("sss", stop="root").bytes
    assert b"find the leak" not in repo.materialize("sss").bytes


def test_in_codex(repo: Any, take_in: Import, tmp_path: Path) -> None:
    """Compacted within a turn, as it does by itself; before one begins it is a turn of its own anyway."""
    before = Rollout().event("task_started").user("find the leak").model("it is in the second file")
    told = before.data
    last = told.rindex(b"\n", 0, -1) + 1
    whole = before.compacted(message("user", "a leak was looked for")).model("as I said").data
    (tmp_path / f"rollout-2026-02-22T10-30-00-{THREAD}.jsonl").write_bytes(whole)

    take_in(tmp_path)

    assert told == repo.materialize(f"{THREAD}@@{last}").bytes
    fork = repo.fork(f"{THREAD}@@{last}", name="second-try")
    assert told == repo.materialize(fork.name).bytes
    assert b"find the leak" not in repo.materialize(THREAD).bytes
