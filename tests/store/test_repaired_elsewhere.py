"""A store that another process repairs while this one has it open."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import harken
from harken import Prompt
from harken.api.feed import ChangesRequest, changes
from harken.errors import Conflict, NotFound
from harken.store import Draft, Store, open_store

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


def test_what_a_repair_took_away_is_no_longer_known_to_whoever_had_the_store_open(path: Path) -> None:
    """A commit on one that was lost was acknowledged, and nobody could read it."""
    with harken.open(path) as repo:
        first = repo.checkpoint([Prompt(content="first")], session_id="s9")
        lost = repo.checkpoint([Prompt(content="second")], session_id="s9", parent=first)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE commits SET messages = 99 WHERE n = (SELECT max(n) FROM commits)")
        connection.close()
        subprocess.run([sys.executable, "-c", REPAIR, path], check=True, timeout=60)

        with pytest.raises(NotFound):
            repo.checkpoint([Prompt(content="third")], session_id="s9", parent=lost)
        with pytest.raises(NotFound):
            repo.store.annotations(lost.id)
        with pytest.raises(NotFound):
            repo.store.walk(lost.id)
        third = repo.checkpoint([Prompt(content="third")], session_id="s9", parent=first)
        assert ["first", "third"] == [event.content for event in repo.conversation(third)]
        assert repo.fsck(read_data=True).ok


def test_numbers_of_repeated_text_do_not_outlive_a_repair(path: Path) -> None:
    def commit(store: Store, data: bytes) -> str:
        with store.write() as writer:
            return writer.commit(
                Draft(artifact=writer.put(data), format="blob-v1", time=1, template="t", session_id="only here")
            ).id

    with contextlib.closing(open_store(path)) as store:
        commit(store, b"old")
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE origins SET template = 'other' WHERE n = (SELECT max(n) FROM origins)")
        connection.close()
        subprocess.run([sys.executable, "-c", REPAIR, path], check=True, timeout=60)

        made = commit(store, b"new")

        with contextlib.closing(open_store(path)) as fresh:
            assert "only here" == fresh.get_commit(made).session_id


@pytest.mark.parametrize("gone", [False, True])
def test_nothing_is_written_to_a_file_that_is_no_longer_the_store(path: Path, gone: bool) -> None:
    """A repair of a file that SQLite refuses puts another one in its place: a commit in the old one was acknowledged,
    and went with it."""
    with harken.open(path) as repo:
        repo.checkpoint([Prompt(content="before")], session_id="s9")
        repo.backup(path.with_name("copy.db"))
        path.unlink() if gone else path.with_name("copy.db").replace(path)

        with pytest.raises(Conflict, match="no longer the file"):
            repo.checkpoint([Prompt(content="after")], session_id="s9")


@pytest.mark.parametrize("gone", [False, True])
def test_nothing_is_read_of_a_file_that_is_no_longer_the_store(path: Path, tmp_path: Path, gone: bool) -> None:
    """Connections of before would tell of the old file, new ones of the new one; together that looks like damage."""
    with harken.open(tmp_path / "other.db") as other:
        for number in range(50):
            other.checkpoint([Prompt(content=f"{number} {'x' * 4000}")], session_id=f"o{number}")
    with harken.open(path) as repo:
        commit = repo.checkpoint([Prompt(content="before")], session_id="s9")
        path.unlink() if gone else (tmp_path / "other.db").replace(path)

        for ask in (repo.sessions, repo.last_change, lambda: repo.conversation(commit), repo.names):
            with pytest.raises(Conflict, match="no longer the file that was opened"):
                ask()
