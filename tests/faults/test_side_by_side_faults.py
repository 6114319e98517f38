"""A session whose calls run side by side is killed at random moments: it comes to the same end, and what may not be
done twice is not."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from harken import Session
from harken.log import scan
from support import beside

SAMPLED = 5
ALL = 50


def run(folder: Path, kill_after: float | None) -> float:
    """Play in a process of its own, and how long that took; where a time is given, it is killed then."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, beside.__file__, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert "begun\n" == worker.stdout.readline()
        begun = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            worker.kill()
        rest = worker.stdout.read()
        lasted = time.monotonic() - begun
    assert kill_after is not None or "done" in rest
    return lasted


def torn(log: Path) -> list[int]:
    """Where the line begins in whose middle the log ends, if it does."""
    found = log.read_bytes() if log.exists() else b""
    return [found.rfind(b"\n") + 1] if found and not found.endswith(b"\n") else []


def come_to_the_end(folder: Path, broken: list[int]) -> None:
    """Resume: all is said, and what cannot be read are the lines that broke off here, each the last one before the
    recovery that closed it. Nothing else is unreadable, and no line was healed that was whole."""
    log = folder / "log.jsonl"
    beside.play(folder, ack="os")

    assert beside.SAID == beside.said(folder)
    records = list(scan(log))
    recoveries = [record.data for record in records if record.data and record.data["event_type"] == "recovery"]
    assert broken == [data["offset"] for data in recoveries]
    closed = [before.offset for before, after in pairwise(records) if after.data in recoveries]
    assert broken == closed
    unreadable = [record.offset for record in records if record.problem]
    assert {*unreadable} <= {*broken}  # one that lacked its end of line alone can be read
    with Session.load(log, readonly=True) as session:
        assert [] == session.open_calls
        assert ({"not JSON": len(unreadable)} if unreadable else {}) == session.registry.counts


def kill_and_resume(folder: Path, moments: list[float]) -> bool:
    """Whether the last kill came before the end."""
    log = folder / "log.jsonl"
    broken: list[int] = []
    for moment in moments:
        run(folder, moment)
        broken += torn(log)  # a kill stops a write between two pages of the file
    struck = not log.exists() or b"Everything is done." not in log.read_bytes()

    come_to_the_end(folder, list(dict.fromkeys(broken)))  # one that died before it could heal leaves it to the next

    done = Counter(beside.effects(folder))
    twice = [effect for effect, count in done.items() if count > 1 and effect.startswith("pay")]
    assert [] == twice, moments
    return struck


def moments(whole: float, seed: int) -> list[float]:
    """When it is killed, and perhaps when it is killed again while it resumes."""
    chance = random.Random(seed)
    return [chance.uniform(0, whole) for _ in range(chance.choice((1, 1, 2)))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> float:
    return run(tmp_path_factory.mktemp("whole"), None)


def test_a_session_killed_while_calls_run_side_by_side_comes_to_the_same_end(whole: float, tmp_path: Path) -> None:
    """Some moments; `make test-faults` takes fifty."""
    struck = [kill_and_resume(tmp_path / str(seed), moments(whole, seed)) for seed in range(SAMPLED)]
    assert any(struck)


def test_a_line_that_was_torn_is_closed_by_the_next_who_writes_and_nothing_else_is_lost(tmp_path: Path) -> None:
    beside.play(tmp_path, ack="os")
    log = tmp_path / "log.jsonl"
    whole = log.read_bytes()
    for cut in random.Random(14).sample(range(1, len(whole)), SAMPLED):
        log.write_bytes(whole[:cut])
        begun = whole[: cut - len(whole[:cut].rpartition(b"\n")[2])].decode()
        before = len(beside.effects(tmp_path))

        come_to_the_end(tmp_path, torn(log))

        paid = [one for one in beside.effects(tmp_path)[before:] if one.startswith("pay") and one.split()[1] in begun]
        assert [] == paid, f"cut after {cut} bytes"


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(SAMPLED, ALL + SAMPLED))
def test_it_may_be_killed_at_any_moment(whole: float, tmp_path: Path, seed: int) -> None:
    kill_and_resume(tmp_path, moments(whole, seed))
