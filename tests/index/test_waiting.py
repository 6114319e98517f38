"""Many threads ask at once: one follows the store for all, nobody follows those who write, nobody waits for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import harken
from harken.index import StoreIndex, file
from harken.index.turns import WriterTurn
from harken.repo import Repo
from support.contexts import Ticking, keep, turn


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
        keep(repo, turn(1), session_id="s1")
        repo.index.catch_up()
        yield repo


@contextmanager
def stuck(index: StoreIndex, *, numbers: bool = False) -> Iterator[None]:
    """While another thread is in the middle of following: a step is done, and its turn is not over."""
    there, go_on = threading.Event(), threading.Event()

    def wait(_at: int, _last: int) -> None:
        there.set()
        go_on.wait(20)

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(index.catch_up, numbers=numbers, moved=wait)
        assert there.wait(10)
        try:
            yield
        finally:
            go_on.set()
            following.result(10)


def messages(index: StoreIndex) -> int:
    return int(index.query("SELECT count(*) FROM messages WHERE role = 'human'")[0][0])


class TestWhoFollows:
    @pytest.mark.parametrize("numbers", [True, False])
    @pytest.mark.parametrize("seconds", [20.0, None])
    def test_does_not_follow_those_who_write_meanwhile(self, repo: Repo, numbers: bool, seconds: float | None) -> None:
        steps: list[int] = []

        def write(at: int, _last: int) -> None:
            steps.append(at)
            assert len(steps) < 10, "it goes on for as long as somebody writes"
            keep(repo, turn(10 + len(steps)), session_id=f"more-{len(steps)}")

        keep(repo, turn(2), session_id="s2")
        asked = repo.last_change()
        done = repo.index.catch_up(seconds=seconds, numbers=numbers, moved=write)

        assert asked <= done.at
        assert 0 == done.behind, "all that was there when it was asked is taken in"
        assert 2 <= messages(repo.index)

    def test_takes_in_what_came_since_where_others_wait_for_that(self, repo: Repo) -> None:
        keep(repo, turn(2), session_id="s2")
        reached: list[int] = []
        with ThreadPoolExecutor(1) as pool:

            def write(at: int, _last: int) -> None:
                reached.append(at)
                if len(reached) == 1:
                    keep(repo, turn(3), session_id="s3")
                    waiting = pool.submit(repo.index.catch_up, seconds=10.0, numbers=False)
                    while not repo.index._turn.waiting:
                        time.sleep(0.001)
                    reached.append(waiting.done())

            repo.index.catch_up(seconds=10.0, moved=write)

        assert [False] == reached[1:2]
        assert repo.last_change() == max(reached)

    def test_leaves_numbers_to_the_next_where_others_wait(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file, "STEP_SECONDS", 0.0)
        monkeypatch.setattr(file, "TURN_SECONDS", 0.0)
        monkeypatch.setattr(file, "REST", 0)
        with crowded(repo, monkeypatch, sessions=8) as index:
            first = index.catch_up(seconds=20.0)
            monkeypatch.setattr(WriterTurn, "waiting", 0, raising=False)

            assert (0, True) == (first.behind, 0 < first.stale <= 8), (
                "rows are there, some numbers are not, and that is told"
            )
            assert 0 == index.catch_up(seconds=20.0).stale

    def test_leaves_those_of_many_alone_for_a_while_where_others_waited(
        self, repo: Repo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file, "STEP_SECONDS", 0.0)
        monkeypatch.setattr(file, "TURN_SECONDS", 0.0)
        monkeypatch.setattr(file, "REST", 1 << 40)
        with crowded(repo, monkeypatch, sessions=3 * file.FEW) as index:
            first = index.catch_up(seconds=20.0)
            asked = [index.catch_up(seconds=20.0).stale for _ in range(3)]
            keep(repo, turn(90), session_id="later")
            grown = index.catch_up(seconds=20.0)

            assert first.stale > file.FEW
            assert [first.stale] * 3 == asked, "they are told to be stale, and nobody makes them"
            assert (0, first.stale + 1) == (grown.behind, grown.stale), "rows are followed all the same"
            assert 0 == index.catch_up().stale, "who wants all of it gets it"

    def test_makes_those_of_a_few_whoever_waited(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file, "STEP_SECONDS", 0.0)
        monkeypatch.setattr(file, "TURN_SECONDS", 0.0)
        monkeypatch.setattr(file, "REST", 1 << 40)
        with crowded(repo, monkeypatch, sessions=3 * file.FEW) as index:
            assert file.FEW < index.catch_up(seconds=20.0).stale
            index.catch_up()
            monkeypatch.setattr(WriterTurn, "waiting", 0, raising=False)
            keep(repo, turn(90), session_id="later")

            assert 0 == index.catch_up(seconds=20.0).stale


@contextmanager
def crowded(repo: Repo, monkeypatch: pytest.MonkeyPatch, *, sessions: int) -> Iterator[StoreIndex]:
    """An index of so many sessions that are not counted yet, for whose turn there is always somebody who waits."""
    monkeypatch.setattr(WriterTurn, "waiting", 1, raising=False)
    monkeypatch.setattr(WriterTurn, "__init__", _without_count)
    for number in range(sessions):
        keep(repo, turn(20 + number), session_id=f"n-{number}")
    with StoreIndex.open(repo.store) as index:
        yield index


def _without_count(self: WriterTurn) -> None:
    self._lock, self._news, self._steps = threading.RLock(), threading.Condition(), 0
    self._owner = self._taken = self._wanted = 0


class TestWhoWaits:
    def test_is_answered_while_another_follows_where_nothing_is_missing(self, repo: Repo) -> None:
        keep(repo, turn(2), session_id="s2")
        with stuck(repo.index):
            done = repo.index.catch_up(seconds=5.0, numbers=False)

            assert (0, 2) == (done.behind, messages(repo.index))

    def test_can_ask_while_another_follows(self, repo: Repo) -> None:
        keep(repo, turn(2), session_id="s2")
        with stuck(repo.index):
            assert 1 == repo.index.count_stale()
            with repo.index.connect() as own:
                assert (2,) == own.execute("SELECT count(*) FROM messages WHERE role = 'human'").fetchone()
            own.close()

    def test_is_told_what_is_missing_when_the_time_is_over(self, repo: Repo) -> None:
        keep(repo, turn(2), session_id="s2")
        with stuck(repo.index):
            keep(repo, turn(3), session_id="s3")
            began = time.monotonic()
            done = repo.index.catch_up(seconds=0.2)

            assert time.monotonic() - began < 5
            assert 0 < done.behind
            assert 2 == messages(repo.index), "what is there can be asked"
        assert 0 == repo.index.catch_up(seconds=5.0).behind

    def test_waits_for_the_numbers_of_a_few_sessions(self, repo: Repo) -> None:
        keep(repo, turn(2), session_id="s2")
        with stuck(repo.index):
            assert 1 == repo.index.catch_up(seconds=0.2).stale
        assert 0 == repo.index.catch_up(seconds=5.0).stale

    def test_does_not_wait_for_those_of_many(self, repo: Repo) -> None:
        for number in range(file.FEW + 1):
            keep(repo, turn(20 + number), session_id=f"n-{number}")
        with stuck(repo.index):
            began = time.monotonic()
            done = repo.index.catch_up(seconds=15.0)

            assert time.monotonic() - began < 5
            assert (0, file.FEW + 1) == (done.behind, done.stale)
        assert 0 == repo.index.catch_up(seconds=5.0).stale, "alone, all are counted"

    def test_goes_on_when_the_other_ends(self, repo: Repo) -> None:
        with ThreadPoolExecutor(1) as pool:
            keep(repo, turn(2), session_id="s2")
            with stuck(repo.index):
                keep(repo, turn(3), session_id="s3")
                waiting = pool.submit(repo.index.catch_up)
                while not repo.index._turn.waiting:
                    time.sleep(0.001)

            assert (0, 0) == (waiting.result(10).behind, repo.index.count_stale())

    def test_finds_what_it_has_written_whatever_others_do(self, repo: Repo) -> None:
        """Each of many threads writes and looks for it at once."""

        def write_and_look(number: int) -> list[bool]:
            found = []
            for each in range(8):
                name = f"t{number}-{each}"
                keep(repo, turn(1000 * number + each), session_id=name)
                reached = repo.index.catch_up(seconds=30.0, numbers=bool(each % 2))
                there = repo.index.query("SELECT 1 FROM sessions WHERE session = ?", (name,))
                found.append(bool(there) and not reached.behind)
            return found

        with ThreadPoolExecutor(8) as pool:
            assert [[True] * 8] * 8 == list(pool.map(write_and_look, range(1, 9)))
        assert 0 == repo.index.catch_up().stale

    def test_is_told_when_the_index_is_closed_meanwhile(self, repo: Repo) -> None:
        keep(repo, turn(2), session_id="s2")
        with ThreadPoolExecutor(2) as pool:
            with pytest.raises(harken.errors.Closed), stuck(repo.index, numbers=True):
                keep(repo, turn(3), session_id="s3")
                waiting = pool.submit(repo.index.catch_up)
                closing = pool.submit(repo.index.close)
            closing.result(10)
            with pytest.raises(harken.errors.Closed):
                waiting.result(10)

    @pytest.mark.parametrize("step", ["status", "rebuild", "close"])
    def test_does_not_keep_out_who_has_to_have_the_turn(self, repo: Repo, step: str) -> None:
        """Threads that follow the store one after the other, without a pause, as readers do while others write."""
        ended = threading.Event()

        def follow(number: int) -> None:
            with contextlib.suppress(harken.errors.Closed):
                while not ended.is_set():
                    repo.index._turn.take_unless(lambda _: None, time.monotonic() + 20)
                    time.sleep(0.02)  # something is done in it
                    repo.index._turn.give_back()
                    repo.index._turn.take_unless(lambda _: None, time.monotonic() + 20)
                    repo.index._turn.give_back()

        with ThreadPoolExecutor(4) as pool:
            following = [pool.submit(follow, number) for number in range(3)]
            began = time.monotonic()
            for _ in range(1 if step == "close" else 5):
                getattr(repo.index, step)()
            took = time.monotonic() - began
            ended.set()
            assert [None] * 3 == [one.result(30) for one in following]
        assert took < 5

    def test_is_refused_when_the_index_is_closed(self, repo: Repo) -> None:
        repo.index.close()

        with pytest.raises(harken.errors.Closed):
            repo.index.catch_up(seconds=1.0)
        with pytest.raises(harken.errors.Closed):
            repo.index.query("SELECT 1")


@pytest.mark.parametrize("held", ["writing", "reading"])
def test_a_child_that_was_forked_off_in_the_middle_is_refused(repo: Repo, held: str) -> None:
    """What a thread of the parent held, nobody in the child lets go."""
    there, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with repo.index._turn if held == "writing" else repo.index._held():
            there.set()
            go_on.wait(30)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert there.wait(10)
        child = os.fork()
        if not child:
            signal.alarm(10)
            refused = 0
            for ask in (lambda: repo.index.query("SELECT 1"), repo.index.status, repo.index.catch_up):
                try:
                    ask()
                except harken.HarkenError:
                    refused += 1
            repo.close()
            os._exit(refused)
        go_on.set()
        assert 3 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_damage_that_many_meet_is_mended_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    original = StoreIndex._begin_anew
    monkeypatch.setattr(StoreIndex, "_begin_anew", lambda self, why: (begun.append(why), original(self, why))[1])
    assert repo.index.path is not None
    repo.index.close()
    damaged = StoreIndex.open(repo.store)
    damaged.catch_up()
    together = threading.Barrier(6)
    root = damaged.query("SELECT rootpage FROM sqlite_master WHERE name = 'messages'")[0][0]
    size = damaged.query("PRAGMA page_size")[0][0]
    damaged._writer().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with repo.index.path.open("r+b") as data:
        data.seek((root - 1) * size)
        data.write(b"\xff" * size)
    damaged.query("PRAGMA shrink_memory")  # what it read before is forgotten

    def ask(_: int) -> int:
        together.wait()
        return int(damaged.query("SELECT count(*) FROM messages NOT INDEXED WHERE role = 'human'")[0][0])

    with ThreadPoolExecutor(6) as pool:
        assert [1] * 6 == list(pool.map(ask, range(6)))
    assert 1 == len(begun)
    damaged.close()
