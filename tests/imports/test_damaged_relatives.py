"""Damage to one session stops no other: what goes on from it, or is gone on from, is kept with a link less."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

import harken
from harken.context import chains
from support.sessions import ClaudeSession, conversation

ROOT = "SELECT n FROM commits WHERE parent IS NULL ORDER BY n LIMIT 1"


def copy_of(session: str, name: str, words: str = "") -> bytes:
    """A copy of a conversation that was made by giving it another name, and what was said in it since."""
    own = ClaudeSession(name, salt=f"{name} {words}", start=40)
    if words:
        own.prompt(words)
    return conversation(session, 2).data.replace(f'"{session}"'.encode(), f'"{name}"'.encode()) + own.data


def forked_from(repo: harken.Repo, session: str) -> list[str]:
    return [known.forked_from for known in chains.recall(repo.store.find_session(session)).values()]


@pytest.mark.parametrize(
    "damage",
    [
        f"UPDATE commits SET time = time + 1 WHERE n = ({ROOT})",
        f"UPDATE origins SET sum = x'00' WHERE n = (SELECT origin FROM commits WHERE n = ({ROOT}))",
    ],
    ids=["a commit", "what its commits share"],
)
def test_copies_of_a_damaged_session_are_imported(tmp_path: Path, damage: str) -> None:
    files, store = tmp_path / "files", tmp_path / "store.db"
    files.mkdir()
    with harken.open(store) as repo:
        for name, data in (("aaa", conversation("aaa", 2).data), ("copy", copy_of("aaa", "copy"))):
            (files / f"{name}.jsonl").write_bytes(data)
            list(repo.import_sessions([files]))
        linked = forked_from(repo, "copy")
    with contextlib.closing(sqlite3.connect(store)) as connection:
        assert 1 == connection.execute(damage).rowcount
        connection.commit()
    (files / "copy.jsonl").write_bytes(copy_of("aaa", "copy", "more"))
    (files / "another.jsonl").write_bytes(copy_of("aaa", "another"))

    with harken.open(store) as repo:
        done = {result.session: result.status for result in repo.import_sessions([files])}

        assert ("grown", "new") == (done.get("copy"), done.get("another"))
        assert linked == forked_from(repo, "copy"), "what is known stays"
    assert linked[0]
