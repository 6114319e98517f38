"""What only the store in one SQLite file has: connections, the cache, epochs, and an end."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading

import pytest

from harken.errors import Conflict, Corrupt
from harken.store import SqliteStore, backup, fsck, gc, open_store
from harken.testing.store import grow
from support.stores import open_below


def test_the_cache_is_bounded_and_the_least_recently_used_goes(store):
    store.derived.limit = 40_000
    for n in range(6):
        store.cache(f"k{n}", random.Random(n).randbytes(9_000))
        store.cached("k0")
    assert [True, False, False, True, True, True] == [store.cached(f"k{n}") is not None for n in range(6)]
    store.cache("too large", bytes(11_000))
    assert store.cached("too large") is None


def test_a_damaged_cache_is_only_an_empty_cache(path, store):
    store.cache("k", b"x" * 1000)
    store.derived.close()
    (path.parent / "store.db-cache").write_bytes(b"nonsense" * 1000)
    assert store.cached("k") is None
    store.cache("k", b"again")
    assert b"again" == store.cached("k")


def test_a_cache_that_others_write_to_is_read_and_kept(path, store):
    store.cache("k", b"x" * 1000)
    store.cache("other", b"y")
    with contextlib.closing(sqlite3.connect(f"{path}-cache", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert b"x" * 1000 == store.cached("k")
        store.cache("k", b"newer")  # not now
        other.execute("ROLLBACK")
    assert (b"x" * 1000, b"y") == (store.cached("k"), store.cached("other"))


def test_a_cache_that_nobody_may_read_now_is_kept(path, store):
    store.cache("k", b"x")
    store.derived.close()
    with contextlib.closing(sqlite3.connect(f"{path}-cache", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE").fetchall()
        other.execute("BEGIN EXCLUSIVE")
        assert store.cached("k") is None
        other.execute("ROLLBACK")
    assert b"x" == store.cached("k")


def test_a_finished_thread_leaves_no_connection_behind(path, store):
    grow(store, 3)
    before = open_below(path)

    for _ in range(100):
        thread = threading.Thread(target=store.commits)
        thread.start()
        thread.join()

    assert before == open_below(path)


def test_a_connection_that_could_not_be_made_leaves_no_descriptor_behind(path, store):
    grow(store, 3)
    store.close()
    store = open_store(path)
    while store.db._free:  # as if other threads used them
        store.db._free.pop().close()
    path.write_bytes(b"no database" * 1000)
    before = open_below(path)

    for _ in range(20):
        with pytest.raises(Corrupt):
            store.last_change()

    assert before == open_below(path)


def test_many_threads_at_once_share_a_bounded_number_of_connections(path):
    store = open_store(path)
    grow(store, 3)
    gate, seen = threading.Barrier(65), []

    def read():
        gate.wait(30)
        seen.append(len(store.commits()))

    threads = [threading.Thread(target=read) for _ in range(64)]
    for thread in threads:
        thread.start()
    gate.wait(30)
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, len(open_below(path)))
    assert [3] * 64 == seen
    assert 0 < most < 50
    store.close()
    assert [] == open_below(path)


def test_a_store_that_another_thread_writes_to_is_not_closed_under_it(path):
    store = SqliteStore(path, timeout=0.05)
    inside, leave = threading.Event(), threading.Event()

    def write():
        with store.write() as writer:
            writer.put(b"x")
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait(30)
    with pytest.raises(Conflict, match="still being used"):
        store.close()
    leave.set()
    thread.join()
    assert [True] == [store.has(name) for name in store.artifacts()]
    store.close()


def test_a_number_is_not_used_again_when_rows_are_gone(path, store):
    with store.write() as writer:
        writer.put(b"kept")
        gone = writer.put(b"gone", policy="ephemeral", expires=1)
    before = store.last_change()
    assert 1 == gc(store, now=2).expired
    with store.write() as writer:
        new = writer.put(b"new")
    told = store.since(0)
    assert [("eviction", gone), ("artifact", new)] == [(each.kind, each.subject) for each in told[before:]]
    assert [""] == [each.subject for each in told if each.kind == "artifact" and each.number == 2]
    assert fsck(store, read_data=True).ok


def test_a_backup_and_a_repair_have_epochs_of_their_own(tmp_path, path, store):
    grow(store, 3)
    epoch = store.epoch
    backup(store, tmp_path / "copy.db")
    with contextlib.closing(open_store(tmp_path / "copy.db")) as copy:
        assert epoch != copy.epoch
        assert store.since(0) == copy.since(0)
        assert fsck(copy, read_data=True).ok
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE changes SET count = 9 WHERE n = 2")
        raw.commit()
    with contextlib.closing(open_store(path)) as again:
        assert epoch == again.epoch
        assert not fsck(again).ok
        with pytest.raises(Corrupt):
            again.since(0)
        assert fsck(again, repair=True).ok
        assert epoch != again.epoch
        assert {commit.id for commit in again.commits()} == {
            each.subject for each in again.since(0) if each.kind == "commit"
        }


def test_an_answer_in_the_cache_does_not_outlive_the_epoch_it_was_made_in(path, store):
    """#13: what was derived from a damaged store is not given out after a good one was put in its place."""
    grow(store, 1)
    store.cache("k", b"derived")
    backup(store, path.parent / "copy.db")
    store.close()
    os.replace(path.parent / "copy.db", path)
    with contextlib.closing(open_store(path)) as again:
        assert again.cached("k") is None


class TestClosing:
    def test_a_chain_that_begins_meanwhile_does_not_keep_it_from_closing(self, store, monkeypatch):
        for _ in range(2):
            grow(store, 12, session_id=f"s{_}", start=100 * _)
        packer = store.packer
        pack = packer.pack

        def pack_while_others_write(chain):
            packer._touched.add(max(packer._touched) + 1)
            return pack(chain)

        monkeypatch.setattr(packer, "pack", pack_while_others_write)
        store.close()

        assert store.db.closed

    def test_it_is_closed_whatever_packing_raises(self, store, monkeypatch):
        grow(store, 1)

        def fail():
            raise RuntimeError("anything")

        monkeypatch.setattr(store.packer, "at_close", fail)
        with pytest.raises(RuntimeError):
            store.close()

        assert store.db.closed


def test_what_is_too_large_for_a_frame_is_asked_of_another_where_one_is_given(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    contents = [b"small", b"large" * 1_000_000, b"small too"]
    with store.write() as writer:
        names = [writer.put(content) for content in contents]
    asked = []

    def large(name):
        asked.append(name)
        return b"something else"

    assert [b"small", b"something else", b"small too"] == list(store.get_many(names, large=large))
    assert [names[1]] == asked
    assert contents == list(store.get_many(names))
    store.close()
