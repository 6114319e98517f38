"""What a service that runs still tells when another process has forgotten something: nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken
from harken import Repo
from harken.api import operation, reference
from harken.errors import HarkenError
from support.sessions import ClaudeSession
from support.viewed import cafe, write_log

SECRET = "quicksilver-lantern"
SESSION = "00000000-0000-4000-8000-00000000000c"
OF_A_SESSION = (
    "session_page", "transcript", "transcript_outline", "lanes", "flow_page", "commit_rows", "raw_records",
)  # fmt: skip


def told(repo: Repo, session: str, words: str) -> list[str]:
    """The operations of the page that still tell these words."""
    asked: list[tuple[str, dict[str, Any]]] = [(name, {"session": session}) for name in OF_A_SESSION]
    asked += [("transcript_row", {"session": session, "n": 1}), ("home", {"day": "2026-01-01"}), ("sessions_page", {})]
    return [name for name, fields in asked if words in _answer(repo, name, fields)]


def _answer(repo: Repo, name: str, fields: dict[str, Any]) -> str:
    described = next(one for one in reference.operations() if one.name == name)
    try:
        return msgspec.json.encode(operation(name)(repo, described.request(**fields))).decode()
    except HarkenError as problem:
        return str(problem)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def served(place: Path, tmp_path: Path) -> Iterator[Repo]:
    log = write_log(tmp_path / "cafe.jsonl", cafe())
    session = ClaudeSession(SESSION)
    session.prompt(f"open {SECRET}")
    session.answer(f"{SECRET} {'it is long. ' * 30_000}")
    (tmp_path / f"{SESSION}.jsonl").write_bytes(session.data)
    with harken.open(place) as repo:
        assert "failed" not in {one.status for one in repo.import_sessions([log, tmp_path / f"{SESSION}.jsonl"])}
        yield repo


def test_a_secret_that_another_process_forgot_is_in_no_answer(served: Repo, place: Path) -> None:
    assert {"transcript", "transcript_outline", "commit_rows"} <= set(told(served, SESSION, SECRET))
    with harken.open(place) as other:
        other.forget(secret=[SECRET])

    assert [] == told(served, SESSION, SECRET)


def test_a_session_that_another_process_forgot_is_in_no_answer(served: Repo, place: Path) -> None:
    words = "Only smile"
    assert {"transcript", "flow_page"} <= set(told(served, "cafe", words))
    with harken.open(place) as other:
        other.forget("cafe")

    assert [] == told(served, "cafe", words)
