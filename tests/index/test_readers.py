"""Who asks an index waits for nobody else who asks, and what was opened for them is closed with it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import harken
from harken.errors import Closed
from harken.index import StoreIndex
from harken.index.readers import MOST
from harken.repo import Repo
from support.contexts import Ticking, keep, turn

HUMAN = "SELECT count(*) FROM messages WHERE role = 'human'"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
        keep(repo, turn(1), session_id="s1")
        repo.index.catch_up()
        yield repo


@contextmanager
def reading(index: StoreIndex, threads: int = 1) -> Iterator[threading.Event]:
    """While others are in the middle of an answer, until the event is set."""
    there, go_on = threading.Barrier(threads + 1), threading.Event()

    def ask() -> None:
        with index._held() as reader:
            reader.execute(HUMAN).fetchall()
            there.wait(20)
            go_on.wait(20)

    with ThreadPoolExecutor(threads) as pool:
        asked = [pool.submit(ask) for _ in range(threads)]
        there.wait(20)
        try:
            yield go_on
        finally:
            go_on.set()
            for one in asked:
                one.result(20)


def descriptors(index: Path) -> list[str]:
    """What of an index is open in this process."""
    found = []
    for one in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{one}"))
    return [name for name in found if name.startswith(str(index))]


def test_a_long_answer_keeps_nobody_else_from_theirs(repo: Repo) -> None:
    with ThreadPoolExecutor(1) as pool, reading(repo.index):
        assert [(1,)] == pool.submit(repo.index.query, HUMAN).result(5)
        assert 0 == pool.submit(repo.index.catch_up, seconds=5.0).result(6).behind


def test_all_connections_tell_what_was_taken_in(repo: Repo) -> None:
    with reading(repo.index, MOST - 1):
        keep(repo, turn(2), session_id="s2")
        assert 0 == repo.index.catch_up(seconds=5.0).behind

        assert [(2,)] == repo.index.query(HUMAN)
    with ThreadPoolExecutor(MOST) as pool:
        assert [[(2,)]] * 3 * MOST == list(pool.map(lambda _: repo.index.query(HUMAN), range(3 * MOST)))


def test_more_than_there_are_connections_are_answered_one_after_the_other(repo: Repo) -> None:
    path = repo.index.path
    assert path is not None
    with ThreadPoolExecutor(3) as pool, reading(repo.index, MOST) as go_on:
        opened = descriptors(path)
        waiting = [pool.submit(repo.index.query, HUMAN) for _ in range(3)]
        time.sleep(0.2)
        assert [False] * 3 == [one.done() for one in waiting]
        assert opened == descriptors(path)
        go_on.set()
        assert [[(1,)]] * 3 == [one.result(10) for one in waiting]


def test_closing_waits_for_who_asks_and_leaves_nothing_open(repo: Repo) -> None:
    path = repo.index.path
    assert path is not None
    with ThreadPoolExecutor(1) as pool, reading(repo.index, MOST) as go_on:
        closing = pool.submit(repo.index.close)
        time.sleep(0.2)
        assert not closing.done()
        go_on.set()
        closing.result(10)
    assert [] == descriptors(path)
    with pytest.raises(Closed):
        repo.index.query(HUMAN)


def test_who_waits_for_a_connection_while_it_is_closed_is_refused(repo: Repo) -> None:
    with ThreadPoolExecutor(2) as pool, reading(repo.index, MOST) as go_on:
        waiting = pool.submit(repo.index.query, HUMAN)
        time.sleep(0.1)
        closing = pool.submit(repo.index.close)
        with pytest.raises(Closed):
            waiting.result(10)
        go_on.set()
        closing.result(10)


def test_a_file_that_was_built_anew_elsewhere_is_never_mixed_with_the_old_one(repo: Repo) -> None:
    """The new one knows nothing yet: who caught up is told what was taken in, until somebody follows the new one."""
    path = repo.index.path
    assert path is not None
    with reading(repo.index) as go_on, ThreadPoolExecutor(1) as pool:
        for part in ("", "-wal", "-shm"):
            path.with_name(path.name + part).unlink(missing_ok=True)
        keep(repo, turn(2), session_id="s2")
        with StoreIndex.open(repo.store) as other:
            other.status()
            asked = pool.submit(repo.index.query, HUMAN)
            time.sleep(0.2)
            assert not asked.done(), "no connection leads to the old file any more"
            go_on.set()
            assert [(1,)] == asked.result(10)
            assert 0 == repo.index.catch_up(seconds=10.0).behind
            assert [(2,)] == repo.index.query(HUMAN)
    repo.index.close()
    assert [] == descriptors(path)


def test_a_new_index_for_everybody_waits_for_those_who_ask_the_old_one(repo: Repo) -> None:
    with ThreadPoolExecutor(1) as pool, reading(repo.index, MOST) as go_on:
        building = pool.submit(repo.index.rebuild)
        time.sleep(0.2)
        assert not building.done()
        go_on.set()
        assert 0 == building.result(10).behind
    assert [(1,)] == repo.index.query(HUMAN)


def test_where_no_more_descriptors_are_to_be_had_those_that_are_there_have_to_do(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.index.query(HUMAN)
    monkeypatch.setattr(repo.index, "_another", lambda: None)
    with ThreadPoolExecutor(1) as pool, reading(repo.index) as go_on:
        asked = pool.submit(repo.index.query, HUMAN)
        time.sleep(0.1)
        assert not asked.done()
        go_on.set()
        assert [(1,)] == asked.result(10)


def test_where_there_is_none_the_one_that_writes_answers(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    with StoreIndex.open(repo.store) as index:
        monkeypatch.setattr(index, "_another", lambda: None)
        assert 0 == index.catch_up(seconds=5.0).behind
        assert [(1,)] == index.query(HUMAN)
        assert 1 == index.status().sessions
