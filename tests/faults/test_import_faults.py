"""An import that is killed, or whose disk fails, leaves a clean store, and the next import completes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harken
from harken import runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.store import fsck
from support import faults
from support.sessions import conversation

WORKER = Path(__file__).with_name("worker_import.py")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sessions")
    for name, turns in (("aaa", 1), ("bbb", 3)):
        (folder / f"{name}.jsonl").write_bytes(conversation(name, turns).data)
    return folder


def paths_of(store: Path) -> list[Path]:
    names = ("", "-wal", "-shm", "-lock", "-journal")
    return [store.parent, *(store.with_name(store.name + name) for name in names)]


def fault_points(sessions: Path, folder: Path) -> list[faults.Fault]:
    store = faults.start_fresh(folder) / "store.db"
    return faults.sweep(WORKER, store, sessions, paths=paths_of(store), what=("kill", "EIO", "ENOSPC"))


def check(sessions: Path, folder: Path, fault: faults.Fault) -> None:
    store = faults.start_fresh(folder) / "store.db"
    outcome = faults.run(WORKER, store, sessions, paths=paths_of(store), fault=fault)

    with harken.open(store) as repo:
        report = fsck(repo.store, read_data=True)
        assert [] == report.findings, f"{fault}: {report.findings}"
        for line in map(json.loads, outcome.lines):
            if tip := line.get("tip"):
                chain = {commit.short for commit in repo.store.chain(_tip(repo, line["session"]))}
                assert tip in chain, f"{fault}: {line['session']} was lost"
        done = list(Importer(repo.store, [runtimes.get("claude-code")]).run(walk(sessions)))
        assert {"aaa", "bbb"} == {each.session for each in done}
        for each in done:
            assert Path(each.source).read_bytes() == repo.materialize(each.session, stop="root").bytes, str(fault)
        assert [] == fsck(repo.store, read_data=True).findings
    if fault.what != "kill":
        assert "Traceback" not in outcome.errors, f"{fault}: {outcome.errors}"


def _tip(repo: harken.Repo, session: str) -> str:
    (row,) = [row for row in repo.store.sessions(prefix=session) if row.session == session]
    return row.tip


def test_a_sample_of_faults_loses_nothing_acknowledged(sessions: Path, tmp_path: Path) -> None:
    for fault in faults.sample(fault_points(sessions, tmp_path / "clean"), 12):
        check(sessions, tmp_path / "run", fault)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_no_fault_at_any_call_loses_anything_acknowledged(sessions: Path, tmp_path: Path) -> None:
    for fault in fault_points(sessions, tmp_path / "clean"):
        check(sessions, tmp_path / "run", fault)
