"""Several writers on one branch or session: one wins, the others are told, and nothing is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import harken
from harken.errors import Conflict
from harken.events import Response
from support.contexts import chain, heard, keep, turn


def test_whoever_looked_too_early_is_told(tmp_path: Path) -> None:
    with harken.open(tmp_path / "s.db") as one, harken.open(tmp_path / "s.db") as two:
        one.fork(chain(one, [1]), "b")
        before = one.store.find_name("b")
        winner = keep(two, turn(2), "b")

        with pytest.raises(Conflict, match="points at"):
            keep(one, turn(3), before)

        assert winner.id == one.commit("b").id
        assert 2 == len(one.store.commits()), "a commit that lost the race is not there in part"


def test_with_patience_every_commit_lands_on_the_branch(tmp_path: Path) -> None:
    path, each = tmp_path / "s.db", 8
    with harken.open(path) as repo:
        repo.fork(chain(repo, [0]), "b")

    def write(name: str) -> None:
        with harken.open(path) as mine:
            for number in range(each):
                while True:
                    try:
                        keep(mine, [Response(content=f"{name}{number}", message_id=f"{name}{number}")], "b")
                        break
                    except Conflict:
                        continue

    threads = [threading.Thread(target=write, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with harken.open(path) as repo:
        said = [event.message_id for event in heard(repo, "b")][4:]
        assert sorted(f"{name}{number}" for name in "xyz" for number in range(each)) == sorted(said)
        assert [f"x{number}" for number in range(each)] == [name for name in said if name[0] == "x"]


def test_whoever_goes_on_from_an_older_commit_of_a_session_is_told(tmp_path: Path) -> None:
    """#18"""

    def now() -> int:
        return 1_800_000_000_000_000  # a commit is said again only in the second it was made

    path = tmp_path / "s.db"
    with harken.open(path, clock=now) as one, harken.open(path, clock=now) as two:
        first = keep(one, turn(1), session_id="s")
        winner = keep(two, turn(2), first, session_id="s")

        with pytest.raises(Conflict, match="has gone on"):
            keep(one, turn(3), first, session_id="s")
        with pytest.raises(Conflict, match="has gone on"):
            keep(one, turn(3), session_id="s")

        assert winner.id == one.commit("s").id
        assert 2 == len(one.store.commits()), "a commit that lost the race is not there in part"
        assert winner.id == keep(one, turn(2), first, session_id="s").id, "what is there may be said again"


def test_with_patience_every_commit_lands_in_the_session(tmp_path: Path) -> None:
    """#18: what was acknowledged is in the session's conversation."""
    path, each = tmp_path / "s.db", 8
    with harken.open(path) as repo:
        keep(repo, turn(0), session_id="s")

    def write(name: str) -> None:
        with harken.open(path) as mine:
            for number in range(each):
                while True:
                    try:
                        said = [Response(content=f"{name}{number}", message_id=f"{name}{number}")]
                        keep(mine, said, "s", session_id="s")
                        break
                    except Conflict:
                        continue

    threads = [threading.Thread(target=write, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with harken.open(path) as repo:
        said = [event.message_id for event in heard(repo, "s")][4:]
        assert sorted(f"{name}{number}" for name in "xyz" for number in range(each)) == sorted(said)
