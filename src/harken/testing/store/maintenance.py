"""Looking after a store: fsck, gc and backup."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from harken import ids
from harken.errors import Conflict
from harken.store import Draft, SessionRow, Store, open_store

from .chains import T0, grow


class MaintenanceContract:
    """What a store does to stay well."""

    def test_a_store_that_is_well_is_said_to_be(self, store: Store) -> None:
        commit = grow(store, 3)[1]
        with store.write() as writer:
            writer.evict(commit.artifact)
        report = store.fsck(read_data=True)
        assert report.ok
        assert (3, 3) == (report.commits, report.artifacts)
        assert ["evicted"] == [found.severity for found in report.findings]

    def test_gc_removes_what_has_expired_and_nothing_needs(self, store: Store) -> None:
        with store.write() as writer:
            policy: dict[str, Any] = {"policy": "ephemeral", "expires": 10}
            gone, used, asked = (writer.put(word, **policy) for word in (b"gone", b"used", b"asked"))
            later = writer.put(b"later", policy="ephemeral", expires=30)
            plain = writer.put(b"plain")
            writer.commit(Draft(artifact=used, format="x", time=T0))
        before = store.last_change()
        assert 1 == store.gc(now=20, dry_run=True, needed=[asked]).expired
        assert (before, True) == (store.last_change(), store.has(gone))
        report = store.gc(now=20, needed=[asked])
        assert (1, 4, [ids.artifact_ref(gone)]) == (report.expired, report.freed, report.names)
        assert [False, True, True, True, True] == [store.has(name) for name in (gone, used, asked, later, plain)]
        assert [("eviction", gone)] == [(change.kind, change.subject) for change in store.since(before)]
        assert 0 == store.gc(now=20, needed=[asked]).expired

    def test_gc_evicts_only_what_a_backing_store_holds_and_never_a_pin(self, store: Store) -> None:
        with store.write() as writer:
            names = [writer.put(b"%d" % n * 1000) for n in range(10)]
            writer.set_policy(names[0], "pin")
        assert 7 == store.gc(limit=3000, backing=lambda name: name != names[1]).evicted
        assert [True, True, *[False] * 7, True] == [store.has(name) for name in names]

    def test_a_backup_is_a_store_of_its_own(self, store: Store, tmp_path: Path) -> None:
        a, b = grow(store, 2, principal="a")
        grow(store, 1, principal="b", machine="m")
        grow(store, 1, checkpoint="session_end")
        with store.write() as writer:
            gone = writer.put(b"gone")
            writer.put(b"kept", policy="pin")
            writer.annotate(a.id, "summary", "said", time=T0)
            writer.move("main", kind="branch", to=a.id, expect="", time=1, why="begin")
            writer.move("main", kind="branch", to=b.id, expect=None, time=2, record=False)
            writer.save_session(SessionRow(session="s", runtime="r", tip=b.id, older=(a.id,)))
            writer.evict(gone)
        assert 0 < store.backup(tmp_path / "copy.db")
        with contextlib.closing(open_store(tmp_path / "copy.db")) as copy:
            assert store.commits() == copy.commits()
            names = [commit.id for commit in store.commits()]
            assert store.sightings_of(names) == copy.sightings_of(names)
            assert store.annotations_of(names) == copy.annotations_of(names)
            assert [store.info(each) for each in store.artifacts()] == [copy.info(each) for each in copy.artifacts()]
            assert (store.names(), store.sessions()) == (copy.names(), copy.sessions())
            assert [move.why for move in store.moves()] == [move.why for move in copy.moves()]
            assert store.epoch != copy.epoch
            assert copy.fsck(read_data=True).ok
        with pytest.raises(Conflict):
            store.backup(tmp_path / "copy.db")
