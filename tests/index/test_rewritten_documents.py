"""A session document that is written anew: the index says what the last one says, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.formats.std.document import dumps
from harken.repo import Repo
from support.std_documents import Json, multi

QUESTIONS = (
    "SELECT agent, tool, call_id, time, failed, seconds, what FROM calls ORDER BY call_id, agent",
    "SELECT agent, role, message, part, tool, time, size FROM messages ORDER BY message, part, role, agent, size",
    "SELECT agent, messages, calls, started, ended FROM agents ORDER BY agent",
)


def without_a_call(document: Json) -> None:
    document["sub_sessions"][0]["tool_calls"] = []


def with_other_words(document: Json) -> None:
    document["user_prompt"] = "Have the bell mended."


def with_a_failed_call(document: Json) -> None:
    document["tool_calls"][0]["output"]["status"] = "failed"


def without_messages(document: Json) -> None:
    document["messages"] = []


def as_it_was(document: Json) -> None:
    """Changes nothing."""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def answers(repo: Repo) -> list[list[Any]]:
    return [list(repo.sql(question).rows) for question in QUESTIONS]


def written(path: Path, change: Callable[[Json], None]) -> None:
    document = multi()
    change(document)
    path.write_bytes(dumps(document))


@pytest.mark.parametrize("change", [without_a_call, with_other_words, with_a_failed_call, without_messages])
def test_what_an_older_document_said_is_gone_and_comes_back_with_it(
    repo: Repo, tmp_path: Path, change: Callable[[Json], None]
) -> None:
    path = tmp_path / "2026-03-04-002-two-hands-multi.json"
    for number, version in enumerate((as_it_was, change, as_it_was)):
        written(path, version)
        list(repo.import_sessions([path]))
        with harken.open(tmp_path / f"fresh-{number}.db") as fresh:
            list(fresh.import_sessions([path]))

            assert answers(fresh) == answers(repo)

    grown = answers(repo)
    repo.index.rebuild()
    assert grown == answers(repo)
