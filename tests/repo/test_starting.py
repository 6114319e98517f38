"""`repo.agent`: a native agent that begins with any context of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import BadRequest, NotFound, Repo, load_session
from harken.agents import Agent, ScriptedModel
from harken.repo.live import KeptSession

RECORDED = Path(__file__).parents[1] / "recorded"
MODEL = ScriptedModel({"agents": {"*": {"otherwise": "I remember."}}})


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def recorded(repo: Repo, runtime: str) -> str:
    """The id of a recorded session, in the store."""
    (path,) = [file for folder in RECORDED.glob(f"{runtime}-*/everyday") for file in folder.rglob("*.jsonl")]
    list(repo.import_sessions([path]))
    return repo.sessions()[0].session


def opened(repo: Repo, path: Path) -> tuple[Agent, KeptSession]:
    session = repo.session(path, ack="os")
    root, _ = load_session(session, language_model=MODEL, name="root")
    root.harken("Hello.")
    asyncio.run(root.response())
    return root, session


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_an_agent_goes_on_from_what_another_program_knew(repo: Repo, tmp_path: Path, runtime: str) -> None:
    source = recorded(repo, runtime)
    root, session = opened(repo, tmp_path / "log")
    with session:
        ann = repo.agent(source, session=session, name="Ann")
        known = len(ann.transcript)
        asked = [event for event in repo.conversation(source) if event.kind == "prompt"]
        assert any(asked[0].content == entry.get("content") for entry in ann.transcript)
        assert root is ann.parent
        ann.harken("What did you do?")
        assert "I remember." == asyncio.run(ann.response())
        tip = repo.commit(source)
        assert {"commit": tip.id, "session": tip.session_id} == session.agents[ann.agent_id].attributes["starts_from"]

    root, again = load_session(tmp_path / "log", language_model=MODEL)
    with again:
        assert known + 2 == len(root.subagents["Ann"].transcript)
    assert [] == harken.SessionViewer(tmp_path / "log").problems


def test_it_can_be_the_first_agent_of_a_session(repo: Repo, tmp_path: Path) -> None:
    source = recorded(repo, "codex")
    with repo.session(tmp_path / "log") as session:
        ann = repo.agent(source, session=session, name="Ann", language_model=MODEL)
        assert session.root == ann.agent_id
        ann.harken("Well?")
        assert "I remember." == asyncio.run(ann.response())


def test_it_can_start_from_an_agent_of_the_same_session(repo: Repo, tmp_path: Path) -> None:
    root, session = opened(repo, tmp_path / "log")
    with session:
        session.checkpoint()
        twin = repo.agent(session.session_id, session=session, name="Twin")
        assert ["Hello.", "I remember."] == [entry["content"] for entry in twin.transcript]
        assert twin.parent is root


def test_what_cannot_be_is_refused_and_leaves_nothing(repo: Repo, tmp_path: Path) -> None:
    source = recorded(repo, "codex")
    root, session = opened(repo, tmp_path / "log")
    with session:
        before = (tmp_path / "log").read_bytes()
        with pytest.raises(NotFound):
            repo.agent("nowhere", session=session, name="Ann")
        with pytest.raises(BadRequest, match="does not take 'init_prompt'"):
            repo.agent(source, session=session, init_prompt="Hi.")
        with pytest.raises(BadRequest, match="`session` of `agent` cannot be"):
            repo.agent(source, session="log")  # type: ignore[arg-type]
        root.spawn("Bob")
        with pytest.raises(BadRequest, match="already has a subagent 'Bob'"):
            repo.agent(source, session=session, name="Bob")
        assert ["Bob"] == list(root.subagents)
        assert (tmp_path / "log").read_bytes().startswith(before)
