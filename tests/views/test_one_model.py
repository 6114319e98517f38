"""The law: every view gives the same answer from the live session, from its log file and from the store."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from harken import Session, SessionViewer, load_session
from harken.agents import ScriptedModel
from harken.repo import Repo
from harken.runtimes import get
from harken.runtimes.importer import Importer
from support.contexts import memory_repo
from support.std_sessions import DEMONSTRATIONS
from support.viewed import long_session, write_log

from .test_laws import sessions

EXAMPLES = Path(__file__).parents[2] / "examples"


def answers(viewer: SessionViewer) -> dict[str, Any]:
    """What every view says, about every agent and every message."""
    agents, ids = list(viewer.list_agents()), list(dict.fromkeys(viewer.index.ids))
    return {
        "list_agents": viewer.list_agents(),
        "agent_tree": viewer.agent_tree(),
        "timeline": viewer.timeline(),
        "sequence": viewer.sequence(),
        "flow": viewer.flow(),
        "interventions": viewer.interventions(),
        "said_vs_heard": viewer.said_vs_heard(),
        "build_causality_index": viewer.build_causality_index(),
        "extract_dialog": viewer.extract_dialog(agents),
        "perspective": viewer.perspective(agents, system=True),
        "extract_agent_perspective": {agent: viewer.extract_agent_perspective(agent) for agent in agents},
        "get_transcript": {agent: viewer.get_transcript(agent) for agent in agents},
        "trace_message_flow": {one: viewer.trace_message_flow(one) for one in ids},
        "trace_content_references": {one: viewer.trace_content_references(one) for one in ids},
        "who_heard": {one: viewer.who_heard(one) for one in ids},
        "knows": {(agent, one): viewer.knows(agent, one) for agent in agents for one in ids},
    }


def kept_by_import(path: Path) -> SessionViewer:
    repo = memory_repo()
    for outcome in Importer(repo.store, [get("harken")], now=repo.clock).run([path], named=True):
        assert "failed" != outcome.status
    return repo.view(next(row.session for row in repo.sessions() if not row.parent))


def kept_line_by_line(path: Path, *, steps: int) -> Iterator[tuple[Path, Repo, str]]:
    """The log as it grew, opened and killed again and again while a store kept it."""
    lines = path.read_bytes().splitlines(keepends=True)
    repo, growing = memory_repo(), path.with_name(f"growing-{path.name}")
    for end in [*range(1, len(lines), max(1, len(lines) // steps)), len(lines)]:
        growing.write_bytes(b"".join(lines[:end]))
        session = repo.session(growing, session_id="s")
        session.checkpoint()
        Session.close(session)  # killed: nobody told the store that it ended
        yield growing, repo, "s"


def hold(path: Path, *, steps: int = 5) -> None:
    """Every source gives the same answers, at every stage of the session's growth."""
    with Session(path, readonly=True) as live:
        expected = answers(SessionViewer.of(live.events()))

    assert expected == answers(SessionViewer(path))
    assert expected == answers(kept_by_import(path))
    for stage, repo, session in kept_line_by_line(path, steps=steps):
        seen = answers(SessionViewer(stage))
        assert seen == answers(repo.view(session))
        assert seen == answers(SessionViewer.of(repo.events(session)))


@pytest.mark.parametrize("name", DEMONSTRATIONS)
def test_of_every_demonstration(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    path = tmp_path / "session.jsonl"
    asyncio.run(importlib.import_module(name).play(path))

    hold(path)


def test_of_sub_agents_that_speak_at_the_same_time_and_forget(tmp_path: Path) -> None:
    path, repo = tmp_path / "session.jsonl", memory_repo()
    script = {"agents": {name: {"otherwise": "I see."} for name in ("root", "Ann", "Bob", "Cid")}}
    model = ScriptedModel(script, name="scripted")

    async def talk(session: Session) -> None:
        root, _ = load_session(session, language_model=model)
        root.harken("Begin")
        await root.response()
        team = [root.spawn(name, f"You are {name}.") for name in ("Ann", "Bob", "Cid")]
        for round_number in range(3):
            for one in team:
                root.inform(one, f"Round {round_number}")
            await asyncio.gather(*(one.response() for one in team))
        assert await team[0].compact("They met.")
        team[1].terminate()
        root.harken("And?")
        await root.response()

    with repo.session(path, session_id="s") as session:
        asyncio.run(talk(session))
        while_open = answers(SessionViewer.of(session.events()))

    assert while_open == answers(repo.view("s"))
    hold(path)


@settings(max_examples=40, deadline=None)
@given(sessions())
def test_of_any_session(tmp_path_factory: pytest.TempPathFactory, log: list[dict[str, Any]]) -> None:
    hold(write_log(tmp_path_factory.mktemp("log") / "s.jsonl", log), steps=2)


def test_of_a_long_session(tmp_path: Path) -> None:
    hold(write_log(tmp_path / "long.jsonl", long_session(300, agents=5)), steps=2)
