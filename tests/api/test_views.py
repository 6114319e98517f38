"""The views as operations: the same answers for a file and for the store, with exactly the keys the views have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken
from harken import Repo
from harken.api import operation, reference
from harken.errors import BadRequest, HarkenError, NotFound
from support.viewed import cafe, write_log

VIEWS: dict[str, dict[str, Any]] = {
    "events": {},
    "trace": {"message": "m14"},
    "view_compare": {},
    "view_dialog": {"agents": ("Jack", "Jill")},
    "view_flow": {},
    "view_heard": {"message": "m14"},
    "view_interventions": {},
    "view_knows": {"agent": "Jill", "what": "m14"},
    "view_perspective": {"agents": ("Jill",)},
    "view_problems": {},
    "view_sequence": {},
    "view_timeline": {},
    "view_tree": {},
    "view_who_knows": {"what": "m14"},
}


def ask(repo: Repo, name: str, **fields: Any) -> list[msgspec.Struct]:
    described = next(one for one in reference.operations() if one.name == name)
    answer = operation(name)(repo, described.request(**fields))
    return list(answer) if described.many else [answer]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "cafe.jsonl", cafe())


@pytest.fixture
def repo(log: Path) -> Iterator[Repo]:
    with harken.open("memory:") as repo:
        list(repo.import_sessions([log]))
        yield repo


def test_every_view_is_tried_here() -> None:
    known = {one.name for one in reference.operations() if one.name.startswith("view_")}

    assert known <= VIEWS.keys()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_tells_the_same_of_a_file_and_of_the_store(repo: Repo, log: Path, name: str) -> None:
    (row,) = (one for one in repo.sessions("cafe") if not one.parent)

    told = ask(repo, name, session=row.session, **VIEWS[name])

    assert told
    assert told == ask(repo, name, file=str(log), **VIEWS[name])


@pytest.mark.parametrize("name", VIEWS)
def test_an_answer_comes_back_from_the_wire(repo: Repo, log: Path, name: str) -> None:
    for answer in ask(repo, name, file=str(log), **VIEWS[name]):
        assert answer == msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))


def test_without_agents_everybody_is_meant(repo: Repo, log: Path) -> None:
    viewer = repo.view(log)

    for name in ("view_dialog", "view_perspective", "view_flow", "view_timeline", "view_sequence"):
        everybody = tuple(viewer.list_agents())
        assert len(ask(repo, name, file=str(log))) >= len(ask(repo, name, file=str(log), agents=everybody)) > 0


def test_the_flow_of_one_message_is_that_of_its_content(repo: Repo, log: Path) -> None:
    (one,) = ask(repo, "view_flow", file=str(log), message="m14")

    assert one in ask(repo, "view_flow", file=str(log))


def test_who_knows_asks_of_everybody_what_knows_asks_of_one(repo: Repo, log: Path) -> None:
    everybody = repo.view(log).list_agents()
    one_by_one = [ask(repo, "view_knows", file=str(log), agent=agent, what="m14")[0] for agent in everybody]

    assert one_by_one == ask(repo, "view_who_knows", file=str(log), what="m14")


def test_lines_that_are_wrong_are_counted(repo: Repo, log: Path) -> None:
    log.write_bytes(b"{broken\n" + log.read_bytes())

    problem, last = ask(repo, "view_problems", file=str(log))

    assert (1, 1) == (problem.line, last.report.problems)  # type: ignore[attr-defined]


def test_what_is_no_session_is_refused_in_words(repo: Repo, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("root:x:0:0\n")
    for fields, error in (
        ({}, BadRequest),
        ({"session": "a", "file": "b"}, BadRequest),
        ({"session": "nowhere"}, NotFound),
        ({"file": str(tmp_path / "none.jsonl")}, NotFound),
        ({"file": str(tmp_path)}, BadRequest),
        ({"file": str(other)}, NotFound),
    ):
        with pytest.raises(error) as problem:
            ask(repo, "view_tree", **fields)
        assert problem.value.hint
    with pytest.raises(HarkenError):
        ask(repo, "events", file=str(other))


def test_the_events_of_a_file_of_another_runtime_are_read_too(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(repo.materialize(repo.sessions("cafe")[0].session, format="claude-code-v1").bytes)

    assert {"prompt", "response"} <= {one.event["type"] for one in ask(repo, "events", file=str(path))}  # type: ignore[attr-defined]
