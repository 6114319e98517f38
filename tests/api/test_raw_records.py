"""Raw records: every byte of a session as it was taken in, in pieces of a bounded size."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.api.raw_records import RawRecordsAnswer, RawRecordsRequest, raw_records
from harken.errors import BadRequest, NotFound
from harken.repo import Repo
from harken.repo.raw_records import PIECE
from support.contexts import memory_repo
from support.sessions import ClaudeSession


def imported(tmp_path: Path, *prompts: str) -> tuple[Repo, bytes]:
    """A session of these prompts in a store, and its bytes."""
    session = ClaudeSession("11111111-1111-4111-8111-111111111111")
    for text in prompts:
        session.prompt(text)
        session.answer("yes")
    path = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl"
    path.write_bytes(session.data)
    repo = memory_repo()
    assert ["new"] == [one.status for one in repo.import_sessions([path])]
    return repo, session.data


def asked(repo: Repo, **how: int) -> RawRecordsAnswer:
    return raw_records(repo, RawRecordsRequest(session="11111111", **how))


def test_together_the_pieces_are_the_file(tmp_path: Path) -> None:
    repo, data = imported(tmp_path, "one", "two", "three")

    answer = asked(repo)

    assert data == "".join(record.text for record in answer.records).encode()
    assert (len(data), answer.commits) == (answer.bytes, answer.total)
    assert list(range(answer.total)) == [record.n for record in answer.records]
    assert all(record.commit.startswith("ctx-") and record.time for record in answer.records)


def test_what_is_long_comes_in_pieces_and_no_character_is_torn(tmp_path: Path) -> None:
    repo, data = imported(tmp_path, "é" * 12_001 + "\N{OWL}" * 9_000, "short")

    one_by_one = [record for at in range(asked(repo).total) for record in asked(repo, start=at, count=1).records]

    assert asked(repo).records == one_by_one
    assert data == "".join(record.text for record in one_by_one).encode()
    assert max(len(record.text.encode()) for record in one_by_one) <= PIECE + 3
    assert "\ufffd" not in "".join(record.text for record in one_by_one)


def test_a_character_at_the_edge_stands_in_one_piece(tmp_path: Path) -> None:
    for before in range(4):
        repo = memory_repo()
        text = "x" * (PIECE - before) + "\N{OWL}" * 5000
        repo.checkpoint(text.encode(), format="text-v0", session_id="11111111")

        assert text == "".join(record.text for record in asked(repo).records)


def test_bytes_that_are_gone_are_said_and_hide_no_others(tmp_path: Path) -> None:
    repo, _ = imported(tmp_path, "one", "two")
    first = asked(repo).records[0]
    with repo.store.write() as writer:
        writer.evict(repo.commit(first.commit_id).artifact)

    records = asked(repo).records

    assert ("", True) == (records[0].text, bool(records[0].problem))
    assert records[1].text
    assert not records[1].problem


@pytest.mark.parametrize(("start", "count"), [(-1, 10), (0, 0), (0, 201)])
def test_a_range_is_bounded(tmp_path: Path, start: int, count: int) -> None:
    repo, _ = imported(tmp_path, "one")

    with pytest.raises(BadRequest):
        asked(repo, start=start, count=count)


def test_a_session_nobody_knows_is_not_found() -> None:
    with pytest.raises(NotFound):
        asked(memory_repo())
