"""Where a message stands in the flow: by its own id, or by that of a delivery of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Repo
from harken.api.flow_page import FlowPageAnswer, FlowPageRequest, FlowPlaceRequest, flow_page, flow_place
from harken.errors import NotFound
from support.viewed import cafe, write_log


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open("memory:") as repo:
        list(repo.import_sessions([write_log(tmp_path / "cafe.jsonl", cafe())]))
        yield repo


def session_of(repo: Repo) -> str:
    (row,) = (one for one in repo.sessions("cafe") if not one.parent)
    return row.session


def page(repo: Repo, tools: str) -> FlowPageAnswer:
    return flow_page(repo, FlowPageRequest(session=session_of(repo), tools=tools, count=200))


@pytest.mark.parametrize("tools", ["none", "some", "all"])
def test_every_row_is_found_by_its_message(repo: Repo, tools: str) -> None:
    shown = page(repo, tools)
    first = {row.message_id: row.n for row in reversed(shown.rows)}

    for message, n in first.items():
        found = flow_place(repo, FlowPlaceRequest(session=session_of(repo), message=message, tools=tools))
        assert (n, shown.total) == (found.n, found.total)


def test_what_somebody_heard_is_found_at_what_was_said(repo: Repo) -> None:
    shown = page(repo, "none")
    said = {row.message_id for row in shown.rows}
    heard = [(one.message_id, row.n) for row in shown.rows for one in row.hearers if one.message_id not in said]

    assert heard
    for message, _ in heard:
        found = flow_place(repo, FlowPlaceRequest(session=session_of(repo), message=message))
        assert any(one.message_id == message for one in shown.rows[found.n].hearers)


def test_a_message_among_the_rows_of_some_agents_has_the_number_it_has_there(repo: Repo) -> None:
    some = flow_page(repo, FlowPageRequest(session=session_of(repo), agents=("Jill",), count=200))

    for row in some.rows:
        asked = FlowPlaceRequest(session=session_of(repo), message=row.message_id, agents=("Jill",))
        assert row.n == flow_place(repo, asked).n


def test_a_message_that_is_no_row_is_refused_in_words(repo: Repo) -> None:
    with pytest.raises(NotFound) as problem:
        flow_place(repo, FlowPlaceRequest(session=session_of(repo), message="nothing"))

    assert "tools" in problem.value.hint
