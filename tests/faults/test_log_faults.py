"""The session log under a failing disk and a sudden death, at every system call it makes.

Sampled here; `make test-faults` tries every one. The worker writes two sessions in one file, the second over a torn
line, and says what was acknowledged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.log import Session, scan
from support.faults import Fault, Outcome, run, sample, start_fresh, sweep

WORKER = Path(__file__).parents[1] / "support" / "log_worker.py"


def paths(folder: Path) -> list[Path]:
    return [folder / "session.jsonl", folder / "session.jsonl.lock", folder]


def play(folder: Path, ack: str, fault: Fault | None = None) -> Outcome:
    start_fresh(folder)
    return run(WORKER, folder / "session.jsonl", ack, paths=paths(folder), fault=fault)


def faults(folder: Path, ack: str, *what: str, after: bool = False) -> list[Fault]:
    start_fresh(folder)
    found = sweep(WORKER, folder / "session.jsonl", ack, paths=paths(folder), what=what, after=after)
    start_fresh(folder)
    return found


def check(folder: Path, outcome: Outcome, about: str) -> None:
    """Nothing acknowledged is lost, the log loads, is healed once, and gives out no id twice."""
    log = folder / "session.jsonl"
    acknowledged = [line for line in outcome.lines if line.startswith("msg_")]
    before = log.read_bytes() if log.exists() else b""
    with Session(log) as session:
        kept = [message_id for message_id in session.registry.messages if message_id in set(acknowledged)]
        assert acknowledged == kept, about
        known = set(session.registry.messages)
        fresh = session.log_transcript_entry("agent_001", {"role": "user", "content": "after"})
        assert fresh not in known, about
        assert session.allocate_agent_id() not in session.agents, about
    assert before == log.read_bytes()[: len(before)], about
    again = Session.load(log, readonly=True)
    assert session.agents == again.agents, about
    ids = [record.data["message_id"] for record in scan(log) if record.data]
    assert len(ids) == len(set(ids)), about
    torn = [record for record in scan(log) if record.problem]
    assert len(torn) <= 2, about  # the one the worker tears itself, and one more


def check_all(folder: Path, ack: str, chosen: list[Fault]) -> list[Outcome]:
    outcomes = []
    for fault in chosen:
        outcome = play(folder, ack, fault)
        check(folder, outcome, f"{ack}: {fault}")
        outcomes.append(outcome)
    return outcomes


def check_errors(chosen: list[Fault], outcomes: list[Outcome]) -> None:
    """Whoever meets an error is told in a sentence of ours, never with a bare traceback of the system's."""
    for fault, outcome in zip(chosen, outcomes, strict=True):
        assert not outcome.killed, fault
        if outcome.returncode:
            assert outcome.errors.strip().splitlines()[-1].startswith("harken.errors."), (fault, outcome.errors)


@pytest.mark.parametrize("ack", ["disk", "os"])
def test_a_kill_at_some_call_loses_nothing_acknowledged(tmp_path: Path, ack: str) -> None:
    chosen = sample(faults(tmp_path / "log", ack, "kill"), 14)

    outcomes = check_all(tmp_path / "log", ack, chosen)

    # A thread of its own syncs in the background; whether it gets to its last call depends on the clock.
    assert all(outcome.killed for outcome in outcomes if ack == "disk")
    assert sum(outcome.killed for outcome in outcomes) >= len(outcomes) - 2


@pytest.mark.parametrize("ack", ["disk", "os"])
def test_an_error_at_some_call_is_told_clearly(tmp_path: Path, ack: str) -> None:
    chosen = sample(faults(tmp_path / "log", ack, "EIO", "ENOSPC"), 14)

    check_errors(chosen, check_all(tmp_path / "log", ack, chosen))


def test_a_failed_sync_is_never_tried_again(tmp_path: Path) -> None:
    """The worker goes on after the error; the disk sees no second try on that session."""
    folder = tmp_path / "log"
    outcome = play(folder, "disk-stubborn", Fault("EIO", "fdatasync", 2))

    assert "poisoned twice" in outcome.lines
    assert 2 == outcome.calls["fdatasync"]
    check(folder, outcome, "stubborn")


def test_a_disk_that_claims_a_short_write_is_not_believed(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    outcome = play(folder, "disk", Fault("short", "write", 2))

    assert "Poisoned" in outcome.errors
    check(folder, outcome, "short")


def test_a_signal_in_the_middle_of_a_write_is_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for syscall in ("write", "openat", "fdatasync"):
        outcome = play(folder, "disk", Fault("EINTR", syscall, 2))

        assert 0 == outcome.returncode, outcome.errors
        check(folder, outcome, syscall)


def test_with_ack_disk_every_line_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    """A disk that never syncs acknowledges nothing."""
    folder = tmp_path / "log"
    outcome = play(folder, "disk", Fault("kill", "fdatasync", 1))

    assert [] == outcome.lines


def test_a_new_log_and_its_folder_are_synced_before_anything_is_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for nth in (1, 2):
        outcome = play(folder, "disk", Fault("kill", "fsync", nth))

        assert outcome.killed
        assert [] == outcome.lines
    assert 0 == (folder / "session.jsonl").stat().st_size


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ack", ["disk", "os"])
def test_a_kill_at_every_call_loses_nothing_acknowledged(tmp_path: Path, ack: str) -> None:
    check_all(tmp_path / "log", ack, faults(tmp_path / "log", ack, "kill"))


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ack", ["disk", "os"])
@pytest.mark.parametrize("after", [False, True], ids=["once", "from then on"])
def test_an_error_at_every_call_is_told_clearly(tmp_path: Path, ack: str, after: bool) -> None:
    chosen = faults(tmp_path / "log", ack, "EIO", "ENOSPC", after=after)

    check_errors(chosen, check_all(tmp_path / "log", ack, chosen))


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_every_claimed_short_write_is_noticed(tmp_path: Path) -> None:
    chosen = [fault for fault in faults(tmp_path / "log", "disk", "short") if fault.syscall == "write"]

    for fault, outcome in zip(chosen, check_all(tmp_path / "log", "disk", chosen), strict=True):
        assert "Poisoned" in outcome.errors, fault
