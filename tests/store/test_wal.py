"""#14: what is only in the write-ahead log is salvaged with the rest, and nothing is removed that is not copied."""

from __future__ import annotations

import contextlib
import gc
import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import Corrupt
from harken.store import fsck, open_store
from harken.store.wal import Log
from harken.testing.store import grow
from support.damage import PAGE

NOTES = ["a", "b", "c"]


def left_by_a_killed_program(path):
    """A store as a program left it that was killed: three notes about its first commit are in the log only."""
    with contextlib.closing(open_store(path.with_name("running.db"))) as store:
        grow(store, 3)
        with contextlib.closing(sqlite3.connect(store.path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for note in NOTES:
            with store.write() as writer:
                writer.annotate(store.commits()[0].id, "note", note, time=1)
        for suffix in ("", "-wal", "-lock"):
            shutil.copy(f"{store.path}{suffix}", f"{path}{suffix}")


def notes(store):
    return [note.value for commit in store.commits() for note in store.annotations(commit.id)]


@pytest.fixture
def refused(path):
    """A store that SQLite refuses, since its first page is gone, with a log beside it."""
    left_by_a_killed_program(path)
    with path.open("r+b") as file:
        file.write(bytes(PAGE))
    return path


def test_what_is_only_in_the_log_of_a_refused_file_survives_its_repair(refused):
    with contextlib.closing(open_store(refused, damaged=True)) as store:
        assert store.problem is not None
        assert NOTES == notes(store)
        assert fsck(store, repair=True).ok
        assert NOTES == notes(store)
    with contextlib.closing(open_store(refused)) as store:
        assert NOTES == notes(store)
        assert fsck(store, read_data=True).ok


@pytest.mark.parametrize("damaged", [False, True])
def test_a_look_at_a_refused_file_leaves_it_and_its_log_as_they_are(refused, damaged):
    """Whoever closes a connection that may write merges the log into the file, and removes it."""
    before = [Path(f"{refused}{suffix}").read_bytes() for suffix in ("", "-wal")]
    for _ in range(2):
        if damaged:
            with contextlib.closing(open_store(refused, damaged=True)) as store:
                assert NOTES == notes(store)
        else:
            with pytest.raises(Corrupt, match="damaged"):
                open_store(refused)
        gc.collect()
        assert before == [Path(f"{refused}{suffix}").read_bytes() for suffix in ("", "-wal")]


def test_the_log_is_copied_aside_with_the_file(refused):
    before = [Path(f"{refused}{suffix}").read_bytes() for suffix in ("", "-wal")]
    with contextlib.closing(open_store(refused, damaged=True)) as store:
        saved = fsck(store, repair=True).saved
    assert before == [Path(f"{saved}{suffix}").read_bytes() for suffix in ("", "-wal")]
    assert 0o600 == Path(f"{saved}-wal").stat().st_mode & 0o777


def test_the_log_of_a_store_that_sqlite_opens_is_in_the_copy(path):
    left_by_a_killed_program(path)
    with contextlib.closing(open_store(path)) as store:
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE facts SET value = 'x'")
            other.commit()
        saved = fsck(store, repair=True).saved
    with contextlib.closing(sqlite3.connect(saved)) as copy:
        assert [(note,) for note in NOTES] == copy.execute("SELECT value FROM annotations ORDER BY n").fetchall()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.binary(min_size=1, max_size=9000), max_size=4), max_size=6), st.data())
def test_the_pages_of_a_log_are_those_that_sqlite_reads(tmp_path_factory, transactions, drawn):
    """Whatever was committed, and wherever the log was cut."""
    path = tmp_path_factory.mktemp("log") / "x.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        for pragma in (
            f"page_size = {PAGE}",
            "auto_vacuum = INCREMENTAL",
            "journal_mode = WAL",
            "wal_autocheckpoint = 0",
        ):
            writer.execute(f"PRAGMA {pragma}").fetchall()
        writer.execute("CREATE TABLE t (x BLOB)")
        for values in transactions:
            writer.execute("BEGIN")
            writer.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
            writer.execute("COMMIT")
        data, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    log = log[: drawn.draw(st.integers(0, len(log)))]
    path.write_bytes(data)
    Path(f"{path}-wal").write_bytes(log)
    with Path(f"{path}-wal").open("rb") as file:
        found = Log(file.fileno(), PAGE)
        count = found.count if found.count is not None else len(data) // PAGE
        pages = [found.page(n) or data[(n - 1) * PAGE : n * PAGE] for n in range(1, count + 1)]
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(path.with_name("copy.db"))) as copy,
    ):
        source.backup(copy)
    merged = path.with_name("copy.db").read_bytes()
    # A backup counts as a change of its own: the header says so in its first page.
    assert merged[PAGE:] == b"".join(pages[1:])


def test_a_log_that_is_no_log_says_nothing(tmp_path):
    for data in (b"", b"x" * 31, bytes(5000), b"\x37\x7f\x06\x82" + bytes(5000)):
        (tmp_path / "log").write_bytes(data)
        with (tmp_path / "log").open("rb") as file:
            assert (None, None) == (Log(file.fileno(), PAGE).count, Log(file.fileno(), PAGE).page(1))


@pytest.mark.parametrize("place", [10, 32 + 8, 32 + 20, 32 + 500], ids=["header", "salt", "sum", "page"])
def test_a_damaged_log_is_refused_before_it_is_merged_and_a_repair_takes_what_lies_behind_the_damage(path, place):
    left_by_a_killed_program(path)
    log = Path(f"{path}-wal")
    data = bytearray(log.read_bytes())
    data[place] ^= 1
    log.write_bytes(data)
    with pytest.raises(Corrupt, match="transactions that were committed") as told:
        open_store(path)
    assert "--repair" in told.value.hint
    assert bytes(data) == log.read_bytes()
    with contextlib.closing(open_store(path, damaged=True)) as store:
        report = fsck(store, repair=True)
        assert bytes(data) == Path(f"{report.saved}-wal").read_bytes()
    with contextlib.closing(open_store(path)) as store:
        assert NOTES[-1] in notes(store)
        assert fsck(store, read_data=True).ok


def test_a_torn_last_transaction_is_no_damage(path):
    """When the power fails, the disk may have the end of what was being written and not its middle."""
    left_by_a_killed_program(path)
    log = Path(f"{path}-wal")
    data = log.read_bytes()
    log.write_bytes(data[:-PAGE] + bytes(PAGE))
    with contextlib.closing(open_store(path)) as store:
        assert NOTES[:-1] == notes(store)


def test_a_repair_removes_what_a_killed_one_left(refused):
    for suffix in ("", "-wal", "-lock"):
        Path(f"{refused}.repair-77{suffix}").write_bytes(b"unfinished")
    with contextlib.closing(open_store(refused, damaged=True)) as store:
        fsck(store, repair=True)
    assert [] == list(refused.parent.glob("*.repair-*"))
