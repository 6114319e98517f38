"""`harken import` at the command line: lines, a report, and exit codes that other programs can rely on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import harken
from harken.api.runtimes import ImportReport, WatchRequest, watch
from support.sessions import ClaudeSession, conversation


def run(tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "HARKEN_STORE": str(tmp_path / "store" / "store.db")}
    return subprocess.run([sys.executable, "-m", "harken", *args], capture_output=True, text=True, env=env, timeout=120)


def test_the_home_of_each_runtime_is_looked_through(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    (folder / "aaa.jsonl").write_bytes(conversation("aaa").data)

    done = run(tmp_path, "import", "--json")

    line, report = map(json.loads, done.stdout.splitlines())
    assert 0 == done.returncode
    keys = {"session", "runtime", "source", "tip", "agents", "commits", "records", "opaque", "bytes", "usage", "status"}
    assert keys <= set(line)
    assert ("aaa", "claude-code", "new", 12) == (line["session"], line["runtime"], line["status"], line["records"])
    assert {"input": 24, "output": 51, "cache_read": None, "cache_write": None} == line["usage"]
    assert {"sessions": 1, "failed": 0, "records": 12} == {
        k: report["report"][k] for k in ("sessions", "failed", "records")
    }


def test_some_failures_are_told_and_give_exit_1_while_the_rest_goes_in(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "aaa.jsonl").write_bytes(conversation("aaa").data)
    os.mkfifo(files / "pipe.jsonl")

    done = run(tmp_path, "import", str(files))

    assert 1 == done.returncode
    assert "new       aaa" in done.stdout
    assert "pipe.jsonl: not a regular file" in done.stderr
    assert "1 failed" in done.stderr


def test_a_named_file_that_is_no_session_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")

    done = run(tmp_path, "import", str(tmp_path / "notes.txt"))

    assert 1 == done.returncode
    assert "not a session" in done.stderr


def test_a_path_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, "import", str(tmp_path / "nowhere"))

    assert 1 == done.returncode
    assert "No such file" in done.stderr


def test_an_empty_home_gets_a_hint(tmp_path: Path) -> None:
    done = run(tmp_path, "import")

    assert 1 == done.returncode
    assert "hint: name a file or a folder" in done.stderr


def test_an_unknown_runtime_is_a_usage_error_that_lists_the_known(tmp_path: Path) -> None:
    done = run(tmp_path, "import", "--runtime", "telepathy")

    assert 2 == done.returncode
    assert "claude-code, codex" in done.stderr


def test_the_tails_that_a_grown_file_superseded_are_shown_on_request(tmp_path: Path) -> None:
    path = tmp_path / "aaa.jsonl"
    session = conversation("aaa")
    path.write_bytes(session.data)
    run(tmp_path, "import", str(path))
    session.side({"type": "mode", "mode": "default"})
    path.write_bytes(session.data)
    run(tmp_path, "import", str(path))

    plain = run(tmp_path, "log", "aaa", "--json").stdout.splitlines()
    everything = run(tmp_path, "log", "aaa", "--all", "--json").stdout.splitlines()

    assert len(plain) + 1 == len(everything)


def test_a_rewritten_file_has_grown_for_programs_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "aaa.jsonl"
    path.write_bytes(conversation("aaa", salt="x").data)
    run(tmp_path, "import", str(path))
    path.write_bytes(conversation("aaa", salt="y").data)

    line = json.loads(run(tmp_path, "import", str(path), "--json").stdout.splitlines()[0])

    assert ("grown", True) == (line["status"], line["rewritten"])


def test_files_passed_over_are_counted_and_named_on_request(tmp_path: Path) -> None:
    """#34"""
    files = tmp_path / "files"
    files.mkdir()
    (files / "aaa.jsonl").write_bytes(conversation("aaa").data)
    (files / "other.jsonl").write_text('{"a":1}\n')

    plain, verbose = run(tmp_path, "import", str(files)), run(tmp_path, "import", str(files), "-v")
    report = json.loads(run(tmp_path, "import", str(files), "--json").stdout.splitlines()[-1])["report"]

    assert "1 file passed over (-v names them)" in plain.stderr
    assert "other.jsonl: not a session of any runtime" in verbose.stderr
    assert "1 file passed over" in verbose.stderr
    assert "-v names them" not in verbose.stderr, "they were named"
    assert "other.jsonl" not in plain.stderr
    why = "not a session of any runtime that can be imported"
    assert [{"source": str(files / "other.jsonl"), "why": why}] == report["passed_over"]
    assert (0, 0) == (plain.returncode, verbose.returncode)


def test_a_watch_counts_a_file_that_it_passes_over_once(tmp_path: Path) -> None:
    """#34: however often it has changed; one that has become a session is none of them."""
    other, late = tmp_path / "other.jsonl", tmp_path / "late.jsonl"
    other.write_text('{"a":1}\n')
    late.write_text('{"a":1}\n')
    looks = 0

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal looks
            looks += 1
            with other.open("a") as file:
                file.write('{"a":1}\n')
            late.write_bytes(conversation("late").data)
            return looks > 3 or super().wait(timeout)

    with harken.open(tmp_path / "store.db") as repo:
        request = WatchRequest(paths=(str(tmp_path),), interval=0.01)
        *_, last = watch(repo, request, stop=Stop())

    assert isinstance(last, ImportReport)
    assert (1, [str(other)]) == (last.report.skipped, [one.source for one in last.report.passed_over])


def test_a_runtimes_home_that_cannot_be_looked_at_stops_nothing(tmp_path: Path) -> None:
    """#34"""
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    (folder / "aaa.jsonl").write_bytes(conversation("aaa").data)
    (tmp_path / ".codex").mkdir()
    loop = tmp_path / ".codex" / "sessions"
    loop.symlink_to(loop)

    done = run(tmp_path, "import")

    assert 1 == done.returncode
    assert "new       aaa" in done.stdout
    assert f"{loop}: Too many levels of symbolic links" in done.stderr


def test_a_session_whose_first_line_is_long_is_recognised(tmp_path: Path) -> None:
    """#34: a first prompt with a picture in it."""
    session = ClaudeSession("aaa")
    session.prompt("x" * 300_000)
    session.answer("done")
    (tmp_path / "aaa.jsonl").write_bytes(session.data)

    done = run(tmp_path, "import", str(tmp_path / "aaa.jsonl"))

    assert "new       aaa" in done.stdout


def test_a_session_may_have_a_longer_name_than_any_file(tmp_path: Path) -> None:
    name = "x" * 5000
    (tmp_path / "aaa.jsonl").write_bytes(conversation(name).data)
    run(tmp_path, "import", str(tmp_path / "aaa.jsonl"))

    for words in (["stats", name], ["log", name], ["view", "timeline", name], ["agents", name]):
        done = run(tmp_path, *words)

        assert (0, "") == (done.returncode, done.stderr), words
    missing = run(tmp_path, "stats", "y" * 5000)
    assert (3, False) == (missing.returncode, "Traceback" in missing.stderr)
