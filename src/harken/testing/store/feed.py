"""The feed: every change by its number."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import threading

import pytest

from harken.store import Draft, SessionRow, Store

from .chains import T0, grow


class FeedContract:
    """What a store tells of its changes."""

    def test_every_change_has_the_next_number(self, store: Store) -> None:
        assert (0, []) == (store.last_change(), store.since(0))
        with store.write() as writer:
            art = writer.put(b"x")
            commit = writer.commit(Draft(artifact=art, format="x", time=T0, principal="a"))
            writer.set_policy(art, "pin")
            writer.annotate(commit.id, "summary", "s", time=T0)
            writer.move("main", kind="branch", to=commit.id, expect="", time=T0)
            writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id))
        with store.write() as writer:
            writer.commit(Draft(artifact=art, format="x", time=T0, principal="b"))
            writer.set_policy(art, "default")
            writer.evict(art)
        expected = [
            ("artifact", art, ""),
            ("commit", commit.id, ""),
            ("policy", art, "pin"),
            ("annotation", commit.id, "summary"),
            ("name", "main", "branch"),
            ("session", "s", ""),
            ("sighting", commit.id, "b"),
            ("policy", art, "default"),
            ("eviction", art, ""),
        ]
        told = store.since(0)
        assert expected == [(change.kind, change.subject, change.detail) for change in told]
        assert list(range(1, 10)) == [change.number for change in told]
        assert 9 == store.last_change()
        assert told[4:7] == store.since(4, limit=3)
        assert [] == store.since(9) == store.since(99)

    def test_what_changes_nothing_has_no_number(self, store: Store) -> None:
        commit = grow(store, 1, principal="a")[0]
        before = store.last_change()
        grow(store, 1, principal="a")
        with store.write() as writer:
            writer.put(b"delta 0\n")
            writer.move("x", kind="tag", to=commit.id, expect="", time=T0)
            writer.move("x", kind="tag", to=commit.id, expect=None, time=T0)
        assert [("name", "x")] == [(change.kind, change.subject) for change in store.since(before)]

    def test_numbers_of_what_was_taken_back_are_given_again(self, store: Store) -> None:
        grow(store, 1)
        with pytest.raises(RuntimeError), store.write() as writer:
            writer.put(b"half")
            raise RuntimeError
        grow(store, 1, start=1)
        assert ["artifact", "commit"] * 2 == [change.kind for change in store.since(0)]
        assert [1, 2, 3, 4] == [change.number for change in store.since(0)]

    def test_a_large_transaction_is_told_of_whole(self, store: Store) -> None:
        with store.write() as writer:
            names = [writer.put(b"%d" % n) for n in range(700)]
        assert names == [change.subject for change in store.since(0, limit=10**6)]
        assert names[300:310] == [change.subject for change in store.since(300, limit=10)]

    def test_who_waits_is_woken_by_a_change(self, store: Store) -> None:
        assert not store.wait(0, 0.01)
        waiting = threading.Thread(target=grow, args=(store, 1))
        waiting.start()
        assert store.wait(0, 30)
        waiting.join()
        assert store.wait(0, 0)
        assert not store.wait(store.last_change(), 0)

    def test_a_store_has_an_epoch(self, store: Store) -> None:
        assert 32 == len(store.epoch)
        assert store.epoch == store.epoch
