"""A file that is not ours stays as it is, and a repair never calls sound what it has not read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import harken
from harken.errors import BadRequest
from harken.store import fsck


@pytest.mark.parametrize("table", ["notes", "migrations"])
def test_another_programs_file_is_refused_and_not_touched(tmp_path: Path, table: str) -> None:
    path = tmp_path / "foreign.db"
    foreign = sqlite3.connect(path)
    foreign.execute(f"CREATE TABLE {table} (x)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()

    with pytest.raises(BadRequest, match="not a store of Harken's"):
        harken.open(path)

    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_store_that_was_never_closed_is_still_ours(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    first = harken.open(path)
    commit = first.checkpoint(b"\x80", format="events-v1")

    with harken.open(path) as second:
        assert commit.id == second.commit(commit.id).id
    first.close()


def test_what_analyze_leaves_behind_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with harken.open(path) as repo:
        repo.checkpoint(b"\x80", format="events-v1")
    plain = sqlite3.connect(path)
    plain.execute("ANALYZE")
    plain.close()

    with harken.open(path) as repo:
        assert fsck(repo.store, read_data=True).ok


def test_a_repair_reads_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with harken.open(path) as repo:
        repo.checkpoint(b"\x80", format="events-v1")
    plain = sqlite3.connect(path)
    for (table,) in plain.execute("SELECT name FROM sqlite_schema WHERE name IN ('loose', 'frames')").fetchall():
        plain.execute(f"UPDATE {table} SET data = zeroblob(length(data))")
    plain.commit()
    plain.close()

    with harken.open(path) as repo:
        report = fsck(repo.store, repair=True)
        assert any(found.severity == "corrupt" for found in report.findings)
        assert fsck(repo.store, read_data=True).ok


@pytest.mark.parametrize(("table", "column"), [("artifacts", "id"), ("commits", "seal"), ("commits", "sum")])
def test_a_number_where_bytes_belong_is_a_finding_and_not_a_length(tmp_path: Path, table: str, column: str) -> None:
    path = tmp_path / "store.db"
    with harken.open(path) as repo:
        repo.checkpoint(b"\x80", format="events-v1")
    plain = sqlite3.connect(path)
    plain.execute(f"UPDATE {table} SET {column} = {1 << 60}")
    plain.commit()
    plain.close()

    with harken.open(path) as repo:
        assert not fsck(repo.store, read_data=True).ok
