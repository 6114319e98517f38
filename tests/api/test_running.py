"""What is started through `api`: a runtime under observation, a chat; and what they leave in the store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import harken
from harken import Repo, RunOutput
from harken.api.chat import ChatReply, ChatRequest, ChatStart, chat
from harken.api.running import CurrentContextRequest, RunRequest, current_context, run
from harken.api.runtimes import RuntimesRequest, runtimes
from harken.errors import BadRequest, NotFound
from support.contexts import keep, turn
from support.fake_runtime import NOTES, STEPS, install
from support.stream_lines import SESSION, init, result, says


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which `claude` says hello."""
    steps = tmp_path / "steps.json"
    steps.write_text(json.dumps([init(), says("Hello."), result("Hello.")]))
    return {
        "PATH": f"{install(tmp_path / 'bin')}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        STEPS: str(steps),
        NOTES: str(tmp_path / "notes.json"),
    }


class TestRun:
    def test_a_run_is_kept_and_shown(self, repo: Repo, environ: dict[str, str], tmp_path: Path) -> None:
        shown: list[bytes] = []
        request = RunRequest(
            runtime="claude-code", words=("-p", "Say hello"), cwd=str(tmp_path), environ=environ, ticket_id="17"
        )

        ended = run(repo, request, output=RunOutput(show=shown.append))

        tip = repo.commit(SESSION)
        assert (0, SESSION, tip.short) == (ended.status, ended.session, ended.context_id)
        assert ("17", b"Hello.\n") == (tip.ticket_id, b"".join(shown))
        assert ["prompt", "response"] == [event.kind for event in repo.conversation(tip) if event.kind[:3] in "prores"]

    def test_without_an_output_nothing_is_shown_and_all_is_kept(
        self, repo: Repo, environ: dict[str, str], tmp_path: Path
    ) -> None:
        ended = repo.run("claude-code", ["-p", "Say hello"], cwd=tmp_path, environ=environ, thread_id="t")

        assert ("t", SESSION) == (repo.commit(ended.context_id).thread_id, ended.session)

    def test_a_template_of_the_users_is_found(self, repo: Repo, environ: dict[str, str], tmp_path: Path) -> None:
        folder = tmp_path / ".config" / "harken" / "templates"
        folder.mkdir(parents=True)
        (folder / "reviewer.toml").write_text('runtime = "claude-code"\n')

        ended = repo.run("claude-code", ["-p", "hi"], cwd=tmp_path, environ=environ, template="reviewer")

        assert "reviewer" == repo.commit(ended.context_id).template

    def test_what_makes_no_sense_is_refused_before_anything_starts(
        self, repo: Repo, environ: dict[str, str], tmp_path: Path
    ) -> None:
        where = {"cwd": str(tmp_path), "environ": environ}
        for request, error in (
            (RunRequest(runtime="nothing", **where), BadRequest),
            (RunRequest(runtime="harken", **where), BadRequest),
            (RunRequest(runtime="claude-code", ref="nowhere", **where), NotFound),
            (RunRequest(runtime="claude-code", template="none", **where), NotFound),
            (RunRequest(runtime="claude-code", frequency="often", words=("-p", "x"), **where), BadRequest),
            (RunRequest(runtime="claude-code", ticket_id="\udcff", words=("-p", "x"), **where), BadRequest),
            (RunRequest(runtime="claude-code", words=("-p", "x"), cwd=".", environ={"PATH": "/none"}), NotFound),
        ):
            with pytest.raises(error) as problem:
                run(repo, request)
            assert problem.value.hint
        with pytest.raises(BadRequest, match="colour"):
            repo.run("claude-code", cwd=".", environ=environ, colour="red")  # type: ignore[call-arg]
        assert not (tmp_path / "notes.json").exists()

    def test_outside_a_run_there_is_no_context(self) -> None:
        assert "" == current_context(None, CurrentContextRequest()).context_id
        assert "" == current_context(None, CurrentContextRequest(socket="/nowhere")).context_id


class TestChat:
    @pytest.fixture
    def request_(self, tmp_path: Path) -> ChatRequest:
        script = tmp_path / "script.json"
        script.write_text('{"agents": {"root": {"otherwise": "I remember."}}}')
        return ChatRequest(file=str(tmp_path / "new.jsonl"), model=f"scripted:{script}", texts=("go on", "and on"))

    def test_a_chat_answers_each_thing_that_is_said(self, request_: ChatRequest) -> None:
        start, *replies = chat(None, request_)

        assert isinstance(start, ChatStart)
        assert (0, False, []) == (start.messages, start.is_pending, start.missing_hooks)
        assert [ChatReply(text=text, reply="I remember.") for text in ("go on", "and on")] == replies

    def test_a_chat_begins_with_a_commit_of_any_runtime_and_is_resumed(self, repo: Repo, request_: ChatRequest) -> None:
        source = keep(repo, turn(1), session_id="old")

        start, *_ = chat(repo, replace(request_, ref="old"))
        again, reply = chat(repo, ChatRequest(file=request_.file, resume=True, texts=("more",)))

        assert isinstance(start, ChatStart)
        assert isinstance(again, ChatStart)
        assert (4, 0) == (start.messages, again.messages)
        assert ChatReply(text="more", reply="I remember.") == reply
        (session,) = {row.session for row in repo.sessions("new") if not row.parent}
        assert source.id == repo.history(session)[-1].forked_from

    def test_what_makes_no_sense_is_refused_and_leaves_no_file(self, repo: Repo, tmp_path: Path) -> None:
        there = tmp_path / "there.jsonl"
        list(chat(None, ChatRequest(file=str(there))))
        begun = tmp_path / "begun.jsonl"
        list(chat(None, ChatRequest(file=str(begun), texts=("hello",))))
        for request, error in (
            (ChatRequest(file=str(tmp_path / "none.jsonl"), resume=True), NotFound),
            (ChatRequest(file=str(there)), BadRequest),
            (ChatRequest(file=str(tmp_path)), BadRequest),
            (ChatRequest(file=str(there), resume=True, ref="x"), BadRequest),
            (ChatRequest(file=str(begun), resume=True, system_prompt="Be brief."), BadRequest),
            (ChatRequest(file=str(tmp_path / "a.jsonl"), ref="x", system_prompt="Be brief."), BadRequest),
            (ChatRequest(file=str(tmp_path / "a.jsonl"), model="scripted:none.json"), NotFound),
            (ChatRequest(file=str(tmp_path / "a.jsonl"), ref="nowhere"), NotFound),
        ):
            with pytest.raises(error) as problem:
                list(chat(repo, request))
            assert problem.value.hint
        with pytest.raises(BadRequest):
            list(chat(None, ChatRequest(file=str(tmp_path / "a.jsonl"), ref="x")))
        assert not (tmp_path / "a.jsonl").exists()


class TestRuntimes:
    def test_each_says_what_it_can(self) -> None:
        found = {one.name: one for one in runtimes(None, RuntimesRequest())}

        assert {"claude-code", "codex", "harken"} <= found.keys()
        assert ("Claude Code", ["import", "resume", "run"]) == (found["claude-code"].label, found["claude-code"].can)

    def test_those_that_can_do_something_are_chosen(self) -> None:
        assert "harken" not in {one.name for one in runtimes(None, RuntimesRequest(can="run"))}

    def test_one_that_is_not_there_is_refused_with_what_there_is(self) -> None:
        with pytest.raises(BadRequest) as problem:
            list(runtimes(None, RuntimesRequest(name="telepathy")))
        assert "claude-code" in (problem.value.hint or "")
