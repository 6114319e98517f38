"""What a writer leaves for the next one is used only while nobody else has written."""

import contextlib
import sqlite3

import pytest

from harken.errors import HarkenError
from harken.store import Draft, SessionRow, open_store, sql

T0 = 1_771_756_200_000_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def put(store, n, size=20):
    """A checkpoint whose session goes along."""
    with store.write() as writer:
        artifact = writer.put(b"%d " % n * size)
        row = store.find_session("s") or SessionRow(session="s", runtime="r")
        commit = writer.commit(Draft(artifact=artifact, parent=row.tip, format="x", time=T0 + n, session_id="s"))
        writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id, messages=n), expect=row.version)
    return commit


def statements(store, act):
    said = []
    connection = store.db.acquire()
    connection.set_trace_callback(said.append)
    store.db.release(connection)
    act()
    connection.set_trace_callback(None)
    return said


def test_a_second_checkpoint_asks_neither_for_the_session_nor_for_the_newest_change(path):
    with contextlib.closing(open_store(path)) as store:
        put(store, 1)
        put(store, 2)
        said = statements(store, lambda: put(store, 3))
    assert not [statement for statement in said if "FROM sessions" in statement or "FROM changes" in statement]
    assert len(said) <= 13


@pytest.mark.parametrize("other", ["another store", "another connection", "this one", "a statement by itself"])
def test_what_others_wrote_meanwhile_is_seen(path, other):
    with contextlib.closing(open_store(path)) as store, contextlib.closing(open_store(path)) as second:
        put(store, 1)
        tip = put(store, 2)
        if other == "another store":
            tip = put(second, 3)
        elif other == "another connection":
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as plain:
                plain.execute("INSERT INTO changes (n, count, what, sum) SELECT n + 1, 1, what, sum FROM changes")
        elif other == "this one":
            with store.db.transaction():
                store.db.do("DELETE FROM sessions")
        else:
            store.db.do("DELETE FROM sessions")
        if other == "another connection":
            with pytest.raises(HarkenError):  # the newest change is not what was written
                put(store, 4)
        elif other == "another store":
            assert tip.id == put(store, 4).parent
            assert list(range(1, store.last_change() + 1)) == [change.number for change in store.since(0)]
        else:
            assert put(store, 4).parent == ""


def test_what_was_taken_back_is_not_left_behind(path):
    with contextlib.closing(open_store(path)) as store:
        tip = put(store, 1)
        with contextlib.suppress(ZeroDivisionError), store.write() as writer:
            artifact = writer.put(b"gone")
            commit = writer.commit(Draft(artifact=artifact, parent=tip.id, format="x", time=T0 + 5))
            writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id), expect=1)
            raise ZeroDivisionError
        assert tip.id == put(store, 2).parent
        assert list(range(1, store.last_change() + 1)) == [change.number for change in store.since(0)]
        assert store.fsck(read_data=True).findings == []


def test_slots_that_are_made_ahead_hold_nothing_and_go_when_the_store_is_closed(path):
    with contextlib.closing(open_store(path)) as store:
        for n in range(30):
            with store.write() as writer:
                text = b"".join(b"%d" % (n * k * 7919) for k in range(1200))
                writer.commit(Draft(artifact=writer.put(text), format="x", time=T0 + n))
        assert store.db.all(sql.FREE_SLOTS)
        assert store.fsck(read_data=True).findings == []
    with contextlib.closing(open_store(path)) as store:
        assert len(store.db.all(sql.FREE_SLOTS)) < 8
        assert store.fsck(read_data=True).findings == []
