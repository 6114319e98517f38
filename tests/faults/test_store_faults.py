"""Killed, or refused by the disk, at any write: what was acknowledged is there, and fsck has nothing to say."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest

from harken.store import Draft, fsck, open_store
from harken.testing.store import T0
from support.faults import Fault, run, sample, start_fresh, sweep

WORKER = Path(__file__).with_name("store_worker.py")
SCENARIOS = ("checkpoint", "fork", "compact", "collect")
KINDS = ("kill", "EIO", "ENOSPC")


def files(folder):
    path = folder / "store.db"
    return path, [folder, *(Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-lock", "-cache"))]


def strike(folder, scenario, fault):
    """Run into the fault, then look: everything acknowledged is there, and the store goes on."""
    path, watched = files(start_fresh(folder))
    outcome = run(WORKER, path, scenario, paths=watched, fault=fault)
    assert outcome.returncode in (0, 7, 8, -signal.SIGKILL, 137), f"{fault}: {outcome.returncode} {outcome.errors}"
    with contextlib.closing(open_store(path)) as store:
        check(store, outcome.lines, str(fault))
        with store.write() as writer:  # and it takes more
            again = writer.commit(Draft(artifact=writer.put(b"afterwards"), format="x", time=T0))
        assert b"afterwards" == store.get(again.artifact)
        report = fsck(store, read_data=True)
        assert report.ok, f"{fault}: {report.findings}"


def check(store, lines, fault):
    branches = {}
    for line in lines:
        word, *rest = line.split(" ")
        if word == "commit":
            for commit in store.chain(rest[0]):
                store.get(commit.artifact)
        elif word == "branch":
            branches[rest[0]] = rest[1]
        elif word == "artifact":
            store.get(rest[0])
        elif word == "gone":
            assert not store.has(rest[0]), fault
    for name, target in branches.items():
        found = store.find_name(name)
        assert found is not None, fault
        assert target in {commit.id for commit in store.chain(found.target)}, fault
    summaries = [commit for commit in store.commits() if commit.commit_type == "compaction"]
    for commit in summaries:
        assert "in short" == store.annotations(commit.id)[0].value, fault
        assert "compaction" == store.get_commit(commit.parent).checkpoint, fault


def points(folder, scenario):
    path, watched = files(start_fresh(folder))
    return sweep(WORKER, path, scenario, paths=watched, what=KINDS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_acknowledged_is_lost_at_some_writes(tmp_path, scenario):
    for fault in sample(points(tmp_path / "s", scenario), 12):
        strike(tmp_path / "s", scenario, fault)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_acknowledged_is_lost_at_any_write(tmp_path, scenario, kind):
    for fault in points(tmp_path / "s", scenario):
        if fault.what == kind:
            strike(tmp_path / "s", scenario, fault)


@pytest.mark.faults
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("what", ["EIO", "ENOSPC"])
def test_a_disk_that_fails_from_some_point_on_loses_nothing(tmp_path, scenario, what):
    for call in ("pwrite64", "fdatasync"):
        for n in (1, 5, 20, 60, 120):
            strike(tmp_path / "s", scenario, Fault(what, call, n, after=True))
