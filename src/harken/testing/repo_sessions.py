"""What every `Repo` must do with sessions: look at them, count them, take them in, go on with them."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest

from harken.errors import BadRequest, Forgotten, HarkenError, NotFound
from harken.events import Metric, Prompt, Response
from harken.repo import Repo
from harken.runtimes.run import RunOutput

from .turns import grow, keep, talk

STREAM = (
    {"type": "system", "subtype": "init", "session_id": "5e551011-0000-4000-8000-000000000001", "model": "m"},
    {
        "type": "assistant",
        "message": {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
        "session_id": "5e551011-0000-4000-8000-000000000001",
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Hello.",
        "session_id": "5e551011-0000-4000-8000-000000000001",
    },
)
"""What Claude Code prints of a session in which it says hello."""


def a_claude(folder: Path) -> dict[str, str]:
    """An environment in which `claude` is a program that says hello."""
    program = folder / "claude"
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in STREAM).decode()
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}END\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.defpath}", "HOME": str(folder)}


def a_file(repo: Repo, folder: Path) -> Path:
    """A file of Claude Code's with two turns."""
    tip = grow(repo, 2)[-1]
    path = folder / "talk.jsonl"
    path.write_bytes(repo.materialize(tip.id, format="claude-code-v1").bytes)
    return path


