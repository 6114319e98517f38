"""#47: a backup can go anywhere, and to look at one changes nothing."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

import harken
from harken import ids
from harken.errors import BadRequest, Conflict
from harken.store import backup, open_store, sql
from harken.testing.repo import grow


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    with harken.open(tmp_path / "store.db") as repo:
        grow(repo, 3, session_id="winter")
        repo.backup(tmp_path / "copy.db")
    return tmp_path / "copy.db"


def test_a_backup_needs_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a FAT stick."""

    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        backup(store, tmp_path / "copy.db")
        with pytest.raises(Conflict):
            backup(store, tmp_path / "copy.db")
    with contextlib.closing(open_store(tmp_path / "copy.db", create=False)) as copy:
        assert [] == copy.commits()
    assert not [name for name in os.listdir(tmp_path) if ".part-" in name]


def test_looking_at_a_backup_changes_none_of_its_bytes(copy: Path) -> None:
    before = copy.read_bytes()
    with harken.open(copy) as repo:
        assert 3 == len(list(repo.log()))
        assert ["winter"] == [row.session for row in repo.sessions()]
        repo.materialize("winter", format="codex-v1")
        assert repo.fsck(read_data=True).ok
    assert before == copy.read_bytes()


def test_a_store_of_a_newer_harken_is_not_touched(copy: Path) -> None:
    """Nor is anything made beside it, as the sentence says."""
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        version = sql.STEPS[-1][0] + 1
        row = (version, "later", 0)
        connection.execute("INSERT INTO migrations VALUES (?, ?, ?, ?)", (*row, ids.row_sum("migrations", row)))
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
    before, beside = copy.read_bytes(), sorted(os.listdir(copy.parent))

    with pytest.raises(BadRequest, match="newer Harken") as caught:
        open_store(copy)

    assert "has not been touched" in (caught.value.hint or "")
    assert (before, beside) == (copy.read_bytes(), sorted(os.listdir(copy.parent)))
