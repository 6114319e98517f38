"""`harken watch` keeps up with a file that is being written, and stops without losing anything."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.cli.watch import StopRequest
from harken.errors import BadRequest, Locked
from harken.runtimes.files import OpenFile, Unfit
from harken.runtimes.importer import Importer
from harken.runtimes.lookout import Lookout
from harken.runtimes.memory import ImportResult
from harken.runtimes.sources import Reading
from harken.runtimes.watch import watch
from harken.store import SqliteStore, Store
from harken.store.db import Database
from support.claude_lines import user
from support.rollouts import Rollout
from support.sessions import conversation

from .conftest import age


def test_a_growing_file_is_followed_and_its_quiet_tail_is_kept(tmp_path: Path) -> None:
    lines = conversation("aaa", 3).lines
    path = tmp_path / "projects" / "aaa.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(lines[:4]))
    store = tmp_path / "store.db"
    command = [
        sys.executable,
        "-m",
        "harken",
        "--store",
        str(store),
        "watch",
        str(path.parent),
        "--interval",
        "0.1",
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None

    first = json.loads(process.stdout.readline())
    with path.open("ab") as file:
        file.write(b"".join(lines[4:]))
    deadline = time.monotonic() + 30
    total = 0
    while total < len(b"".join(lines)) and time.monotonic() < deadline:
        total = json.loads(process.stdout.readline())["total_bytes"]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)

    assert ("aaa", "new") == (first["session"], first["status"])
    assert 0 == process.returncode
    assert "report" in json.loads(rest.splitlines()[-1])
    with harken.open(store) as repo:
        assert path.read_bytes() == repo.materialize("aaa", stop="root").bytes


def test_a_tail_that_is_still_being_written_waits(tmp_path: Path) -> None:
    path = tmp_path / "aaa.jsonl"
    data = conversation("aaa", 3).data
    path.write_bytes(data)
    with harken.open(tmp_path / "store.db") as repo:
        quiet = False
        importer = Importer(repo.store, [runtimes.get("claude-code")], settle_tails=lambda stamp: quiet)
        (early,) = importer.run([path])
        closed = early.total_bytes
        quiet = True
        (late,) = importer.run([path])

        assert 0 < closed < len(data) == late.total_bytes
        assert data == repo.materialize("aaa", stop="root").bytes
        assert not [note for commit in repo.store.chain(late.tip) for note in repo.store.annotations(commit.id)]


def test_a_record_counts_when_it_is_kept_and_not_while_its_tail_waits(tmp_path: Path) -> None:
    path = tmp_path / "aaa.jsonl"
    session = conversation("aaa", 3)
    path.write_bytes(session.data)
    more = json.dumps(user("late", None, "one more") | {"sessionId": "aaa"}).encode() + b"\n"
    with harken.open(tmp_path / "store.db") as repo:
        quiet = True
        importer = Importer(repo.store, [runtimes.get("claude-code")], settle_tails=lambda stamp: quiet)
        list(importer.run([path]))
        with path.open("ab") as file:
            file.write(more)
        quiet = False
        (early,) = importer.run([path])
        quiet = True
        (late,) = importer.run([path])

        assert [(0, 0), (1, 1)] == [(one.commits, one.records) for one in (early, late)]
        assert len(session.lines) + 1 == late.total_records


def test_watching_may_begin_before_the_first_session(tmp_path: Path) -> None:
    """Folders that appear later, one runtime's after another's, are found."""
    made = [tmp_path / ".claude" / "projects" / "-work" / "aaa.jsonl", tmp_path / ".codex" / "sessions" / "bbb.jsonl"]
    written = [conversation("aaa").data, Rollout().turn("hello").data]
    looks = 0

    class Looks(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal looks
            looks += 1
            if looks in (1, 3):
                path = made[looks // 2]
                path.parent.mkdir(parents=True)
                path.write_bytes(written[looks // 2])
                age(path)
            return looks > 4 or super().wait(timeout)

    with harken.open(tmp_path / "store.db") as repo:
        told = list(repo.watch(environ={"HOME": str(tmp_path)}, interval=0.01, stop=Looks()))

    assert [("new", str(path)) for path in made] == [(one.status, one.source) for one in told]


def test_the_command_waits_where_there_is_nothing_yet(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "harken", "--store", str(tmp_path / "s.db"), "watch"]
    path = tmp_path / ".claude" / "projects" / "-work" / "aaa.jsonl"

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as watching:
        assert watching.stdout is not None and watching.stderr is not None
        assert "watching; Ctrl-C stops" in watching.stderr.readline()
        path.parent.mkdir(parents=True)
        path.write_bytes(conversation("aaa").data)
        age(path)
        assert "aaa" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        watching.communicate()

    assert 0 == watching.returncode


def test_watching_without_a_place_to_look_is_refused_at_once(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo, pytest.raises(BadRequest, match="needs paths"):
        next(iter(repo.watch(stop=threading.Event())))


class Hours:
    """A clock that goes on only while `watch` waits, and stops it after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.passed, self.pauses, self._end = 0.0, [0.0], seconds
        self.then: dict[float, Callable[[], object]] = {}
        """What happens when so much time has passed."""

        class Stop(threading.Event):
            def wait(stop, timeout: float | None = None) -> bool:
                return self._go_on(timeout or 0.0)

        self.stop = Stop()

    def _go_on(self, seconds: float) -> bool:
        self.passed += seconds
        for instant in sorted(self.then):
            if instant <= self.passed:
                self.then.pop(instant)()
        return self.passed > self._end

    def watch(self, store: Store, path: Path, **options: Any) -> list[ImportResult]:
        known = [runtimes.get("claude-code")]
        return list(
            watch(
                store,
                known,
                Lookout(lambda: [path]),
                interval=0.5,
                stop=self.stop,
                monotonic=lambda: self.passed,
                **options,
            )
        )


