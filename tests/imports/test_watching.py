"""`harken watch` keeps up with a file that is being written, and stops without losing anything."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

import harken
from harken import runtimes
from harken.cli.watch import StopRequest
from harken.formats.kit.claims import Claim
from harken.runtimes.files import OpenFile
from harken.runtimes.importer import Importer
from harken.runtimes.watch import watch
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


def test_watching_nothing_is_a_clear_error(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    done = subprocess.run(
        [sys.executable, "-m", "harken", "--store", str(tmp_path / "s.db"), "watch"],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
    )

    assert 1 == done.returncode
    assert "no runtime has left sessions here" in done.stderr


def test_a_file_that_fails_is_told_once_and_tried_again_after_growing_pauses(tmp_path: Path) -> None:
    """#45"""
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(b"not a zstd file")
    looks: list[float] = []
    told: list[str] = []
    clock = 0.0

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal clock
            clock += timeout or 0
            return clock > 300

    def find() -> list[Path]:
        return [path]

    def claim(head: bytes, path: Path) -> Claim:
        raise AssertionError("never asked")

    runtime = msgspec.structs.replace(runtimes.get("codex"), claim=claim)
    with harken.open(tmp_path / "store.db") as repo:
        original = OpenFile.read

        def read(self: OpenFile, start: int, size: int) -> bytes:
            looks.append(clock)
            return original(self, start, size)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(OpenFile, "read", read)
            for result in watch(repo.store, [runtime], find, interval=0.5, stop=Stop(), monotonic=lambda: clock):
                told.append(result.error)

    assert 1 == len(told)
    pauses = [later - earlier for earlier, later in itertools.pairwise(looks)]
    assert pauses == sorted(pauses)
    assert 60.0 <= pauses[-1] <= 61.0
    assert len(looks) < 20


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
                lambda: [path],
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
