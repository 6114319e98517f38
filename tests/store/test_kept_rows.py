"""Rows that a store keeps in memory as it wrote them: what is on disk counts, whatever is kept."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.errors import Corrupt
from harken.store import Draft, SessionRow, SqliteStore, open_store
from harken.store.base import Writer
from harken.testing.store import T0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with contextlib.closing(open_store(path)) as store:
        assert isinstance(store, SqliteStore)
        with store.write() as writer:
            writer.save_session(SessionRow(session="s", runtime="r", title="first"))
        yield store


def change(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def save_at_new_commit(writer: Writer, data: bytes) -> SessionRow:
    commit = writer.commit(Draft(artifact=writer.put(data), format="events-v1", time=T0))
    return writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id))


def test_a_session_saved_by_another_store_is_read_as_it_is_now(store: SqliteStore, path: Path) -> None:
    with contextlib.closing(open_store(path)) as other, other.write() as writer:
        saved = writer.save_session(SessionRow(session="s", runtime="r", title="second"))

    assert saved == store.find_session("s")


@pytest.mark.parametrize("column", ["title = 'other'", "sum = x'0000000000000000'", "messages = 7", "version = 9"])
def test_a_session_damaged_after_it_was_saved_is_not_answered_from_memory(
    store: SqliteStore, path: Path, column: str
) -> None:
    change(path, f"UPDATE sessions SET {column}")

    with pytest.raises(Corrupt):
        store.find_session("s")


def test_a_session_saved_in_a_block_that_failed_leaves_nothing_in_memory(store: SqliteStore, path: Path) -> None:
    before = store.find_session("s")
    with contextlib.suppress(ZeroDivisionError), store.write() as writer:
        save_at_new_commit(writer, b"lost")
        raise ZeroDivisionError
    assert before == store.find_session("s")

    # Its row is to the last byte the one that was lost, since the commit takes that one's number.
    with contextlib.closing(open_store(path)) as other, other.write() as writer:
        saved = save_at_new_commit(writer, b"kept")
    assert saved == store.find_session("s")


def test_the_feed_is_not_gone_on_with_from_a_damaged_row(store: SqliteStore, path: Path) -> None:
    change(path, "UPDATE changes SET what = x'90'")

    with pytest.raises(Corrupt), store.write() as writer:
        writer.save_session(SessionRow(session="t", runtime="r"))
