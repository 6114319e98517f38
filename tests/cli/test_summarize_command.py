"""`harken summarize`: lines on stdout, remarks on stderr, and `log` that reads as a history."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harken.events import Prompt, Response
from harken.repo import Repo
from support.contexts import chain, keep

Run = Callable[..., Any]


def test_the_lines_stand_in_the_log(run: Run, repo: Repo) -> None:
    commit = keep(repo, [Prompt(message_id="1", content="Fix it."), Response(message_id="2", content="It is fixed.")])

    done = run("summarize")

    assert f"{commit.short}  Fix it: “It is fixed.”\n" == done.out
    assert "1 commit summarized\n" == done.err
    assert "Fix it: “It is fixed.”" in run("log").out
    assert ("", "0 commits summarized\n") == (run("summarize").out, run("summarize").err)


def test_a_model_that_is_a_script_needs_no_network(run: Run, repo: Repo, tmp_path: Path) -> None:
    chain(repo, [1])
    (tmp_path / "m.json").write_text(json.dumps({"agents": {"summarize": ["Looked around"]}}))

    done = run("summarize", "--model", f"scripted:{tmp_path}/m.json", "--per-minute", "6000")

    assert "Looked around" in done.out


def test_a_model_that_fails_says_so_and_what_to_do(run: Run, repo: Repo, tmp_path: Path) -> None:
    chain(repo, range(4))
    (tmp_path / "m.json").write_text(json.dumps({"agents": {"summarize": [{"error": "no credit"}]}}))

    done = run("summarize", "--model", f"scripted:{tmp_path}/m.json")

    assert 1 == done.code
    assert "no credit" in done.err
    assert "hint: what was written is kept; the same command goes on with the rest" in done.err


def test_a_watch_ends_cleanly_when_it_is_interrupted(run: Run, repo: Repo) -> None:
    chain(repo, [1])
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()

    done = run("summarize", "--watch")

    interrupt.join()
    assert 0 == done.code
    assert 1 == len(done.lines)
    assert "watching; Ctrl-C stops\n1 commit summarized\n" == done.err
