"""Before anybody chooses where to go on: each runtime says how much of the conversation it would be given."""

from __future__ import annotations

from pathlib import Path

from harken.api.fidelity import FidelityRequest, fidelity
from harken.api.runtimes import ResumeRequest, resume
from harken.events import Prompt, Response, Thinking
from harken.repo import Repo
from support.contexts import keep, memory_repo
from support.sessions import ClaudeSession


def claude(tmp_path: Path) -> Repo:
    session = ClaudeSession("11111111-1111-4111-8111-111111111111")
    session.prompt("mend the clock")
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    session.add("assistant", message={"id": "msg_1", "role": "assistant", "model": "m", "content": thought})
    session.answer("it is mended")
    path = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl"
    path.write_bytes(session.data)
    repo = memory_repo()
    list(repo.import_sessions([path]))
    return repo


def test_its_own_runtime_gets_it_exactly_and_comes_first(tmp_path: Path) -> None:
    answers = list(fidelity(claude(tmp_path), FidelityRequest(ref="11111111")))

    assert ("claude-code", "exact", "1", []) == (
        answers[0].runtime,
        answers[0].fidelity,
        answers[0].tier,
        answers[0].losses,
    )
    assert ("codex", "translated", "2s") == (answers[1].runtime, answers[1].fidelity, answers[1].tier)


def test_it_says_what_resume_would_lose(tmp_path: Path) -> None:
    repo = claude(tmp_path)
    told = next(one for one in fidelity(repo, FidelityRequest(ref="11111111")) if one.runtime == "codex")

    request = ResumeRequest(ref="11111111", runtime="codex", cwd=str(tmp_path), home=str(tmp_path / "codex"))
    done = resume(repo, request)

    assert (done.tier, done.losses, done.source) == (told.tier, told.losses, told.commit)
    assert told.losses


def test_nothing_is_written(tmp_path: Path) -> None:
    repo = claude(tmp_path)
    before = repo.store.last_change

    list(fidelity(repo, FidelityRequest(ref="11111111")))

    assert before == repo.store.last_change


def test_what_nobody_can_read_cannot_be_continued() -> None:
    repo = memory_repo()
    commit = repo.checkpoint(b"\x00\x01", format="something-v9")

    answers = list(fidelity(repo, FidelityRequest(ref=commit.id)))

    assert {"no"} == {one.fidelity for one in answers}
    assert all(one.problem for one in answers)


def test_a_conversation_of_harken_is_translated_for_everybody() -> None:
    repo = memory_repo()
    said = [Prompt(message_id="1", content="hello"), Thinking(message_id="2", content="hm"), Response(content="hi")]
    commit = keep(repo, [event.replace(message_id=str(at)) for at, event in enumerate(said)])

    answers = list(fidelity(repo, FidelityRequest(ref=commit.short)))

    assert {"translated"} == {one.fidelity for one in answers}
    assert {commit.short} == {one.short for one in answers}
