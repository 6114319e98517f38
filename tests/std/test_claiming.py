"""Which files an import takes for session documents, wherever in them it stands and however they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken import Repo, formats, runtimes
from harken.repo import looking
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from support.command_line import Run
from support.std_documents import multi, single

LONG = {"artifacts": ["word " * 40_000]}
"""More than what is looked at first."""


def take(repo: Repo, path: Path, *, named: bool = False) -> list[ImportResult]:
    return list(Importer(repo.store, [runtimes.get(name) for name in runtimes.names()]).run([path], named=named))


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (LONG | single(), "std-001"),
        (LONG | multi(), "std-008"),
        ({"session_id": "s", "tool_calls": [], "task_title": "t", "status": "success"} | LONG | multi(), "std-008"),
    ],
    ids=["all of its keys", "all of its keys, of several agents", "only the collaboration"],
)
def test_a_document_is_found_wherever_its_keys_stand(
    repo: Repo, tmp_path: Path, document: dict[str, object], kind: str
) -> None:
    path = tmp_path / "late.json"
    path.write_text(json.dumps(document))

    assert [(document["session_id"], kind, "new")] == [(o.session, o.runtime, o.status) for o in take(repo, path)]
    assert {"application/json"} == {looking.open_file(path)[1].media_type, looking.format_of(path).media_type}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("more", [{}, LONG], ids=["short", "long"])
def test_a_document_in_another_encoding_is_the_same_session(
    repo: Repo, tmp_path: Path, encoding: str, more: dict[str, object]
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(json.dumps(more | multi(), ensure_ascii=False).encode(encoding))

    (outcome,) = take(repo, path)

    told = {row.session: row.messages for row in repo.store.sessions()}
    path.write_bytes(json.dumps(more | multi(), ensure_ascii=False).encode())
    take(repo, path)
    assert multi()["session_id"] == outcome.session
    assert told == {row.session: row.messages for row in repo.store.sessions()}


def test_a_document_of_which_all_was_done_in_sub_sessions_is_one(repo: Repo, tmp_path: Path) -> None:
    document = multi()
    del document["tool_calls"]
    path = tmp_path / "subs.json"
    path.write_text(json.dumps(document))

    assert ["std-008"] == [one.runtime for one in take(repo, path)]


def test_a_document_with_a_comma_too_many_is_read_and_that_is_told(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "comma.json"
    path.write_text(json.dumps(single())[:-1] + ",}")

    (outcome,) = take(repo, path)

    assert (single()["session_id"], 1) == (outcome.session, outcome.opaque)
    events = formats.get("std-001").read(path.read_bytes())
    why = "the document is no JSON, and was read as if it were: line 1: a comma behind the last entry was removed"
    assert [why] == [event.why for event in events if getattr(event, "why", "")]


def test_a_document_in_a_fence_of_markdown_is_found_and_read(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "fenced.json"
    path.write_text(f"```json\n{json.dumps(single())}\n```\n")

    assert [(single()["session_id"], 1)] == [(one.session, one.opaque) for one in take(repo, path)]


def test_other_files_of_a_folder_are_read_to_the_end_only_where_they_may_be_documents(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[tuple[str, int]]()
    plain = runtimes.files.OpenFile.chunks

    def watched(file: runtimes.files.OpenFile, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        for chunk in plain(file, start, size):
            read.append((file.path.name, len(chunk)))
            yield chunk

    monkeypatch.setattr(runtimes.files.OpenFile, "chunks", watched)
    (tmp_path / "list.json").write_text(json.dumps(["word"] * 40_000))
    (tmp_path / "lines.jsonl").write_text('{"word": 1}\n' * 40_000)

    for name in ("list.json", "lines.jsonl"):
        assert ["skipped"] == [one.status for one in take(repo, tmp_path / name)]
    assert 2 * formats.HEAD == sum(size for _, size in read)


def test_a_file_that_was_named_and_is_no_document_is_refused_with_a_hint(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"sessionNumber": 5}')

    done = run("import", str(path))

    assert 1 == done.code
    assert "not a session of any runtime that can be imported" in done.err
    assert "`harken std validate` says what is wrong" in done.err
