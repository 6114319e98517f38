"""A discussion is killed at the system calls that write its log, and resumed: nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken import Session
from harken.log import scan
from support import discussion
from support.faults import Fault, run, sample, start_fresh, sweep

WORKER = Path(discussion.__file__)
SAMPLED = 14
SHARES = 8
"""The complete sweeps are cut into so many tests, which may run side by side."""


def ids_in(path: Path) -> list[str]:
    return [record.data["message_id"] for record in scan(path) if record.data is not None]


def kill_and_resume(folder: Path, fault: Fault) -> None:
    log = start_fresh(folder) / "discussion.jsonl"
    outcome = run(WORKER, log, paths=[log, log.with_name(log.name + ".lock"), folder], fault=fault)
    assert outcome.killed, f"{fault} did not strike: {outcome.errors}"
    acknowledged = outcome.lines
    survived = ids_in(log) if log.exists() else []
    assert acknowledged == survived[: len(acknowledged)], f"{fault}: an acknowledged event is lost"

    reply = discussion.play(log, ack="os")

    assert "They have met." == reply, str(fault)
    assert discussion.DIALOG == discussion.dialog(log), str(fault)
    ids = ids_in(log)
    assert survived == ids[: len(survived)], f"{fault}: the log was edited"
    assert len(set(ids)) == len(ids), f"{fault}: an id was used twice"
    with Session.load(log, readonly=True) as session:
        names = [info.name for info in session.agents.values()]
        assert sorted(set(names)) == sorted(names), f"{fault}: an agent was made twice"
        assert [] == session.open_calls


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[Fault]:
    folder = tmp_path_factory.mktemp("points")
    log = folder / "discussion.jsonl"
    return sweep(WORKER, log, paths=[log, log.with_name(log.name + ".lock"), folder])


def test_a_discussion_that_is_killed_comes_to_its_end_when_resumed(points: list[Fault], tmp_path: Path) -> None:
    """Some of the points; `make test-faults` takes them all."""
    for fault in sample(points, SAMPLED):
        kill_and_resume(tmp_path / "run", fault)


def fail_and_resume(folder: Path, fault: Fault) -> None:
    log = start_fresh(folder) / "discussion.jsonl"
    outcome = run(WORKER, log, paths=[log, folder], fault=fault)
    acknowledged = outcome.lines
    survived = ids_in(log) if log.exists() else []
    assert acknowledged == survived[: len(acknowledged)], f"{fault}: an acknowledged event is lost"
    if outcome.returncode:
        assert any(word in outcome.errors for word in ("Poisoned", "OSError")), f"{fault}: {outcome.errors}"

    assert "They have met." == discussion.play(log, ack="os"), str(fault)
    assert discussion.DIALOG == discussion.dialog(log), str(fault)


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> list[Fault]:
    folder = tmp_path_factory.mktemp("failures")
    log = folder / "discussion.jsonl"
    return sweep(
        WORKER,
        log,
        paths=[log, folder],
        what=("EIO", "ENOSPC", "short"),
        syscalls=("write", "pwrite64", "fdatasync", "fsync"),
    )


def test_a_disk_that_fails_stops_the_discussion_with_an_error(failures: list[Fault], tmp_path: Path) -> None:
    """Nobody goes on talking past a word that was not kept; the log still loads and is resumed."""
    for fault in sample(failures, 6):
        fail_and_resume(tmp_path / "run", fault)


@pytest.mark.faults
@pytest.mark.parametrize("share", range(SHARES))
def test_the_disk_may_fail_at_every_write(failures: list[Fault], tmp_path: Path, share: int) -> None:
    for fault in failures[share::SHARES]:
        fail_and_resume(tmp_path / "run", fault)


@pytest.mark.faults
@pytest.mark.parametrize("share", range(SHARES))
def test_a_discussion_may_be_killed_at_every_write(points: list[Fault], tmp_path: Path, share: int) -> None:
    assert len(points) > 2 * SAMPLED
    for fault in points[share::SHARES]:
        kill_and_resume(tmp_path / "run", fault)
