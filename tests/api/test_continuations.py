"""A conversation that one runtime began and another continued is one drawing."""

from __future__ import annotations

import json
from pathlib import Path

from harken.api.commit_rows import CommitRow, CommitRowsRequest, commit_rows
from harken.repo import Repo
from support.contexts import memory_repo
from support.sessions import ClaudeSession

SESSION = "11111111-1111-4111-8111-111111111111"


def continued(tmp_path: Path) -> tuple[Repo, str, str]:
    """A session of Claude Code that goes on in Codex: the store, the commit it goes on from, the new session."""
    session = ClaudeSession(SESSION)
    for text in ("one", "two", "three"):
        session.prompt(text)
        session.answer(f"{text} is done")
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(session.data)
    repo = memory_repo()
    list(repo.import_sessions([path]))
    origin = next(row for row in rows(repo) if row.text == "two")
    done = repo.resume(origin.ids[0], "codex", cwd=tmp_path, home=tmp_path / "codex")
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on here"}]}
    line = {"timestamp": "2026-02-23T10:00:00.000Z", "type": "response_item", "payload": said}
    with open(done.path, "a") as file:
        file.write(json.dumps(line) + "\n")
    list(repo.import_sessions([done.path]))
    return repo, origin.ids[0], done.session


def rows(repo: Repo, **how: str) -> list[CommitRow]:
    return commit_rows(repo, CommitRowsRequest(folded=False, **({"session": SESSION} | how))).rows  # type: ignore[arg-type]


def test_the_tree_of_a_session_has_what_goes_on_from_it_and_a_line_leads_there(tmp_path: Path) -> None:
    repo, origin, session = continued(tmp_path)

    found = rows(repo)

    own = [row for row in found if row.session == session]
    assert ("codex", origin) == (own[-1].runtime, own[-1].parent)
    assert own[-1].continues
    assert own[-1].parent_spawned
    place = next(row.n for row in found if row.ids == [origin])
    assert max(row.n for row in own) < place


def test_every_line_that_comes_down_to_a_row_began_above_it(tmp_path: Path) -> None:
    repo, _, _ = continued(tmp_path)

    for found in (rows(repo), rows(repo, session="")):
        seen: set[str] = set()
        for row in found:
            assert row.parent not in seen
            seen |= set(row.ids)


def test_in_all_of_the_store_each_commit_is_a_row_once(tmp_path: Path) -> None:
    repo, _, session = continued(tmp_path)

    found = [name for row in rows(repo, session="") for name in row.ids]

    assert len(set(found)) == len(found)
    assert set(found) == {name for row in rows(repo) for name in row.ids}
    assert session in {row.session for row in rows(repo, session="")}


def test_one_that_was_written_and_not_imported_is_no_row(tmp_path: Path) -> None:
    repo, origin, _ = continued(tmp_path)
    before = len(rows(repo))

    repo.resume(origin, "codex", cwd=tmp_path, home=tmp_path / "codex")

    assert before == len(rows(repo))
