"""`harken run generic`: any program, line by line."""

from __future__ import annotations

import json
import subprocess

import harken
from harken import runtimes
from harken.events import Event, Prompt, Response, System

from .conftest import Bench


def run(bench: Bench, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = ["harken", "run", "generic", *words]
    return subprocess.run(
        command, env=bench.environment, cwd=bench.folder, input=stdin, capture_output=True, text=True, timeout=60
    )


def kept(bench: Bench) -> list[Event]:
    with harken.open(bench.store) as repo:
        (row,) = repo.store.sessions()
        assert "generic" == row.runtime
    return bench.events(f"live/{row.session}")


def said(events: list[Event]) -> list[str]:
    return [event.content for event in events if isinstance(event, (Prompt, Response))]


def test_each_line_is_shown_and_kept_behind_the_command_and_what_was_piped_in(bench: Bench) -> None:
    done = run(bench, "--", "sh", "-c", "read x; echo got $x; echo; printf end", stdin="a b\n")

    assert (0, "got a b\n\nend\n", "") == (done.returncode, done.stdout, done.stderr)
    assert ["sh -c 'read x; echo got $x; echo; printf end'\na b\n", "got a b", "end"] == said(kept(bench))


def test_the_exit_status_is_the_programs_and_is_kept(bench: Bench) -> None:
    done = run(bench, "--", "sh", "-c", "echo out; echo bad >&2; exit 7")

    assert (7, "bad\n") == (done.returncode, done.stderr)
    last = kept(bench)[-1]
    assert isinstance(last, System)
    assert ("shutdown", 7) == (last.subtype, json.loads(last.metadata)["exit_status"])


def test_a_program_that_says_nothing_is_a_session_too(bench: Bench) -> None:
    assert 0 == run(bench, "--", "true").returncode
    assert ["true"] == said(kept(bench))


def test_lines_that_look_like_another_programs_are_lines(bench: Bench) -> None:
    line = json.dumps({"type": "system", "subtype": "init", "session_id": "s"})
    run(bench, "--", "printf", "%s\n", line)

    assert line == said(kept(bench))[1]


def test_there_is_a_commit_when_it_is_quiet_and_its_tools_may_ask_for_it(bench: Bench) -> None:
    asks = "echo one; sleep 1.4; harken current-context; echo two"
    done = run(bench, "--", "sh", "-c", asks)

    _, name, _ = done.stdout.splitlines()
    with harken.open(bench.store) as repo:
        held = repo.materialize(name, format="openai-chat-v1").bytes
        (row,) = repo.store.sessions()
        commits = len(repo.store.chain(row.tip))
    assert ("assistant", "one") == tuple(json.loads(held)["messages"][-1][key] for key in ("role", "content"))
    assert commits >= 2


def test_what_cannot_be_is_refused_before_anything_runs(bench: Bench) -> None:
    for words, why in (
        ([], "which program is to be run?"),
        (["--", "no-such-program"], "is not on PATH"),
        (["--from", "x", "--", "true"], "no"),
    ):
        done = run(bench, *words)

        assert done.returncode
        assert why in done.stderr


def test_it_can_be_run_and_nothing_else() -> None:
    assert {"run"} == runtimes.get("generic").can
