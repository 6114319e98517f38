"""Opening a store in one SQLite file: where it lies, who may read it, and which schema is taken."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from harken import ids
from harken.errors import BadRequest, HarkenError
from harken.store import SqliteStore, backup, open_store, sql
from harken.store.opening import locate
from harken.testing.store import grow
from support.stores import busy_store

NEWEST = sql.STEPS[-1][0]
VERSIONS = [(version,) for version, _, _ in sql.STEPS]
NEXT_STEP = (NEWEST + 1, "a table more", ("CREATE TABLE more (x INTEGER)", "CREATE INDEX more_by_x ON more (x)"))


def test_an_older_store_is_upgraded_in_one_transaction(path, store):
    tip = busy_store(store)
    store.close()
    broken = (*sql.STEPS, NEXT_STEP, (NEWEST + 2, "does not work", ("CREATE TABLE half (x)", "CREATE NONSENSE")))
    with pytest.raises(HarkenError):
        SqliteStore(path, steps=broken)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert VERSIONS == raw.execute("SELECT version FROM migrations").fetchall()
        assert [] == raw.execute("SELECT name FROM sqlite_schema WHERE name IN ('more', 'half')").fetchall()
    with contextlib.closing(SqliteStore(path, steps=(*sql.STEPS, NEXT_STEP))) as newer:
        assert [*VERSIONS, (NEWEST + 1,)] == newer.db.all("SELECT version FROM migrations")
        assert tip == newer.get_commit(tip.id)


def test_a_newer_store_is_refused_and_not_touched(path, store):
    grow(store, 1)
    store.close()
    SqliteStore(path, steps=(*sql.STEPS, NEXT_STEP)).close()
    before = path.read_bytes()
    with pytest.raises(BadRequest, match="newer Harken"):
        open_store(path)
    assert before == path.read_bytes()


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        with contextlib.closing(open_store(tmp_path / "a" / "b" / "store.db")) as store:
            busy_store(store)
            store.cache("k", b"x")
            modes = {
                name: stat.S_IMODE(os.stat(tmp_path / "a" / "b" / name).st_mode)
                for name in os.listdir(tmp_path / "a" / "b")
            }
            backup(store, tmp_path / "a" / "copy.db")
    finally:
        os.umask(before)
    assert {0o600} == set(modes.values())
    assert {"store.db", "store.db-wal", "store.db-shm", "store.db-lock", "store.db-cache"} <= set(modes)
    assert 0o700 == stat.S_IMODE(os.stat(tmp_path / "a" / "b").st_mode)
    assert 0o600 == stat.S_IMODE(os.stat(tmp_path / "a" / "copy.db").st_mode)


def test_a_folder_stands_for_the_file_in_it(tmp_path):
    with contextlib.closing(open_store(tmp_path)) as store:
        assert str(tmp_path / "harken.db") == store.location
    with contextlib.closing(open_store(f"sqlite:{tmp_path}/other.db")) as store:
        assert str(tmp_path / "other.db") == store.location
    with pytest.raises(BadRequest) as caught:
        open_store("postgres://somewhere/else")
    assert "`memory:`, `sqlite:`" in caught.value.hint


@pytest.mark.parametrize(
    ("url", "shown"),
    [("postgres://me:wood-4@host/db", "`./postgres:…`"), ("postgres://host/db", "`./postgres://host/db`")],
)
def test_the_error_about_an_address_repeats_no_password(url: str, shown: str) -> None:
    with pytest.raises(BadRequest) as refused:
        open_store(url)

    assert shown in refused.value.hint
    assert "wood-4" not in f"{refused.value} {refused.value.hint}"


def test_another_kind_of_store_comes_from_a_plug_in(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(
        "from harken.store import MemoryStore\n"
        "def open(url, *, create):\n"
        "    store = MemoryStore()\n"
        "    store.location = url\n"
        "    return store\n"
    )
    info = tmp_path / "elsewhere-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: elsewhere\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[harken.stores]\nelse = elsewhere:open\nbroken = elsewhere:nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "else://there/1" == open_store("else://there/1").location
    with pytest.raises(HarkenError, match="broken: addresses cannot be loaded"):
        open_store("broken:x")
    with pytest.raises(BadRequest) as caught:
        open_store("other://x")
    assert "`else:`" in caught.value.hint


def test_a_path_with_a_colon_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(open_store("a:b.db")) as store:
        assert str(tmp_path / "a:b.db") == store.location
    for name in ("c:\\store.db", "./unknown:foo", "folder.d/x:y"):
        assert Path(name) == locate(name)
    assert Path("unknown:foo") == locate(Path("unknown:foo"))
    Path("unknown:bar").touch()
    assert Path("unknown:bar") == locate("unknown:bar")


@pytest.mark.parametrize(
    "where", ["unknown:foo", "postgres://somewhere", "file:x.db", "memory:name", "HTTP:x", "sqlite:"]
)
def test_what_looks_like_a_url_and_is_none_of_ours_is_refused(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest) as caught:
        open_store(where)
    assert caught.value.hint
    assert [] == list(tmp_path.iterdir())


def test_a_scheme_may_be_written_in_capitals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for where in ("memory:", "MEMORY:", "memory://"):
        with contextlib.closing(open_store(where)) as store:
            assert "memory:" == store.location
    with contextlib.closing(open_store("SQLite:x.db")) as store:
        assert str(tmp_path / "x.db") == store.location


def test_a_store_of_the_earlier_schema_is_refused_and_said_to_be_imported_again(path):
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT, time INTEGER, sum BLOB)")
        row = (1, "the first schema", 0)
        old.execute("INSERT INTO migrations VALUES (?, ?, ?, ?)", (*row, ids.row_sum("migrations", row)))
        old.execute("CREATE TABLE commits (n INTEGER PRIMARY KEY)")
        old.execute("CREATE TABLE frames (n INTEGER PRIMARY KEY)")
        old.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
        old.commit()

    with pytest.raises(BadRequest, match="never released") as caught:
        open_store(path)

    assert "import the sessions again" in caught.value.hint
