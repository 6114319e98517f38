"""What is remembered is all of it, and is worked out once, however many ask and whoever writes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.api import home as home_module
from harken.api import sessions_page as page_module
from harken.api.home import HomeRequest, home
from harken.api.remembering import remembered
from harken.api.sessions_page import SessionsPageRequest, sessions_page
from harken.index import IndexProgress, StoreIndex
from harken.repo import Repo
from support.contexts import keep, turn

NOW = 1_794_738_000_000_000


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db", clock=lambda: NOW) as repo:
        keep(repo, turn(1, time=NOW - 3_600_000_000), session_id="s")
        yield repo


def and_then(repo: Repo, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> None:
    """Somebody writes right behind a step of an answer, once."""
    real: Callable[..., Any] = getattr(where, name)
    left = [2]

    def step(*given: Any, **more: Any) -> Any:
        answer = real(*given, **more)
        if left:
            number = left.pop()
            keep(repo, turn(number, time=NOW - 60_000_000), parent="s", session_id="s")
        return answer

    monkeypatch.setattr(where, name, step)


@pytest.mark.parametrize("step", ["follow", "page_of"])
def test_home_has_what_came_while_it_was_made(repo: Repo, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with monkeypatch.context() as meanwhile:
        and_then(repo, meanwhile, home_module, step)
        home(repo, HomeRequest())

    assert 2 == home(repo, HomeRequest()).facts.prompts


@pytest.mark.parametrize("step", ["follow", "list_sessions"])
def test_a_list_has_what_came_while_it_was_made(repo: Repo, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """What is kept of a session is kept where the index has all of it."""
    with monkeypatch.context() as meanwhile:
        and_then(repo, meanwhile, page_module, step)
        sessions_page(repo, SessionsPageRequest())

    (row,) = sessions_page(repo, SessionsPageRequest()).rows
    assert ("prpr", 4) == (row.strip, row.messages)


@pytest.mark.parametrize("ask", [lambda repo: home(repo, HomeRequest()), lambda repo: listed(repo)])
def test_an_answer_follows_the_store_once(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Repo], object]
) -> None:
    followed: list[int] = []
    real = StoreIndex.catch_up
    monkeypatch.setattr(StoreIndex, "catch_up", lambda self, **how: (followed.append(1), real(self, **how))[1])

    ask(repo)

    assert [1] == followed


def listed(repo: Repo) -> object:
    return sessions_page(repo, SessionsPageRequest())


def test_what_an_index_says_that_is_late_is_not_kept(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    at = repo.index.catch_up().at
    keep(repo, turn(2, time=NOW - 60_000_000), parent="s", session_id="s")
    with monkeypatch.context() as meanwhile:
        late = IndexProgress(at=at, last=repo.last_change())
        meanwhile.setattr(StoreIndex, "catch_up", lambda self, **_: late)
        lacking = sessions_page(repo, SessionsPageRequest()).rows[0].strip, home(repo, HomeRequest()).facts.prompts

    assert ("pr", 1) == lacking
    assert ("prpr", 2) == (
        sessions_page(repo, SessionsPageRequest()).rows[0].strip,
        home(repo, HomeRequest()).facts.prompts,
    )


def test_many_who_ask_at_once_wait_for_one(repo: Repo) -> None:
    made: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def make() -> str:
        made.append(1)
        begun.set()
        go_on.wait(10)
        return "value"

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(remembered, repo, "kind", "key", make) for _ in range(4)]
        assert begun.wait(10)
        assert "other" == remembered(repo, "kind", "another key", lambda: "other"), "who asks for others does not wait"
        go_on.set()
        assert ["value"] * 4 == [one.result(10) for one in asked]
    assert 1 == len(made)


def test_where_it_fails_the_next_makes_it(repo: Repo) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> str:
        begun.set()
        go_on.wait(10)
        raise ValueError("no")

    with ThreadPoolExecutor(2) as pool:
        failing = pool.submit(remembered, repo, "kind", "key", fail)
        assert begun.wait(10)
        waiting = pool.submit(remembered, repo, "kind", "key", lambda: "value")
        go_on.set()
        with pytest.raises(ValueError, match="no"):
            failing.result(10)
        assert "value" == waiting.result(10)


def test_what_an_index_says_that_is_being_built_anew_is_not_kept(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody removes its file in the middle of an answer, and another thread opens the next."""
    real = home_module.page_of
    with monkeypatch.context() as meanwhile:

        def step(*given: Any) -> Any:
            answer = real(*given)
            repo.index._begin_anew("it was removed")
            return answer

        meanwhile.setattr(home_module, "page_of", step)
        lacking = home(repo, HomeRequest()).facts.prompts

    assert 0 == lacking
    assert 1 == home(repo, HomeRequest()).facts.prompts
