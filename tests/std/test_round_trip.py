"""A session written as a document of STD-008 and imported again says what it said: its agents, calls and conversation.

The recorded sessions of several agents are always there; `HARKEN_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo, formats, runtimes
from harken.context import agents_below, session_events
from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.formats.std.document import dumps, write
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.importing.to_events import events_of
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from support.recordings import CORPUS, session_folders
from support.std_documents import multi

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in {"stage", "show"})
FOLDERS = [
    folder
    for runtime in ("claude-code", "codex")
    for found in session_folders(runtime)
    for folder in ([found] if CORPUS and CORPUS in found.parents else sorted(found.glob("*agents")))
]


def arguments(call: ToolCall) -> Any:
    try:
        return json.loads(call.input or b"{}")
    except ValueError:
        return call.input.decode()


def said(events: Sequence[Event]) -> dict[str, Any]:
    """All that has to come back."""
    tree = session_tree(events)
    calls: dict[str, list[Any]] = {}
    conversation: dict[str, list[tuple[str, str]]] = {}
    for event in events:
        agent = event.agent_id or tree.main
        if isinstance(event, ToolCall):
            calls.setdefault(agent, []).append((event.id, event.name, arguments(event)))
        elif isinstance(event, ToolResult):
            calls.setdefault(agent, []).append((event.id, event.output, event.is_error))
        elif isinstance(event, Prompt | Response | Thinking):
            conversation.setdefault(agent, []).append((event.kind, event.content))
    tally = Tally.of(events)
    return {
        "agents": {agent.agent_id: (agent.name, agent.parent) for agent in tree.agents.values()},
        "calls": calls,
        "conversation": conversation,
        "messages": tally.messages,
        "tools": tally.tools,
        "tokens": tally.tokens,
    }


def exported(name: str, events: Sequence[Event]) -> bytes:
    """The document; nothing but records that are no conversation may be missing in it."""
    made = document_of(events, SessionFacts(session=name, runtime="any", title=name), "std-008")
    assert {loss.what for loss in made.losses} <= {"records that are no conversation"}, made.losses
    return write(made.document)


def imported(repo: Repo, path: Path) -> Any:
    (outcome,) = Importer(repo.store, [runtimes.get("std-001"), runtimes.get("std-008")]).run([path])
    assert outcome.error == "", outcome.error
    return repo.store.find_session(outcome.session)


def came_back(repo: Repo, path: Path, name: str, events: Sequence[Event]) -> None:
    """Export, import, and compare: all of it, and what each agent's own chain tells."""
    path.write_bytes(exported(name, events))
    row = imported(repo, path)
    again = session_events(repo.store, row)
    assert said(events) == said(again)
    for below in agents_below(repo.store, row):
        own = session_events(repo.store, below)
        whole = [event for event in again if event.agent_id == below.agent]
        # Which agent made it, a chain alone does not tell.
        assert [each for each in whole if each.kind != "agent_created"] == [
            each for each in own if each.kind != "agent_created"
        ]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Repo]:
    with harken.open("memory:") as repo:
        importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
        for folder in FOLDERS:
            for _ in importer.run(walk(folder)):
                pass
        yield repo


def test_every_recorded_session_of_several_agents_comes_back(recorded: Repo, repo: Repo, tmp_path: Path) -> None:
    rows = [row for row in recorded.store.sessions() if not row.parent and agents_below(recorded.store, row)]

    assert len(rows) >= 4
    for number, row in enumerate(rows):
        path = tmp_path / f"{number}-multi.json"
        came_back(repo, path, f"{number} {row.session}", session_events(recorded.store, row))


@pytest.mark.parametrize("name", NAMES)
def test_every_demonstration_comes_back(name: str, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    log = tmp_path / "session.jsonl"
    asyncio.run(importlib.import_module(name).play(log))

    came_back(repo, tmp_path / f"{name}-multi.json", name, formats.get("session-log-v2").read(log.read_bytes()))


def test_a_document_written_again_from_what_was_imported_tells_the_same(recorded: Repo) -> None:
    rows = [row for row in recorded.store.sessions() if not row.parent and agents_below(recorded.store, row)]
    first = events_of(exported("again", session_events(recorded.store, rows[0])))

    assert first == events_of(exported("again", first))


def test_what_reviewers_and_developers_of_a_document_handed_in_is_written_again(repo: Repo, tmp_path: Path) -> None:
    given = multi()
    path = tmp_path / f"{given['session_id']}.json"
    path.write_bytes(dumps(given))
    list(repo.import_sessions([path]))

    again = repo.document(given["session_id"]).document.data

    outputs = [sub["output"] for sub in again["sub_sessions"]]
    assert given["sub_sessions"][0]["output"] == outputs[0]
    expected = given["sub_sessions"][1]["output"]
    assert {**expected, "review_id": "task-002"} == outputs[1]
    assert "approved" == again["summary"]["final_verdict"]
    assert ["approved"] == [m["payload"]["verdict"] for m in again["messages"] if "verdict" in m["payload"]]