class TestTrouble:
    """`watch` goes on until it is told to stop (#45)."""

    def test_a_file_that_fails_is_told_once_and_tried_again_after_growing_pauses(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """#45"""
        path = tmp_path / "x.jsonl.zst"
        path.write_bytes(b"not a zstd file")
        hours, looks = Hours(300), list[float]()
        original = OpenFile.read

        def read(self: OpenFile, start: int, size: int) -> bytes:
            looks.append(hours.passed)
            return original(self, start, size)

        monkeypatch.setattr(OpenFile, "read", read)

        told = hours.watch(repo.store, path)

        assert ["failed"] == [one.status for one in told]
        pauses = [later - earlier for earlier, later in itertools.pairwise(looks)]
        assert pauses == sorted(pauses)
        assert 60.0 <= pauses[-1] <= 61.0
        assert len(looks) < 20

    def test_a_file_that_fails_takes_a_tenth_of_a_processor_at_most(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """#45: 33 CPU seconds in 45."""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(conversation("aaa", 3).data)
        hours, spent = Hours(450), 0.0

        def read(*_: object) -> Reading:
            nonlocal spent
            spent += 3.0
            raise Unfit("too much")
            yield

        monkeypatch.setattr("harken.runtimes.watch.read_source", read)

        told = hours.watch(repo.store, path, busy=lambda: spent)

        assert (["failed"], True) == ([one.status for one in told], 6.0 <= spent <= 45.0)

    def test_a_file_that_fails_again_after_it_was_well_is_told_again(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "aaa.jsonl"
        session = conversation("aaa", 3)
        path.write_bytes(session.data)
        age(path)
        hours = Hours(200)
        path.rename(tmp_path / "away")

        def change(*turns: str) -> None:
            for turn in turns:
                session.prompt(turn)
            path.write_bytes(session.data)
            age(path, 100 - len(turns))

        hours.then = {20.0: change, 100.0: path.unlink, 150.0: lambda: change("more")}

        told = hours.watch(repo.store, path)

        assert ["failed", "new", "failed", "grown"] == [one.status for one in told]

    def test_a_store_that_another_program_holds_is_waited_for(self, tmp_path: Path) -> None:
        """#45: after a minute it ended."""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(conversation("aaa", 3).data)
        age(path)
        hours = Hours(600)
        with harken.open(tmp_path / "store.db") as other:
            store, held = SqliteStore(tmp_path / "store.db", timeout=0.1), contextlib.ExitStack()
            held.enter_context(other.store.write()).put(b"x")
            hours.then = {400.0: held.close}

            told = hours.watch(store, path)

            assert [("failed", store.location), ("new", str(path))] == [(one.status, one.source) for one in told]
            assert "waited" in told[0].error
            assert path.read_bytes() == other.materialize("aaa", stop="root").bytes
            store.close()

    def test_a_busy_store_is_asked_less_and_less_often(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """#45"""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(conversation("aaa", 3).data)
        hours, asked = Hours(600), list[float]()

        def write() -> Any:
            asked.append(hours.passed)
            raise Locked("waited")

        monkeypatch.setattr(repo.store, "write", write)

        told = hours.watch(repo.store, path, busy=lambda: 0.0)

        pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
        assert (1, sorted(pauses)) == (len(told), pauses)
        assert 60.0 == pauses[-1]

    def test_a_disk_that_is_full_is_waited_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """#45"""
        session = conversation("aaa", 2)
        for _ in range(10):
            session.prompt(os.urandom(100_000).hex())
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        age(path)
        connect, pages = Database._connect, 200

        def limited(self: Database) -> sqlite3.Connection:
            connection = connect(self)
            connection.execute(f"PRAGMA max_page_count={pages}")
            return connection

        monkeypatch.setattr(Database, "_connect", limited)
        hours = Hours(600)
        with harken.open(tmp_path / "store.db") as repo:

            def make_room() -> None:
                nonlocal pages
                pages = 100_000
                for connection in repo.store.db._free:
                    connection.execute(f"PRAGMA max_page_count={pages}")

            hours.then = {300.0: make_room}

            told = hours.watch(repo.store, path)

            assert ["failed", "new"] == [one.status for one in told]
            assert "no room" in told[0].error
            assert path.read_bytes() == repo.materialize("aaa", stop="root").bytes

    def test_a_home_that_goes_and_comes_back_is_watched_again(self, repo: Any, tmp_path: Path) -> None:
        home = tmp_path / ".claude" / "projects" / "-work"
        home.mkdir(parents=True)
        for name in ("aaa", "bbb"):
            (home / f"{name}.jsonl").write_bytes(conversation(name).data)
            age(home / f"{name}.jsonl")
        looks = 0

        class Looks(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                nonlocal looks
                looks += 1
                if looks == 2:
                    (tmp_path / ".claude").rename(tmp_path / "away")
                elif looks == 4:
                    (tmp_path / "away" / "projects" / "-work" / "ccc.jsonl").write_bytes(conversation("ccc").data)
                    age(tmp_path / "away" / "projects" / "-work" / "ccc.jsonl")
                    (tmp_path / "away").rename(tmp_path / ".claude")
                return looks > 6 or super().wait(timeout)

        told = list(repo.watch(environ={"HOME": str(tmp_path)}, interval=0.01, stop=Looks()))

        assert ["aaa", "bbb", "ccc"] == sorted(one.session for one in told)


def test_a_tail_that_is_rewritten_while_it_waits_is_a_rewrite(tmp_path: Path) -> None:
    path = tmp_path / "aaa.jsonl"
    lines = conversation("aaa", 3).lines
    path.write_bytes(b"".join(lines))
    with harken.open(tmp_path / "store.db") as repo:
        quiet = True
        importer = Importer(repo.store, [runtimes.get("claude-code")], settle_tails=lambda stamp: quiet)
        list(importer.run([path]))
        quiet = False
        path.write_bytes(b"".join(lines) + b'{"type":"mode"}\n')
        list(importer.run([path]))
        assert b"".join(lines) == repo.materialize("aaa", stop="root").bytes, (
            "the old tail stays until something closes"
        )
        quiet = True
        path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b"answer", b"ANSWER"))

        (result,) = importer.run([path])

        assert "rewritten" == result.status
        assert b"".join(lines) == repo.materialize("aaa~1", stop="root").bytes


class TestStopping:
    def test_a_signal_may_come_at_any_moment(self) -> None:
        """A handler runs between any two steps of what it interrupts, so it asks here at each of them. Where that takes
        a lock which the interrupted `wait` holds, nobody ever goes on: `watch` hung like that on a busy machine."""
        moments = {"wait": 0}

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_name == "wait":
                moments["wait"] += 1
                stop.set()
            return trace

        def ask() -> None:
            sys.settrace(trace)
            stop.wait(60.0)

        stop = StopRequest()
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(30)

        assert (False, True) == (asking.is_alive(), stop.is_set())
        assert moments["wait"] > 2
        stop.close()

    @pytest.mark.parametrize("interval", [0.0, 60.0])
    def test_it_stops_between_two_files(self, tmp_path: Path, interval: float) -> None:
        for name in ("aaa", "bbb", "ccc"):
            (tmp_path / f"{name}.jsonl").write_bytes(b"".join(conversation(name, 3).lines))
            age(tmp_path / f"{name}.jsonl")
        stop = threading.Event()
        with harken.open(tmp_path / "store.db") as repo:
            told = []
            for result in repo.watch([tmp_path], interval=interval, stop=stop):
                told.append(result.session)
                stop.set()

        assert 1 == len(told)

    def test_what_is_done_with_a_result_does_not_count_as_reading(self, tmp_path: Path) -> None:
        """Whoever is slow in reading results, or shares a busy machine, does not make `watch` slow as well."""
        path = tmp_path / "aaa.jsonl"
        session = conversation("aaa", 3)
        path.write_bytes(b"".join(session.lines))
        age(path)
        stop, passed, busy = threading.Event(), 0.0, 0.0

        class Stop(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                nonlocal passed
                passed += timeout or 0
                return passed > 1200 or stop.is_set()

        with harken.open(tmp_path / "store.db") as repo:
            results = watch(
                repo.store,
                [runtimes.get("claude-code")],
                Lookout(lambda: [path]),
                interval=0.5,
                stop=Stop(),
                monotonic=lambda: passed,
                busy=lambda: busy,
            )
            for result in results:
                if result.status == "grown":
                    break
                passed, busy = passed + 100.0, busy + 100.0
                path.write_bytes(b"".join(conversation("aaa", 5).lines))
                age(path)

        assert ("grown", True) == (result.status, passed < 110.0)
