"""Two commits compared: how much each knows alone, how much both do, and no more than is asked for."""

from __future__ import annotations

import pytest

from harken.api.commits import DiffLine, DiffRequest, DiffStart, diff
from harken.errors import BadRequest
from harken.repo import Repo
from harken.store import Commit
from support.contexts import chain, keep, memory_repo, turn


@pytest.fixture
def forked() -> tuple[Repo, Commit, Commit]:
    """Two turns in common, then two here and one there."""
    repo = memory_repo()
    base = chain(repo, (0, 1))
    return repo, chain(repo, (2, 3), base), keep(repo, turn(4), base)


def test_it_counts_what_only_one_knows_and_what_both_do(forked: tuple[Repo, Commit, Commit]) -> None:
    repo, a, b = forked

    start, *lines = diff(repo, DiffRequest(a=a.id, b=b.id))

    assert isinstance(start, DiffStart)
    assert (8, 4, 4) == (start.here, start.there, start.common)
    assert 12 == len(lines)


def test_it_gives_no_more_than_is_asked_for_of_each_side(forked: tuple[Repo, Commit, Commit]) -> None:
    repo, a, b = forked

    start, *lines = diff(repo, DiffRequest(a=a.id, b=b.id, limit=3, brief=True))

    assert isinstance(start, DiffStart)
    assert (8, 4) == (start.here, start.there)
    assert ["here"] * 3 + ["there"] * 3 == [line.side for line in lines if isinstance(line, DiffLine)]
    assert {"type", "message_id"} == {name for line in lines if isinstance(line, DiffLine) for name in line.event}


def test_two_that_share_nothing_have_nothing_in_common() -> None:
    repo = memory_repo()
    a, b = keep(repo, turn(0)), keep(repo, turn(1))

    start = next(iter(diff(repo, DiffRequest(a=a.id, b=b.id))))

    assert isinstance(start, DiffStart)
    assert (None, 0) == (start.ancestor, start.common)


def test_a_limit_below_nothing_is_refused(forked: tuple[Repo, Commit, Commit]) -> None:
    repo, a, b = forked

    with pytest.raises(BadRequest):
        list(diff(repo, DiffRequest(a=a.id, b=b.id, limit=-1)))
