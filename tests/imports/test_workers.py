"""An import with workers keeps the same things as one without, and survives what happens to them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.errors import HarkenError
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.sources import Claimed, Part, Reading, Resumption, read_source
from harken.runtimes.workers import WorkerPool, packed
from harken.store import SessionRow
from support.sessions import ClaudeSession, conversation

NAMES = ["claude-code", "codex"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Sessions, a copy, a sub-agent, something that is no session, something that cannot be read."""
    folder = tmp_path / "files"
    (folder / "s0" / "subagents").mkdir(parents=True)
    for number in range(12):
        (folder / f"s{number}.jsonl").write_bytes(conversation(f"s{number}", 1 + number).data)
    (folder / "copy.jsonl").write_bytes(conversation("s5", 6).data.replace(b'"s5"', b'"copy"'))
    agent = conversation("s0", 1, agent="b1", salt="b1").data
    (folder / "s0" / "subagents" / "agent-b1.jsonl").write_bytes(agent)
    (folder / "none.jsonl").write_text('{"a":1}\n')
    (folder / "broken.jsonl.zst").write_bytes(b"no archive")
    return folder


def rows(repo: Any) -> list[SessionRow]:
    import msgspec

    return sorted((msgspec.structs.replace(row, state=b"") for row in repo.store.sessions()), key=lambda r: r.session)


