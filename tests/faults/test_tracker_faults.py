"""Killed, or refused by the disk, at any write of log or store: opened again, the chains hold what the log holds."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import harken
from harken.formats.session_log import events_of
from harken.store import fsck
from support.contexts import heard
from support.faults import Fault, run, sample, start_fresh, sweep

WORKER = Path(__file__).with_name("tracker_worker.py")
KINDS = ("kill", "EIO", "ENOSPC")


def places(folder: Path) -> tuple[Path, Path, list[Path]]:
    log, store = folder / "talk.jsonl", folder / "store.db"
    beside = [Path(f"{store}{suffix}") for suffix in ("", "-wal", "-shm", "-lock", "-cache")]
    return log, store, [folder, log, *beside]


def strike(folder: Path, fault: Fault) -> None:
    log, store, watched = places(start_fresh(folder))
    outcome = run(WORKER, log, store, paths=watched, fault=fault)
    assert outcome.returncode in (0, 7, -signal.SIGKILL, 137), f"{fault}: {outcome.returncode} {outcome.errors}"
    acknowledged = {line for line in outcome.lines if line.startswith("msg_")}

    with harken.open(store) as repo:
        with repo.session(log, session_id="s") as session:
            expected = {
                agent: [e for data in session.entries(agent) for e in events_of(data)] for agent in session.agents
            }
            logged = {event.message_id for event in session.events()}
        # The session's own chain holds every line, also before its first agent has heard anything.
        kept = {row.agent or "a1": events for row in repo.sessions() if (events := heard(repo, row.tip))}

        assert acknowledged <= logged, fault
        assert {agent: events for agent, events in expected.items() if events} == kept, fault
        for row in repo.sessions():
            whole = [(e.message_id, e.index) for e in heard(repo, row.tip, stop="root")]
            assert len(whole) == len(set(whole)), f"{fault}: nothing is kept twice"
        if kept:
            assert log.read_bytes() == repo.materialize("s", stop="root").bytes, fault
        assert fsck(repo.store, read_data=True).ok, fault


def points(folder: Path) -> list[Fault]:
    log, store, watched = places(start_fresh(folder))
    return list(sweep(WORKER, log, store, paths=watched, what=KINDS))


def test_chains_and_log_agree_after_faults_at_some_writes(tmp_path: Path) -> None:
    for fault in sample(points(tmp_path / "s"), 14):
        strike(tmp_path / "s", fault)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_chains_and_log_agree_after_a_fault_at_any_write(tmp_path: Path, kind: str) -> None:
    for fault in points(tmp_path / "s"):
        if fault.what == kind:
            strike(tmp_path / "s", fault)
