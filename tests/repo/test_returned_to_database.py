"""A conversation of OpenCode that comes back to it, shortened or by way of another program, counts where it was held.

OpenCode's messages are told from others by their times, which go along wherever a conversation goes: what comes back is
called what it was called, and what was held first is no copy of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo
from support.opencode_database import TOKENS, OpenCodeDatabase, text

LATER = 3_600_000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OpenCodeDatabase]:
    """Four questions and their answers."""
    made = OpenCodeDatabase(tmp_path / "opencode.db")
    session = made.session()
    for number in range(4):
        made.turn(session, f"question {number}", text(f"answer {number}"))
    yield made
    made.close()


@pytest.fixture
def repo(tmp_path: Path, database: OpenCodeDatabase) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([database.path]))
        yield repo


def totals(repo: Repo) -> tuple[int, int, int, int | None]:
    """Of all sessions together: questions, answers, requests and the tokens that came in."""
    total = list(repo.stats())[-1].figures
    return total.prompts.human, total.responses, total.requests, total.usage.input


def times(number: int) -> tuple[int, int, int, int]:
    """What so many turns come to."""
    return number, number, number, number * TOKENS["input"]


def goes_on_in_opencode(repo: Repo, ref: str, database: OpenCodeDatabase, tmp_path: Path, **less: Any) -> str:
    """Written for OpenCode, taken in by it, and one turn more."""
    ready = repo.resume(ref, "opencode", cwd=tmp_path, home=tmp_path / "home", **less)
    database.take_in(Path(ready.path).read_bytes())
    database.wait(LATER)
    database.turn(ready.session, "one more question", text("one more answer"))
    list(repo.import_sessions([database.path]))
    return ready.session


@pytest.mark.parametrize("last", [1, 3])
def test_a_resume_with_less_takes_nothing_from_what_was_held_first(
    repo: Repo, database: OpenCodeDatabase, tmp_path: Path, last: int
) -> None:
    assert times(4) == totals(repo)
    goes_on_in_opencode(repo, "ses_one", database, tmp_path, last=last)
    assert times(5) == totals(repo)


@pytest.mark.parametrize("through", ["claude-code", "pi", "gemini-cli"])
def test_a_way_through_another_program_takes_nothing_from_what_was_held_first(
    repo: Repo, database: OpenCodeDatabase, tmp_path: Path, through: str
) -> None:
    home = tmp_path / (".gemini" if through == "gemini-cli" else "home")
    ready = repo.resume("ses_one", through, cwd=tmp_path, home=home)
    list(repo.import_sessions([ready.path]))
    assert times(4) == totals(repo)

    first = goes_on_in_opencode(repo, ready.session, database, tmp_path)
    assert times(5) == totals(repo)
    goes_on_in_opencode(repo, first, database, tmp_path, last=2)
    assert times(6) == totals(repo)
    with harken.open(tmp_path / "another.db") as other:  # knows what the sessions say of themselves
        list(other.import_sessions([ready.path]))
        list(other.import_sessions([database.path]))
        assert times(6) == totals(other)


def test_what_opencode_copies_out_of_a_session_that_came_from_elsewhere_counts_once(
    repo: Repo, database: OpenCodeDatabase, tmp_path: Path
) -> None:
    ready = repo.resume("ses_one", "pi", cwd=tmp_path, home=tmp_path / "home")
    list(repo.import_sessions([ready.path]))
    copied = goes_on_in_opencode(repo, ready.session, database, tmp_path)
    fork = database.session("ses_fork")
    for place, (message,) in enumerate(database.execute("SELECT id FROM message WHERE session_id = ?", copied)):
        _copy(database, fork, f"{place:012x}{'B' * 14}", message)
    list(repo.import_sessions([database.path]))

    assert times(5) == totals(repo)


def _copy(database: OpenCodeDatabase, session: str, name: str, source: str) -> None:
    """As OpenCode forks: other ids, the same times and words."""
    said = "time_created, time_updated, data FROM message WHERE id = ?"
    database.execute(f"INSERT INTO message SELECT ?, ?, {said}", f"msg_{name}", session, source)
    part = "time_created, time_updated, data FROM part WHERE message_id = ? AND json_extract(data, '$.type') = 'text'"
    database.execute(f"INSERT INTO part SELECT ?, ?, ?, {part}", f"prt_{name}", f"msg_{name}", session, source)