@pytest.mark.parametrize("jobs", [2, 4])
def test_the_names_are_the_same_for_any_number_of_jobs(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr("harken.runtimes.importer.WORTH_WORKERS", 0)
    seen = []
    for number in (1, jobs):
        with harken.open(tmp_path / f"{number}.db") as repo:
            importer = Importer(repo.store, [runtimes.get(name) for name in NAMES], jobs=number)
            results = [(r.source, r.status, r.tip, r.records, r.error) for r in importer.run(walk(files))]
            seen.append((results, rows(repo)))

    assert seen[0] == seen[1]
    statuses = [result[1] for result in seen[0][0]]
    assert {"new": 14, "skipped": 1, "failed": 1} == {status: statuses.count(status) for status in statuses}


def test_what_a_worker_has_compressed_is_kept_as_if_it_had_not(tmp_path: Path) -> None:
    session = ClaudeSession("large")
    for number in range(40):
        session.prompt(f"{number} " + "".join(map(chr, range(97, 123))) * 5_000)
        session.answer("x" * 60_000 + str(number))
    whole, copy = tmp_path / "large.jsonl", tmp_path / "copy.jsonl"
    whole.write_bytes(session.data)
    copy.write_bytes(session.data.replace(b'"large"', b'"copy"', 3))
    asked = [runtimes.get(name) for name in NAMES]

    def read(path: Path, since: Resumption | None) -> Reading:
        for said in read_source(path, asked, since):
            yield packed(said) if isinstance(said, Part) else said

    parts = [said for said in read(whole, None) if isinstance(said, Part)]
    assert [5, 4] == [len(part.frames) for part in parts]  # the last of each is no full one
    seen = []
    for name, reader in (("plain", None), ("packed", read), ("known", read)):
        with harken.open(tmp_path / f"{name}.db") as repo:
            if name == "known":  # some of what is packed is in the store already
                with repo.store.write() as writer:
                    data = session.data
                    deltas = asked[0].read.scan(data, b"").deltas
                    writer.put_many([data[each.start : each.end] for each in deltas[5:7]])
            importer = Importer(repo.store, asked, read=reader)
            results = [(r.source, r.status, r.tip, r.records, r.error) for r in importer.run([whole, copy])]
            content = b"".join(repo.store.get_many([link.artifact for link in repo.store.walk(results[0][2])][::-1]))
            assert session.data == content
            assert repo.fsck(read_data=True).ok
            seen.append((results, rows(repo)))

    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(("size", "frames"), [(400, 0), (4_000, 1)])
def test_a_worker_leaves_only_the_rest_of_a_small_file_to_be_compressed(tmp_path: Path, size: int, frames: int) -> None:
    session = ClaudeSession("small")
    for number in range(20):
        session.prompt(f"{number} " + "p" * size)
        session.answer("x" * size + str(number))
    path = tmp_path / "small.jsonl"
    path.write_bytes(session.data)

    (part,) = [said for said in read_source(path, [runtimes.get("claude-code")], None) if isinstance(said, Part)]
    made = packed(part)

    assert (frames, part.length) == (len(made.frames), made.length)
    tail = part.facts.deltas[-1]
    assert part.bytes_of(tail.start, tail.end, path) == made.bytes_of(tail.start, tail.end, path)


def test_whoever_keeps_what_is_read_does_not_wait_for_a_worker_that_has_not_begun(files: Path) -> None:
    with WorkerPool(NAMES, 1) as pool:
        pool.submit(files / "s1.jsonl", None)
        assert [Claimed, Part] == [type(each) for each in pool.read(files / "s1.jsonl", None) or ()]  # it runs
        pool.submit(files / "s2.jsonl", None)
        reading = pool.read(files / "s2.jsonl", None)
        assert reading is not None
        next(reading)
        assert not pool.take(files / "s2.jsonl")  # the worker has
        assert pool.take(files / "s3.jsonl")  # nobody was asked


FAULTY = """
from harken import runtimes

import msgspec

def claim(head, path):
    raise {error}

RUNTIME = msgspec.structs.replace(runtimes.get("codex"), name="faulty", claim=claim, keys=())
"""


@pytest.mark.parametrize("error", ["RuntimeError('a bad day')", "SystemExit('a bad day')"])
def test_a_plugin_that_fails_in_a_worker_is_told_by_name(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    site = tmp_path / "site"
    (site / "faulty-1.dist-info").mkdir(parents=True)
    (site / "faulty-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    (site / "faulty-1.dist-info" / "entry_points.txt").write_text("[harken.runtimes]\nfaulty = faulty_plugin:RUNTIME\n")
    (site / "faulty_plugin.py").write_text(FAULTY.format(error=error))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(runtimes.base, "_FAILED", {})
    monkeypatch.setattr("harken.runtimes.importer.WORTH_WORKERS", 0)
    runtimes.base._plugins.cache_clear()
    try:
        with harken.open(tmp_path / "store.db") as repo:
            importer = Importer(repo.store, [runtimes.get(name) for name in (*NAMES, "faulty")], jobs=2)
            statuses = [result.status for result in importer.run(walk(files))]
    finally:
        runtimes.base._plugins.cache_clear()
        sys.modules.pop("faulty_plugin", None)

    assert 14 == statuses.count("new")
    (problem,) = runtimes.failures()
    assert ("faulty", "faulty") == (problem.name, problem.package)
    assert "a bad day" in problem.reason


def test_a_worker_that_dies_is_a_failure_of_its_file(files: Path) -> None:
    with WorkerPool(NAMES, 1) as pool:
        pool.submit(files / "s1.jsonl", None)
        list(pool.read(files / "s1.jsonl", None) or ())
        (process,) = pool._processes
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        pool.submit(files / "s2.jsonl", None)
        with pytest.raises(HarkenError, match=r"s2.jsonl: the process that read it died \(signal 9\)"):
            list(pool.read(files / "s2.jsonl", None) or ())
        pool.submit(files / "s3.jsonl", None)

        said = list(pool.read(files / "s3.jsonl", None) or ())

    assert [Claimed, Part] == [type(each) for each in said]


def test_what_nobody_asks_for_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ClaudeSession("long")
    for _ in range(20):
        session.prompt("x" * 2_000_000)
        session.answer("y")
    path, other = tmp_path / "long.jsonl", tmp_path / "other.jsonl"
    path.write_bytes(session.data)
    other.write_bytes(conversation("other").data)
    with WorkerPool(NAMES, 1) as pool:
        pool.submit(path, None)
        pool.submit(other, None)
        reading = pool.read(path, None)
        assert reading is not None
        next(reading)
        reading.close()  # type: ignore[attr-defined]

        assert [Claimed, Part] == [type(each) for each in pool.read(other, None) or ()]


def test_interrupting_an_import_leaves_no_worker_behind(files: Path) -> None:
    pool = WorkerPool(NAMES, 2)
    paths = sorted(files.glob("s*.jsonl"))
    for path in paths:
        pool.submit(path, None)
    next(iter(pool.read(paths[0], None) or ()))  # threads start the workers: now one of them is at work
    processes = list(pool._processes)

    pool.close()

    assert processes
    assert all(process.poll() is not None for process in processes)
    assert not pool._processes


def test_where_no_worker_can_be_started_the_files_are_read_all_the_same(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with WorkerPool(NAMES, 2) as pool:
        pool.submit(files / "s1.jsonl", None)

        assert [Claimed, Part] == [type(each) for each in pool.read(files / "s1.jsonl", None) or ()]


def test_who_reads_a_file_instead_of_a_worker_may_read_it_again(tmp_path: Path) -> None:
    """A file that changes while it is read is read twice; no worker will ever begin it."""
    with WorkerPool(["claude-code"], 0) as pool:
        pool.submit(tmp_path / "a.jsonl", None)
        assert pool.take(tmp_path / "a.jsonl")
        assert pool.take(tmp_path / "a.jsonl")
