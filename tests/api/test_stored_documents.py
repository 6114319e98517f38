"""Session documents that are sessions of the store: listed, looked at, and held against their standard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken.api.documents import DocumentRequest, DocumentsRequest, document, documents
from harken.api.std_show import StdShowRequest, std_show
from harken.api.std_validate import StdValidateRequest, std_validate
from harken.errors import BadRequest
from harken.repo import Repo
from support.contexts import keep, memory_repo, turn
from support.std_documents import multi, single


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    opened = memory_repo()
    for each in (single(), multi(), broken()):
        (tmp_path / f"{each['session_id']}.json").write_text(json.dumps(each))
    assert {"new"} == {one.status for one in opened.import_sessions([tmp_path])}
    keep(opened, turn(0), session_id="talk", template="claude-code")
    return opened


def broken() -> dict[str, Any]:
    """A document whose summary counts what is not there."""
    found = single() | {"session_id": "2026-03-05-003-miscounted", "created_at": "2026-03-05T10:00:00Z"}
    return found | {"summary": found["summary"] | {"tool_calls_count": 7}}


def test_the_list_has_documents_and_nothing_else_and_the_newest_first(repo: Repo) -> None:
    answer = documents(repo, DocumentsRequest())

    assert 3 == answer.total
    assert "2026-03-05-003-miscounted" == answer.documents[0].session
    assert [0, 1, 2] == [row.n for row in answer.documents]
    assert not any(row.problem for row in answer.documents)


def test_it_can_be_of_one_kind_and_in_ranges(repo: Repo) -> None:
    (row,) = documents(repo, DocumentsRequest(kind="std-008")).documents

    assert ("Two hands", "approved", 3, 2) == (row.title, row.verdict, row.agents, row.tasks)
    assert [1] == [row.n for row in documents(repo, DocumentsRequest(start=1, count=1)).documents]


def test_a_document_is_shown_and_checked_as_its_file_is(repo: Repo, tmp_path: Path) -> None:
    path = str(tmp_path / f"{multi()['session_id']}.json")

    answer = document(repo, DocumentRequest(session=multi()["session_id"]))

    assert std_show(None, StdShowRequest(path=path)) == answer.shown
    assert list(std_validate(None, StdValidateRequest(paths=(path,)))) == [answer.checked]


def test_it_is_held_against_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "2026-03-06-001-another-name.json"
    path.write_text(json.dumps({key: value for key, value in multi().items() if key != "session_id"}))
    repo = memory_repo()
    assert ["new"] == [one.status for one in repo.import_sessions([path])]
    (row,) = documents(repo, DocumentsRequest()).documents

    answer = document(repo, DocumentRequest(session=row.session))

    assert list(std_validate(None, StdValidateRequest(paths=(str(path),)))) == [answer.checked]
    assert (row.errors, row.warnings) == (answer.checked.errors, answer.checked.warnings)
    assert "file-suffix" in {finding.rule for finding in answer.checked.findings}


def test_what_is_wrong_with_one_is_said(repo: Repo) -> None:
    row = documents(repo, DocumentsRequest()).documents[0]
    answer = document(repo, DocumentRequest(session=row.session))

    assert (row.errors, row.warnings) == (answer.checked.errors, answer.checked.warnings)
    assert any("tool_calls_count" in finding.path + finding.message for finding in answer.checked.findings)


def test_another_session_is_no_document(repo: Repo) -> None:
    with pytest.raises(BadRequest, match="no session document"):
        document(repo, DocumentRequest(session="talk"))


@pytest.mark.parametrize("request_", [{"count": 0}, {"count": 101}, {"start": -1}, {"kind": "std-002"}])
def test_what_is_out_of_bounds_is_refused(repo: Repo, request_: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        documents(repo, DocumentsRequest(**request_))


def test_one_that_cannot_be_read_any_more_is_listed_with_the_reason(repo: Repo) -> None:
    with repo.store.write() as writer:
        writer.evict(repo.commit("2026-03-05-003-miscounted").artifact)

    row = documents(repo, DocumentsRequest()).documents[0]

    assert ("2026-03-05-003-miscounted", True) == (row.session, bool(row.problem))
