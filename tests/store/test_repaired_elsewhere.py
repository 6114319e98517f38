"""A store that another process repairs while this one has it open."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import harken
from harken import Prompt
from harken.api.feed import ChangesRequest, changes

REPAIR = "import sys, harken; repo = harken.open(sys.argv[1]); repo.fsck(repair=True); repo.close()"


def damage(path: Path) -> None:
    """One row that a repair takes out."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE annotations SET value = 'other' WHERE n = (SELECT max(n) FROM annotations)")
    connection.close()


def repair_elsewhere(path: Path) -> None:
    damage(path)
    subprocess.run([sys.executable, "-c", REPAIR, path], check=True, timeout=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with harken.open(path) as repo:
        for number in range(5):
            repo.checkpoint([Prompt(content=f"question {number}")], session_id=f"s{number}")
        repo.annotate("s1", "a note")
    return path


def test_a_repair_in_another_process_gives_an_open_store_another_epoch(path: Path) -> None:
    with harken.open(path) as repo:
        before = repo.epoch
        repair_elsewhere(path)

        assert before != repo.epoch
        with harken.open(path) as fresh:
            assert fresh.epoch == repo.epoch


def test_a_follower_starts_over_after_a_repair_and_misses_nothing(path: Path) -> None:
    with harken.open(path) as repo:
        known = changes(repo, ChangesRequest())
        repair_elsewhere(path)
        repo.checkpoint([Prompt(content="new")], session_id="s9")

        told = changes(repo, ChangesRequest(after=known.last, epoch=known.epoch))

        assert (0, repo.epoch) == (told.after, told.epoch)
        assert list(range(1, repo.last_change() + 1)) == [change.number for change in told.changes]


def test_whoever_waits_is_woken_by_a_repair(path: Path) -> None:
    with harken.open(path) as repo:
        far = repo.last_change() + 1000
        answers: list[bool] = []
        waiting = threading.Thread(target=lambda: answers.append(repo.wait(far, 60)))
        waiting.start()
        repair_elsewhere(path)
        waiting.join(60)

        assert [True] == answers
