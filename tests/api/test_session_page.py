"""The head of a session's page, and transcripts of sessions in which several agents speak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.analytics.transcript_rows import DeltaRows
from harken.api.session_page import SessionPageRequest, session_page
from harken.api.transcript import TranscriptPlaceRequest, TranscriptRequest, transcript, transcript_place
from harken.clock import parse_instant
from harken.repo import Repo
from support import std_documents, traces
from support.discussion import play
from support.sessions import ClaudeSession, conversation


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as opened:
        yield opened


def keep(repo: Repo, path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    before = {row.session for row in repo.sessions()}
    assert "failed" not in {one.status for one in repo.import_sessions([path])}
    return min((row.session for row in repo.sessions() if row.session not in before and not row.parent), default="")


def test_the_page_of_a_session_says_what_it_is(repo: Repo, tmp_path: Path) -> None:
    keep(repo, tmp_path / "one.jsonl", conversation("one-and-only", turns=3).data)

    found = session_page(repo, SessionPageRequest(session="one-and"))

    assert ("one-and-only", "one-and-", "claude-code", "question 0") == (
        found.session, found.short, found.runtime, found.title,
    )  # fmt: skip
    assert ("2026-02-22T10:30:01.000000Z", "2026-02-22T10:30:12.000000Z") == (found.started, found.ended)
    assert (9, 3, 3, 3, 0, 6) == (
        found.rows, found.figures.prompts, found.figures.calls, found.figures.responses, found.figures.compactions,
        found.figures.requests,
    )  # fmt: skip
    assert (24, 51) == (found.figures.tokens.input, found.figures.tokens.output)
    assert ["scripted"] == list(found.figures.models)
    assert (None, ["scripted"]) == (found.price_usd_micros, found.unpriced)
    assert not found.figures.stale
    assert found.resumable
    assert ["transcript", "lanes", "commits", "stats"] == found.views
    assert (None, None) == (found.changed, found.blocked)
    assert [("claude-code", "one-and-only", 3)] == [(one.id, one.session, one.calls) for one in found.agents]


def test_a_session_runs_for_two_minutes_after_its_newest_record(tmp_path: Path) -> None:
    last = parse_instant("2026-02-22T10:30:12Z")
    assert last is not None
    for seconds, running in ((0, True), (119, True), (121, False)):
        with harken.open(tmp_path / f"{seconds}.db", clock=lambda at=last + seconds * 1_000_000: at) as repo:
            keep(repo, tmp_path / "one.jsonl", conversation("one", turns=3).data)
            assert running == session_page(repo, SessionPageRequest(session="one")).running


def test_sub_agents_are_listed_with_the_calls_that_made_them(repo: Repo, tmp_path: Path) -> None:
    main = ClaudeSession("one")
    main.prompt("ask somebody")
    main.call("Task", "found it", agent="a1", prompt="look into it")
    agent = ClaudeSession("one", agent="a1", salt="agent")
    agent.prompt("look into it")
    agent.call("Read", "a file")
    agent.answer("found it")
    keep(repo, tmp_path / "p" / "one.jsonl", main.data)
    keep(repo, tmp_path / "p" / "one" / "subagents" / "agent-a1.jsonl", agent.data)
    list(repo.import_sessions([tmp_path / "p"]))

    found = session_page(repo, SessionPageRequest(session="one"))

    assert [("claude-code", None, None), ("a1", "claude-code", "toolu_one_2")] == [
        (one.id, one.parent, one.call_id) for one in found.agents
    ]
    assert {"flow", "agents"} <= set(found.views)
    inside = session_page(repo, SessionPageRequest(session="one/a1"))
    assert ("one", True, "a1", "one/a1") == (inside.parent, inside.parent_stored, inside.agent, inside.short)


class TestSeveralAgentsInOneLog:
    @pytest.fixture
    def session(self, repo: Repo, tmp_path: Path) -> str:
        path = tmp_path / "log" / "session.jsonl"
        path.parent.mkdir()
        play(path)
        return keep(repo, path, path.read_bytes())

    def test_the_page_names_them_and_counts_what_hooks_did(self, repo: Repo, session: str) -> None:
        found = session_page(repo, SessionPageRequest(session=session))
        view = repo.view(session)

        assert set(view.list_agents()) >= {one.id for one in found.agents}
        assert len(found.agents) > 2
        changed = [one for one in view.interventions() if one["kind"] == "changed"]
        assert (len(changed), len(view.interventions()) - len(changed)) == (found.changed, found.blocked)
        assert "flow" in found.views

    def test_every_event_is_in_one_row_and_every_agent_has_its_name(self, repo: Repo, session: str) -> None:
        rows = transcript(repo, TranscriptRequest(session=session, count=500)).rows
        events = repo.events(session)
        told = DeltaRows(events)
        names = repo.view(session).list_agents()

        assert len(told.rows) == len(rows)
        assert {row.event.message_id for row in told.rows} == {row.id for row in rows}
        spoken = {row.who for row in rows if row.kind == "answer"}
        assert spoken <= set(names.values())
        for row in rows[::7]:
            asked = TranscriptPlaceRequest(session=session, id=row.id, index=row.index)
            assert row.n == transcript_place(repo, asked).n


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_a_session_document_has_rows(repo: Repo, tmp_path: Path, kind: str) -> None:
    made = getattr(std_documents, kind)()
    session = keep(repo, tmp_path / "document.json", json.dumps(made).encode())

    answer = transcript(repo, TranscriptRequest(session=session))
    assert len(DeltaRows(repo.events(session)).rows) == answer.total > 0
    assert "document" in session_page(repo, SessionPageRequest(session=session)).views


def test_a_trace_has_rows(repo: Repo, tmp_path: Path) -> None:
    asked = [traces.said("user", {"type": "text", "content": "hello"})]
    answer = [traces.said("assistant", {"type": "text", "content": "good day"}, finish_reason="stop")]
    session = keep(repo, tmp_path / "trace.json", traces.document(traces.chat("a1", asked, answer)))

    rows = transcript(repo, TranscriptRequest(session=session)).rows
    assert [("agent", ""), ("prompt", "hello"), ("answer", "good day")] == [(row.kind, row.text) for row in rows]