class RepoSessionsContract:
    """The part of `RepoContract` that is about sessions."""

    # -- looking -----------------------------------------------------------------------------------------------

    def test_an_agent_begins_with_what_a_commit_knows(self, repo: Repo, tmp_path: Path) -> None:
        tip = grow(repo, 2)[-1]

        with repo.session(tmp_path / "log.jsonl") as session:
            agent = repo.agent(tip, session=session, name="Heir")
            known = [entry["content"] for entry in agent.transcript if entry["role"] != "tool" and entry.get("content")]

        assert [event.content for event in repo.conversation(tip) if isinstance(event, (Prompt, Response))] == known

    def test_sessions_and_their_agents_are_listed(self, repo: Repo) -> None:
        tip = grow(repo, 2, session_id="winter", template="claude-code")[-1]

        (row,) = repo.sessions()
        (agent,) = repo.agents("wint")

        assert ("winter", "claude-code", tip.id, 4) == (row.session, row.runtime, row.tip, row.messages)
        assert ("winter", tip.id) == (agent.session, agent.tip)
        assert [row] == repo.sessions("win")
        assert [] == repo.sessions("summer")
        assert 8 == len([event for event in repo.events("winter") if event.message_id[:1] == "m"])

    def test_a_session_is_seen_from_any_side(self, repo: Repo) -> None:
        grow(repo, 2, session_id="winter", template="codex")

        view = repo.view("winter")

        assert ["question 0", "answer 0", "question 1", "answer 1"] == [
            line["content"] for line in view.extract_dialog(["codex"])
        ]
        assert ["codex"] == [agent.agent for agent in repo.agents("winter")] == list(view.list_agents())
        assert {"codex"} == {event.agent_id for event in repo.events("winter")}
        assert ("m0a", "this") == (view.trace("m0a")[0]["event"]["message_id"], view.trace("m0a")[0]["step"])
        assert view.knows("codex", "m1a")["knows"]

    def test_words_are_found_and_rows_are_asked_for(self, repo: Repo) -> None:
        repo.checkpoint([Prompt(message_id="1", content="where is the heron?")], session_id="winter")

        assert ["winter"] == [hit.session for hit in repo.search("heron").hits]
        assert "session" in repo.search_filters()
        assert ["winter"] == repo.search_values("session")
        assert repo.has_search_value("session", "wint")
        assert not repo.has_search_value("session", "summer")
        assert [("winter",)] == [tuple(row) for row in repo.sql("SELECT session FROM sessions").rows]

    def test_tables_are_written_as_their_files_are_taken(self, repo: Repo, tmp_path: Path) -> None:
        repo.checkpoint([Prompt(message_id="1", content="where is the heron?")], session_id="winter")

        repo.export_parquet(tmp_path / "tables")
        assert not (tmp_path / "tables").exists()

    def test_every_commit_gets_a_line_once(self, repo: Repo) -> None:
        grow(repo, 3)
        told = [one.summary for one in repo.summarize()]

        assert told == [shown.summary for shown in repo.log()]
        assert 3 == len(list(filter(None, told)))
        assert [] == list(repo.summarize())

    def test_a_log_is_seen_and_listed_like_a_session(self, repo: Repo, tmp_path: Path) -> None:
        path = tmp_path / "cafe.jsonl"
        with repo.session(path) as session:
            session.log_agent_created("jack", name="Jack")
            session.log_transcript_entry("jack", {"role": "user", "content": "Good evening"})
            name = session.session_id

        assert ["Jack"] == [agent.name for agent in repo.agents(path)] == [one.name for one in repo.agents(name)]
        assert repo.view(path).timeline() == repo.view(name).timeline()
        assert repo.events(path) == repo.events(name)
        assert [*repo.export(path, to="jsonl").pieces()] == [*repo.export(name, to="jsonl").pieces()]
        assert ["Good evening"] == [event.content for event in repo.conversation(name) if isinstance(event, Prompt)]

    def test_a_session_and_its_file_are_the_same_document(self, repo: Repo, tmp_path: Path) -> None:
        path = tmp_path / "cafe.jsonl"
        with repo.session(path) as session:
            session.log_agent_created("jack", name="Jack")
            session.log_transcript_entry("jack", {"role": "user", "content": "Good evening"})
            name = session.session_id

        document = repo.document(name).document

        assert ("std-001", "Good evening") == (document.kind, document.data["user_prompt"])
        assert document.data["user_prompt"] == repo.document(path).document.data["user_prompt"]
        assert "single" == repo.document(name, kind="std-008").document.data["collaboration"]["mode"]

    def test_figures_are_counted_of_each_and_of_all(self, repo: Repo) -> None:
        for number, name in enumerate(("summer", "winter")):
            keep(repo, number, session_id=name)

        *each, total = repo.stats()

        assert ["summer", "winter"] == sorted(getattr(one, "session", "") for one in each)
        assert (2, 2) == (getattr(total, "sessions", 0), total.figures.tools["Read"])
        assert [1] == [one.figures.tools["Read"] for one in repo.stats(["winter"])]

    def test_a_session_is_reported(self, repo: Repo) -> None:
        keep(repo, 1, session_id="winter")

        found = repo.report("winter")

        assert (1, ["Read"]) == (found.amplification.prompts, list(found.tools))
        assert found.lifecycle.outcome is None

    def test_what_was_used_is_told_over_a_window_of_time(self, repo: Repo) -> None:
        used = Metric(api_id="m", model="nobody-knows", input_tokens=5, output_tokens=3, time=1_700_000_000_000_000)
        repo.checkpoint([used], session_id="winter")

        spent, progress = repo.usage(1_700_000_000_000_000, 1_700_000_000_000_001)
        none, _ = repo.usage(1_700_000_000_000_001)

        assert (0, 0) == (progress.behind, progress.stale)
        assert [("nobody-knows", 1, 5)] == [
            (group.key, group.spending.requests, group.spending.tokens.input) for group in spent.groups("model")
        ]
        assert ({"nobody-knows": 1}, None) == (spent.total().unpriced, spent.total().price_usd_micros)
        assert [{"winter"}] * 3 == [
            side.sessions
            for side in (spent.total(), spent.groups("day")[0].spending, spent.split("day", "model")[0].spending)
        ]
        assert [] == none.groups("model")
        with pytest.raises(BadRequest):
            spent.groups("mood")
        with pytest.raises(BadRequest):
            spent.split("day", "mood")

    def test_what_a_session_used_is_told_with_its_sub_agents(self, repo: Repo) -> None:
        used = Metric(api_id="m", model="nobody-knows", input_tokens=5, output_tokens=3, time=1_700_000_000_000_000)
        repo.checkpoint([used], session_id="winter")

        costs = repo.session_costs()

        assert ({"winter": 5}, [None]) == (
            {session: one.tokens.input for session, one in costs.items()},
            [one.price_usd_micros for one in costs.values()],
        )

    # -- in and out --------------------------------------------------------------------------------------------

    def test_a_file_is_taken_in_once(self, repo: Repo, tmp_path: Path) -> None:
        path = a_file(repo, tmp_path)

        (first,) = repo.import_sessions([str(path)])
        (again,) = repo.import_sessions([str(path)])

        assert ("new", "unchanged") == (first.status, again.status)
        assert path.read_bytes() == repo.materialize(first.session, stop="root").bytes

    def test_a_file_is_watched_until_it_is_enough(self, repo: Repo, tmp_path: Path) -> None:
        path, stop = a_file(repo, tmp_path), threading.Event()

        found = []
        for one in repo.watch([str(path)], interval=0.05, stop=stop):
            found.append(one)
            stop.set()

        assert found[0].tip == repo.commit(found[0].session).id

    def test_a_conversation_is_written_where_a_runtime_goes_on_with_it(self, repo: Repo, tmp_path: Path) -> None:
        tip = grow(repo, 2)[-1]

        ready = repo.resume(tip.id, "codex", cwd=str(tmp_path), home=str(tmp_path / "home"))
        assert [ready.session] == list(repo.resumed_sessions())

        assert (tip.id, True, "codex") == (ready.source, Path(ready.path).is_file(), ready.command[0])
        with pytest.raises(BadRequest):
            repo.resume(tip.id, "telepathy", cwd=".", home=".")

    def test_a_runtime_is_run_and_kept(self, repo: Repo, tmp_path: Path) -> None:
        shown: list[bytes] = []
        output = RunOutput(show=shown.append)

        ended = repo.run(
            "claude-code", ["-p", "hi"], cwd=str(tmp_path), environ=a_claude(tmp_path), output=output, ticket_id="17"
        )

        tip = repo.commit(ended.session)
        assert (0, b"Hello.\n", tip.short, "17") == (ended.status, b"".join(shown), ended.context_id, tip.ticket_id)
        said = [event.content for event in repo.conversation(tip.id) if isinstance(event, Prompt | Response)]
        assert ["hi", "Hello."] == said
        assert (True, [], []) == (ended.is_stored, repo.waiting_spools(), repo.store_spools())

    def test_events_are_kept_as_they_come(self, repo: Repo) -> None:
        tracker = repo.track(session_id="live", principal="me")
        tracker.feed(talk(0))
        tracker.close()

        assert (talk(0), "me") == (repo.conversation("live"), repo.commit("live").principal)

    def test_the_index_follows(self, repo: Repo) -> None:
        repo.checkpoint(talk(0), session_id="s")

        assert "" == repo.keep_index()
        assert [("s",)] == repo.sql("SELECT session FROM sessions").rows

    def test_the_index_itself_is_asked(self, repo: Repo) -> None:
        repo.checkpoint(talk(0), session_id="s")

        assert 0 == repo.index.catch_up().behind
        assert [("s",)] == repo.index.query("SELECT session FROM sessions")

    # -- errors ------------------------------------------------------------------------------------------------

    def test_a_session_that_is_not_there_is_not_found(self, repo: Repo, tmp_path: Path) -> None:
        for call in (repo.view, repo.events, repo.agents, lambda session: list(repo.stats([session]))):
            with pytest.raises(NotFound):
                call("nowhere")
            with pytest.raises(HarkenError):
                call(tmp_path / "nowhere.jsonl")

    # -- forgetting --------------------------------------------------------------------------------------------

    def test_what_is_forgotten_is_gone(self, repo: Repo, tmp_path: Path) -> None:
        path = a_file(repo, tmp_path)
        session = next(iter(repo.import_sessions([path]))).session
        assert [] == list(repo.find_secrets([session], moved=lambda size: None))

        would, done = repo.forget(session, dry_run=True), repo.forget(session, who="me", why="over")

        assert (would.places, (session,)) == (done.places, done.sessions)
        assert "all of it was forgotten" in repo.forgotten_of(session)
        assert [session] == repo.restorable([tmp_path])
        assert ["forgotten"] == [result.status for result in repo.import_sessions([path], verify=True)]
        with pytest.raises(Forgotten):
            repo.materialize(session)

    def test_what_was_forgotten_is_let_in_again(self, repo: Repo, tmp_path: Path) -> None:
        path = a_file(repo, tmp_path)
        session = next(iter(repo.import_sessions([path]))).session
        before = repo.materialize(session, stop="root").bytes
        done = repo.forget(session, who="me", why="over")

        assert ([], []) == (repo.unfinished_forgetting(), repo.finish_forgetting())
        assert [] == repo.restored_along([session])
        assert [done.erasure] == [erasure.number for erasure in repo.lift_forgetting([session])]
        list(repo.import_sessions([path], verify=True))
        assert before == repo.materialize(session, stop="root").bytes
