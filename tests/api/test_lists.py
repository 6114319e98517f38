"""What the page's lists ask for: days told apart, and the sessions that are running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import clock
from harken.api.sessions_page import SessionsPageRequest, sessions_page
from harken.api.usage import UsageAnswer, UsageRequest, usage
from harken.errors import BadRequest
from harken.repo import Repo
from support.recordings import FOLDER


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    with harken.open(tmp_path_factory.mktemp("lists") / "store.db") as held:
        assert list(held.import_sessions([FOLDER]))
        yield held


def told(repo: Repo, by: str, split: str = "") -> list[UsageAnswer]:
    answers = usage(repo, UsageRequest(by=(by,), split=split))
    return [one for one in answers if isinstance(one, UsageAnswer)]


@pytest.mark.parametrize("by", ["day", "week", "month"])
@pytest.mark.parametrize("split", ["project", "model", "runtime"])
def test_the_parts_of_a_period_add_up_to_it(repo: Repo, by: str, split: str) -> None:
    requests: Counter[str] = Counter()
    outputs: Counter[str] = Counter()
    prices: Counter[str] = Counter()
    for part in told(repo, by, split):
        requests[part.key] += part.requests
        outputs[part.key] += part.usage.output or 0
        prices[part.key] += part.price_usd_micros or 0
    whole = told(repo, by)
    assert {one.key: one.requests for one in whole} == dict(requests)
    assert {one.key: one.usage.output or 0 for one in whole} == dict(outputs)
    assert all(abs(prices[one.key] - (one.price_usd_micros or 0)) <= len(requests) * 8 for one in whole)


def test_the_parts_are_those_of_the_whole_window(repo: Repo) -> None:
    parts = told(repo, "day", "model")
    assert {one.key for one in told(repo, "model")} == {one.per for one in parts}
    assert sorted((one.key, one.per) for one in parts) == [(one.key, one.per) for one in parts]


def test_without_a_split_no_day_is_told_apart(repo: Repo) -> None:
    assert {""} == {one.per for one in told(repo, "day")}


@pytest.mark.parametrize(("by", "split"), [("day", "tool"), ("project", "model"), ("tool", "project")])
def test_what_cannot_be_told_apart_is_refused(repo: Repo, by: str, split: str) -> None:
    with pytest.raises(BadRequest, match="told apart"):
        told(repo, by, split)


def test_a_session_runs_for_two_minutes_behind_its_last_word(tmp_path: Path) -> None:
    asked = SessionsPageRequest(running=True)
    with harken.open(tmp_path / "store.db") as repo:
        assert list(repo.import_sessions([FOLDER]))
        assert 0 == sessions_page(repo, asked).total
        newest = max(row.ended for row in repo.sessions() if row.ended is not None and not row.parent)
        repo.clock = lambda: newest + 60 * clock.SECOND
        found = sessions_page(repo, asked)
        assert {True} == {one.running for one in found.rows}
        assert found.total == found.facets.running == len(found.rows)
        repo.clock = lambda: newest + 121 * clock.SECOND
        assert 0 == sessions_page(repo, asked).total
