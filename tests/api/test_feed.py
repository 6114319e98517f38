"""The feed as a follower asks for it: what came after a number, in the epoch it belongs to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import BadRequest, Repo
from harken.api.feed import ChangesRequest, changes
from support.contexts import keep, turn


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        keep(repo, turn(1), session_id="s")
        yield repo


def test_a_follower_goes_on_from_what_it_knows(repo: Repo) -> None:
    first = changes(repo, ChangesRequest(limit=1))
    rest = changes(repo, ChangesRequest(after=first.changes[-1].number, epoch=first.epoch))

    assert (0, 1) == (first.after, len(first.changes))
    assert list(range(1, rest.last + 1)) == [one.number for one in (*first.changes, *rest.changes)]
    assert (repo.epoch, repo.last_change()) == (rest.epoch, rest.last)


def test_a_follower_of_another_epoch_is_told_everything(repo: Repo, tmp_path: Path) -> None:
    known = changes(repo, ChangesRequest())
    repo.backup(tmp_path / "copy.db")

    with harken.open(tmp_path / "copy.db") as copy:
        told = changes(copy, ChangesRequest(after=known.last, epoch=known.epoch, wait=60))

    assert known.epoch != told.epoch
    assert (0, list(range(1, told.last + 1))) == (told.after, [one.number for one in told.changes])


def test_waiting_ends_when_something_comes(repo: Repo) -> None:
    known = changes(repo, ChangesRequest())
    writer = threading.Thread(target=repo.annotate, args=("s", "a remark"))
    writer.start()

    told = changes(repo, ChangesRequest(after=known.last, epoch=known.epoch, wait=60))

    writer.join()
    assert ["annotation"] == [one.kind for one in told.changes]


@pytest.mark.parametrize("fields", [{"after": -1}, {"limit": 0}, {"wait": 61.0}, {"wait": -1.0}])
def test_nonsense_is_refused(repo: Repo, fields: dict[str, float]) -> None:
    with pytest.raises(BadRequest):
        changes(repo, ChangesRequest(**fields))  # type: ignore[arg-type]
