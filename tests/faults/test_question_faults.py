"""A session that waits for a person is killed at every point at which something is written: each question is answered
once, and what may not be done twice is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harken import Session
from harken.log import OpenQuestion
from support import waiting

POINTS = 64
"""At least as many as there are; one behind the last kills nothing."""
SAMPLED = (7, 13, 22, 29, 37)


def run(folder: Path, die_at: int) -> int:
    """Play in a process of its own; its exit code."""
    command = [sys.executable, waiting.__file__, str(folder), str(die_at)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def check(folder: Path) -> None:
    with Session.load(folder / "log.jsonl", readonly=True) as session:
        assert [] == session.open_calls
        assert [] == session.open_questions()
        assert {} == session.registry.counts
        questions = session.registry.questions
        told = Counter(line["cause"] for line in session.records() if line.get("subtype") == "answer")
        assert dict.fromkeys(questions.asked, 1) == dict(told)
        asked = Counter(one.text for one in questions.asked.values())
        assert 1 == max(asked.values())
        for question in questions.asked.values():
            assert waiting.ANSWERS[question.text] == answer_of(session, question)
        root = session.entries(session.root or "")
        assert waiting.SAID == root[-1]["content"]
        results = {entry["tool_call_id"]: entry["content"] for entry in root if entry["role"] == "tool"}
        assert 5 == len(results)
        interrupted = [content for content in results.values() if "interrupted" in content]
    effects = Counter((folder / "effects").read_text().splitlines() if (folder / "effects").exists() else ())
    assert {"book tea", "pay 3"} >= effects.keys()
    assert 1 >= max(effects.values(), default=0)
    # A call that was killed before it had asked is answered as interrupted, like any other; an agent asks all the same.
    assert "Which one?" in asked
    assert len(waiting.ANSWERS) <= len(asked) + len(interrupted)
    assert 2 <= len(effects) + len(interrupted)


def answer_of(session: Session, question: OpenQuestion) -> str:
    given = session.answer_of(question)
    assert given is not None
    return given.text


def kill_and_go_on(folder: Path, die_at: int) -> bool:
    """Whether it was killed before its end."""
    struck = run(folder, die_at) != 0
    waiting.Play(folder, 0).run()
    check(folder)
    return struck


def test_a_session_that_waits_may_be_killed(tmp_path: Path) -> None:
    """Some points; `make test-faults` takes all of them."""
    struck = []
    for point in SAMPLED:
        (folder := tmp_path / str(point)).mkdir()
        struck.append(kill_and_go_on(folder, point))
    assert all(struck)


def test_there_are_fewer_points_than_are_tried(tmp_path: Path) -> None:
    play = waiting.Play(tmp_path, 0)
    play.run()

    check(tmp_path)
    assert 30 < play.points < POINTS


@pytest.mark.faults
@pytest.mark.parametrize("point", range(1, POINTS))
def test_it_may_be_killed_at_any_point(tmp_path: Path, point: int) -> None:
    kill_and_go_on(tmp_path, point)
