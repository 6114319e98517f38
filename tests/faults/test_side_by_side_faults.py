"""A session whose calls run side by side is killed at random moments: it comes to the same end, and what may not be
done twice is not."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from harken import Session
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


def kill_and_resume(folder: Path, moments: list[float]) -> bool:
    """Whether the last kill came before the end."""
    for moment in moments:
        run(folder, moment)
    log = folder / "log.jsonl"
    struck = not log.exists() or b"Everything is done." not in log.read_bytes()
    beside.play(folder, ack="os")

    assert beside.SAID == beside.said(folder), moments
    done = Counter(beside.effects(folder))
    twice = [effect for effect, count in done.items() if count > 1 and effect.startswith("pay")]
    assert [] == twice, moments
    with Session.load(folder / "log.jsonl", readonly=True) as session:
        assert [] == session.open_calls
        # A kill may tear the line that is being written: it is healed by appending, and stays as what cannot be read.
        assert {"not JSON"} >= session.registry.counts.keys()
        assert len(moments) >= sum(session.registry.counts.values())
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


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(SAMPLED, ALL + SAMPLED))
def test_it_may_be_killed_at_any_moment(whole: float, tmp_path: Path, seed: int) -> None:
    kill_and_resume(tmp_path, moments(whole, seed))
