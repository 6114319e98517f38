"""Every session of several agents that is at hand is written as a document that its standard accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.events import ToolCall
from harken.formats.std.checking.rules import validate
from harken.formats.std.document import Document, Json, read, write
from harken.formats.std.exporting.from_events import Exported, SessionFacts, document_of
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.importing.to_events import events_of
from harken.repo import Repo
from support.recordings import FOLDER, recorded
from support.std_sessions import DEMONSTRATIONS, EXAMPLES, families, listed_warnings, play

KINDS = ("", "std-001", "std-008")


@pytest.fixture
def repo() -> Iterator[Repo]:
    with harken.open("memory:") as opened:
        yield opened


def check(document: Document) -> None:
    """Valid, and nothing to warn of that the guide does not name; and it reads as it was written."""
    name = f"{document.data['session_id']}.json"
    findings = validate(document, name)
    assert [] == [one for one in findings if one.level == "error"]
    assert set() == {one.rule for one in findings if one.level == "warning"} - listed_warnings()
    assert document.data == read(write(document)).data


def calls_in(document: Document) -> int:
    """How many calls it has, without those that stand there twice or that nobody made."""
    own = [one for one in document.data["tool_calls"] if "x_harken_owner" not in one and "x_harken_derived" not in one]
    return len(own) + sum(len(sub["tool_calls"]) for sub in document.data["sub_sessions"])


def again(made: Exported) -> Exported:
    """What is made of the events that a document is read into."""
    facts = SessionFacts(title=made.document.data["task_title"], name=made.document.data["session_id"])
    return document_of(events_of(write(made.document)), facts, "std-008")


def told_in(made: Exported) -> list[Json]:
    """What a document says of agents, calls and messages. That an agent was made is left out: a document says it of
    every agent, a session need not."""
    data = made.document.data
    subs = [{**sub, _WORDS: [one for one in sub[_WORDS] if one.get("type") != "agent_created"]} for sub in data[_SUBS]]
    return [data["collaboration"], data["tool_calls"], subs, data["messages"]]


_SUBS, _WORDS = "sub_sessions", "x_harken_conversation"


@pytest.mark.parametrize("folder", families(), ids=lambda path: "/".join(path.parts[-2:]))
def test_sessions_of_other_runtimes(repo: Repo, folder: Path) -> None:
    for _ in repo.import_sessions([folder]):
        pass
    told = {row: repo.events(row.session) for row in repo.sessions() if row.tip and not row.parent}
    several = {row: events for row, events in told.items() if len({one.agent_id for one in events}) > 1}

    made = {
        row: [document_of(events, SessionFacts(title=row.title), kind) for kind in ("std-001", "std-008")]
        for row, events in several.items()
    }

    assert made or FOLDER not in folder.parents
    for row, exported in made.items():
        for each in exported:
            check(each.document)
        agents = session_tree(several[row]).agents.values()
        assert told_in(exported[-1]) == told_in(again(exported[-1]))
        assert len(repo.agents(row.session)) - 1 == sum(agent.is_recorded for agent in agents)
        assert len(agents) == exported[-1].agents
        calls = sum(isinstance(one, ToolCall) for one in several[row])
        assert calls == calls_in(exported[-1].document)


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_sessions_of_one_agent(repo: Repo, runtime: str) -> None:
    sessions = [one for one in recorded(runtime) if one.scenario not in ("agents", "parallel-agents")]
    for _ in repo.import_sessions([one.path for one in sessions]):
        pass

    made = [repo.document(row.session, kind=kind) for row in repo.sessions() for kind in KINDS]

    assert len(KINDS) * len(sessions) <= len(made)
    for each in made:
        check(each.document)


@pytest.mark.parametrize("name", DEMONSTRATIONS)
def test_demonstrations(repo: Repo, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    play(name, tmp_path / "session.jsonl")

    made = [repo.document(tmp_path / "session.jsonl", kind=kind) for kind in KINDS]

    for each in made:
        check(each.document)
    agents = repo.view(tmp_path / "session.jsonl").list_agents()
    assert {len(agents) - 1} == {each.agents for each in made}
    assert len(agents) - 1 == len(made[-1].document.data["sub_sessions"])
