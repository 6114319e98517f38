"""Where the disk is nearly full, what fits goes in."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.store.db import Database
from support.sessions import conversation

PAGES = 400


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store that cannot grow beyond a few hundred pages."""
    connect = Database._connect

    def limited(self: Database) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute(f"PRAGMA max_page_count={PAGES}")
        return connection

    monkeypatch.setattr(Database, "_connect", limited)
    with harken.open(tmp_path / "store" / "store.db") as opened:
        yield opened


def _take_in(repo: Any, folder: Path) -> dict[str, str]:
    taking = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return {Path(outcome.source).stem: outcome.status for outcome in taking.run(walk(folder))}


def _large(session: str, size: int) -> bytes:
    talk = conversation(session, 2)
    for _ in range(10):
        talk.prompt(os.urandom(size // 20).hex())
    return talk.data


def test_a_session_that_does_not_fit_fails_alone(small: Any, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name, data in {
        "aaa": conversation("aaa", 2).data,
        "bbb": _large("bbb", 3_000_000),
        "ccc": conversation("ccc", 2).data,
    }.items():
        (files / f"{name}.jsonl").write_bytes(data)

    assert {"aaa": "new", "bbb": "failed", "ccc": "new"} == _take_in(small, files)
    assert ["aaa", "ccc"] == sorted(row.session for row in small.store.sessions())
