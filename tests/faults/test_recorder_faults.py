"""The recorder under a failing disk and a sudden death, at every system call it makes: what was acknowledged is in the
document that is recovered, and that document is valid. Sampled here; `make test-faults` tries every one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.capture import MultiAgentRecorder
from harken.errors import NotFound
from harken.formats.std.document import read
from support.faults import Fault, Outcome, run, sample, start_fresh, sweep
from support.std_checks import errors_of

WORKER = Path(__file__).parents[1] / "support" / "recorder_worker.py"
NAME = "2026-03-04-001-clock-multi"


def play(folder: Path, fault: Fault | None = None) -> Outcome:
    start_fresh(folder)
    return run(WORKER, folder / f"{NAME}.json", paths=_paths(folder), fault=fault)


def _paths(folder: Path) -> list[Path]:
    log = folder / f"{NAME}.log.jsonl"
    scratch = folder / f".harken-{7:032x}.tmp"  # as the worker has it
    return [folder, folder / f"{NAME}.json", scratch, log, log.with_name(log.name + ".lock")]


def faults(folder: Path, *what: str) -> list[Fault]:
    start_fresh(folder)
    return sweep(WORKER, folder / f"{NAME}.json", paths=_paths(folder), what=what)


def acknowledged_in(data: dict[str, Any]) -> set[str]:
    """Everything that the worker may say of a document, as it stands there."""
    calls = [*data["tool_calls"], *(call for sub in data["sub_sessions"] for call in sub["tool_calls"])]
    found = {"begun recording"}
    for call in calls:
        found |= {f"call {call['call_id']}", f"open {call['call_id']}"}
        found |= {f"ended {call['call_id']}"} if "output" in call else set()
    for sub in data["sub_sessions"]:
        found |= {f"sub {sub['sub_session_id']}"}
        found |= {f"finished {sub['sub_session_id']}"} if sub["status"] == "success" else set()
    found |= {f"message {message['message_id']}" for message in data["messages"]}
    return found | ({"closed success"} if data["status"] == "success" else set())


def check(folder: Path, outcome: Outcome, about: str) -> None:
    path = folder / f"{NAME}.json"
    if path.exists():  # what is there at any moment is whole, and valid
        assert [] == errors_of(read(path.read_bytes()).data), about
    try:
        document = MultiAgentRecorder.recover(path)
    except NotFound:
        assert [] == outcome.lines, about
        return
    assert set() == set(outcome.lines) - acknowledged_in(document.data), about
    assert [] == errors_of(document.data), about
    assert document.data == read(path.read_bytes()).data, about
    if document.data["status"] == "in_progress":
        MultiAgentRecorder.resume(path).close("failed")
        assert [] == errors_of(read(path.read_bytes()).data), about
    assert {path.name, f"{NAME}.log.jsonl"} == {found.name for found in folder.iterdir() if "tmp" not in found.name}


def check_all(folder: Path, chosen: list[Fault]) -> list[Outcome]:
    outcomes = []
    for fault in chosen:
        outcome = play(folder, fault)
        check(folder, outcome, str(fault))
        outcomes.append(outcome)
    return outcomes


def test_without_a_fault_the_worker_says_what_it_recorded(tmp_path: Path) -> None:
    outcome = play(tmp_path / "rec")

    assert 10 == len(outcome.lines), outcome.errors
    check(tmp_path / "rec", outcome, "clean")


def test_a_kill_at_some_call_loses_nothing_acknowledged(tmp_path: Path) -> None:
    outcomes = check_all(tmp_path / "rec", sample(faults(tmp_path / "rec", "kill"), 10))

    assert all(outcome.killed for outcome in outcomes)


def test_an_error_at_some_call_is_told_clearly(tmp_path: Path) -> None:
    chosen = sample(faults(tmp_path / "rec", "EIO", "ENOSPC"), 10)

    for fault, outcome in zip(chosen, check_all(tmp_path / "rec", chosen), strict=True):
        if outcome.returncode:
            assert outcome.errors.strip().splitlines()[-1].startswith("harken.errors."), (fault, outcome.errors)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_kill_at_every_call_loses_nothing_acknowledged(tmp_path: Path) -> None:
    check_all(tmp_path / "rec", faults(tmp_path / "rec", "kill"))


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_an_error_at_every_call_loses_nothing_acknowledged(tmp_path: Path) -> None:
    check_all(tmp_path / "rec", faults(tmp_path / "rec", "EIO", "ENOSPC"))
