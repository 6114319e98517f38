"""Agents that make room by themselves, and what becomes of it in the log and in the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harken.agents import load_session
from harken.agents.models import Gauge, ModelError, Reply, Request, Usage
from harken.events import Prompt, Tokens, TranscriptEdit
from harken.formats.session_log import events_of
from harken.repo import Repo
from support.contexts import heard, memory_repo


class Talker:
    """A model with a small window that answers at length, and sums up when it is asked to."""

    name = "talker"

    def __init__(self, *, window: int | None = 400, fails: bool = False) -> None:
        self.window = window
        self.fails = fails
        self.largest = 0

    async def complete(self, request: Request) -> Reply:
        said = sum(len(str(message.get("content"))) for message in request.messages)
        if "Sum up the conversation" in request.last_heard():
            if self.fails:
                raise ModelError("no summary today")
            return Reply(content="They talked.")
        self.largest = max(self.largest, said // 4)
        return Reply(content=f"answer {request.turn} " + "word " * 40, usage=Usage(tokens=Tokens(input=said // 4)))


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


def talk(repo: Repo, path: Path, model: Talker, turns: int) -> Iterator[Any]:
    async def speak(root: Any) -> None:
        for number in range(turns):
            root.harken(f"question {number}")
            await root.response()

    with repo.session(path) as session:
        root, _ = load_session(session, language_model=model)
        asyncio.run(speak(root))
        yield root
        expected = [event for data in session.entries(root.agent_id) for event in events_of(data)]
        standing = [e for e in heard(repo, session.session_id) if e.kind != "metric"]
        assert expected == standing, "the chain holds what the agent knows"


def test_an_agent_near_its_window_folds_its_oldest_turns(repo: Repo, tmp_path: Path) -> None:
    model = Talker()

    for root in talk(repo, tmp_path / "s.jsonl", model, turns=20):
        edits = [event for event in root.session.events() if isinstance(event, TranscriptEdit)]
        prompts = [event.content for event in heard(repo, root.session.session_id) if isinstance(event, Prompt)]

        assert edits
        assert ("question 0", "They talked.", "question 19") == (prompts[0], prompts[1], prompts[-1])
        assert model.largest < 400

    name = root.session.session_id
    kinds = [commit.commit_type for commit in repo.history(name)]
    assert len(edits) == kinds.count("compaction")
    everything = [e.content for e in heard(repo, name, stop="root") if isinstance(e, Prompt)]
    assert [f"question {number}" for number in range(20)] == everything


def test_a_point_before_a_compaction_is_what_the_agent_knew_there(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with repo.session(path) as session:
        session.log_agent_created("root")
        session.log_transcript_entry("root", {"role": "user", "content": "a"})
        reply = session.log_transcript_entry("root", {"role": "assistant", "content": "A"})
        session.log_transcript_edit("root", "compact", 2, content="They talked.")
        session.log_transcript_entry("root", {"role": "user", "content": "b"})
        last = session.log_transcript_entry("root", {"role": "assistant", "content": "B"})
        session.checkpoint()
        name = session.session_id

    imported = memory_repo()
    list(imported.import_sessions([path]))
    for kept in (repo, imported):
        known = [[e.content for e in heard(kept, f"{name}@{at}")] for at in (reply, last)]
        assert [["a", "A"], ["They talked.", "b", "B"]] == known
        assert ["delta", "compaction", "delta", "delta"] == [commit.commit_type for commit in kept.history(name)]
    assert repo.commit(name).id == imported.commit(name).id


def test_one_whose_window_nobody_knows_folds_nothing(repo: Repo, tmp_path: Path) -> None:
    for root in talk(repo, tmp_path / "s.jsonl", Talker(window=None), turns=10):
        assert 20 == len(root.transcript)


def test_one_that_cannot_be_summed_up_goes_on(repo: Repo, tmp_path: Path) -> None:
    for root in talk(repo, tmp_path / "s.jsonl", Talker(fails=True), turns=6):
        assert 12 == len(root.transcript)


def test_tokens_are_learned_from_what_the_provider_counts() -> None:
    gauge, messages = Gauge(), [{"role": "user", "content": "x" * 400}]

    assert 101 == gauge.tokens(messages)
    gauge.learn(messages, 200)
    assert 201 == gauge.tokens(messages)
    gauge.learn(messages, 0)
    assert 201 == gauge.tokens(messages)
