"""`repo.agent`: a native agent that begins with any context of the store."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import BadRequest, NotFound, Repo, Session, load_session
from harken.agents import Agent, AgentPool, RunLimits, ScriptedModel
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


def test_what_was_said_elsewhere_is_no_step_under_a_limit(repo: Repo, tmp_path: Path) -> None:
    source = recorded(repo, "claude-code")
    steps = RunLimits(steps=1)
    with repo.session(tmp_path / "begun", start=source, ack="os") as session:
        root, _ = load_session(session, language_model=MODEL, limits=steps)
        assert any("assistant" == entry["role"] for entry in root.transcript)
        root.harken("Well?")
        assert "I remember." == asyncio.run(root.response())
        assert 1 == AgentPool.of(session).used().steps
    with repo.session(tmp_path / "log", ack="os") as session:
        ann = repo.agent(source, session=session, name="Ann", language_model=MODEL, limits=steps)
        ann.harken("Well?")
        assert "I remember." == asyncio.run(ann.response())
        assert 1 == AgentPool.of(session).used().steps
    for name in ("begun", "log"):
        with Session.load(tmp_path / name) as session:
            assert 1 == AgentPool.of(session).used().steps


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


def begun(repo: Repo, source: str, path: Path) -> tuple[bytes, int, str]:
    """A session in which an agent has just begun with a context: its log, where the line that makes the agent ends, and
    the agent's id."""
    _, session = opened(repo, path)
    with session:
        before = len(path.read_bytes())
        ann = repo.agent(source, session=session, name="Ann")
        whole = path.read_bytes()
    return whole, whole.index(b"\n", before) + 1, ann.agent_id


def places(whole: bytes, start: int) -> list[int]:
    """Where a process may have died that wrote what stands behind `start`: at each line, and in the middle of it."""
    ends = [at + 1 for at in range(start, len(whole) - 1) if whole[at : at + 1] == b"\n"]
    return [start, *ends, *((at + end) // 2 for at, end in pairwise([start, *ends, len(whole)]))]


def conversation(session: Session, agent_id: str) -> list[dict[str, Any]]:
    """What an agent has before it, without what is each line's own."""
    own = ("message_id", "timestamp", "event_type", "agent_id")
    return [{key: value for key, value in line.items() if key not in own} for line in session.entries(agent_id)]


def test_what_an_agent_begins_with_is_written_to_its_end_when_the_store_keeps_the_session_again(
    repo: Repo, tmp_path: Path
) -> None:
    source, cut = recorded(repo, "codex"), tmp_path / "cut"
    whole, start, ann_id = begun(repo, source, tmp_path / "log")
    with Session(tmp_path / "log", readonly=True) as session:
        expected = conversation(session, ann_id)

    for place in places(whole, start):
        cut.write_bytes(whole[:place])
        with repo.session(cut, ack="os") as session:
            assert expected == conversation(session, ann_id), place
        root, again = load_session(cut, language_model=MODEL)
        with again:
            root.subagents["Ann"].harken("What did you do?")
            assert "I remember." == asyncio.run(root.subagents["Ann"].response())
            assert {"not JSON"} >= again.registry.counts.keys()


def test_an_agent_that_has_a_part_of_its_beginning_is_told_of_and_does_not_speak(repo: Repo, tmp_path: Path) -> None:
    source, cut = recorded(repo, "codex"), tmp_path / "cut"
    whole, start, ann_id = begun(repo, source, tmp_path / "log")

    for place in places(whole, start):
        cut.write_bytes(whole[:place])
        root, session = load_session(cut, language_model=MODEL)
        with session:
            assert "a beginning that was cut off" in session.registry.counts
            ann = root.subagents["Ann"]
            with pytest.raises(BadRequest, match="the process died while it wrote them"):
                ann.harken("What did you do?")
            with pytest.raises(BadRequest, match="Ann was to begin with"):
                asyncio.run(ann.response())
            assert problems(cut) & {"a beginning that was cut off"}
            ann.terminate()
            again = repo.agent(source, session=session, name="Ann")
            assert session.agents[ann_id].begins_with == len(again.transcript)
            again.harken("What did you do?")
            assert "I remember." == asyncio.run(again.response())
        assert {"not JSON"} >= problems(cut)


def problems(path: Path) -> set[str]:
    return {one["problem"].partition(":")[0] for one in harken.SessionViewer(path).problems}


def test_what_was_cut_off_is_written_on_only_as_it_was_begun(repo: Repo, tmp_path: Path) -> None:
    source, cut = recorded(repo, "codex"), tmp_path / "cut"
    whole, start, _ = begun(repo, source, tmp_path / "log")
    second = whole.index(b"\n", start) + 1
    changed = whole[start:second].replace(b'"content":"', b'"content":"Not ')
    cut.write_bytes(whole[:start] + changed)
    before = cut.read_bytes()

    with repo.session(cut) as session:
        assert before == cut.read_bytes()
        root, _ = load_session(session, language_model=MODEL)
        with pytest.raises(BadRequest, match="the process died while it wrote them"):
            root.subagents["Ann"].harken("What did you do?")


def test_a_process_that_is_killed_while_it_writes_a_beginning_is_made_up_for(repo: Repo, tmp_path: Path) -> None:
    source, path = recorded(repo, "claude-code"), tmp_path / "log"
    repo.session(path, ack="os").close()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "store.db"), source, str(path)], check=False, timeout=60
    )
    assert -signal.SIGKILL == killed.returncode

    with repo.session(path) as session:
        (ann_id,) = session.agents
        assert session.agents[ann_id].begins_with == session.agents[ann_id].entries > 1
    assert {"not JSON"} >= Session(path, readonly=True).registry.counts.keys()


KILLED = """
import os, signal, sys
import harken

write = os.write

def torn(fd, data):
    if b"starts_from" in bytes(data):
        write(fd, bytes(data)[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return write(fd, data)

os.write = torn
store, source, path = sys.argv[1:]
with harken.open(store) as repo, repo.session(path) as session:
    repo.agent(source, session=session, name="Ann")
"""
