"""What `Registry` says of a session, every public answer, is what a plain fold over the session's events says.

It folds lines and not events, since that is three times as quick; here both ways are taken.
"""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from harken.events import (
    AgentCreated,
    AgentTerminated,
    Event,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.formats.session_log import BLANK, FORMAT, read_groups, record_of, runs
from harken.log import Registry
from harken.log.base import INCOMPLETE
from support.logs import TALKS, as_bytes, as_smallchat, as_v1
from support.std_sessions import DEMONSTRATIONS
from support.viewed import long_session
from views.test_laws import dirty_logs, sessions

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = (Prompt, Response, Thinking, ToolCall, ToolResult)


def answers(registry: Registry) -> dict[str, Any]:
    """Everything a registry can be asked. Lines without an id are called after their places, which a file counts in
    bytes and a list in lines, so of these it is told whose they are."""
    named = {name: agent for name, agent in registry.messages.items() if name[:1] != "@"}
    return {
        "agents": {info.agent_id: msgspec.structs.asdict(info) for info in registry.agents.values()},
        "order": list(registry.agents),
        "messages": named,
        "unnamed": [agent for name, agent in registry.messages.items() if name not in named],
        "records": registry.records,
        "root": registry.root,
        "open calls": registry.open_calls,
        "children": {agent: [info.agent_id for info in registry.children(agent)] for agent in registry.agents},
        "next message": registry.next_message_number(),
        "next agent": registry.next_agent_number(),
        "counts": {what: count for what, count in registry.counts.items() if what in INCOMPLETE - {BLANK}},
    }


def of_lines(data: bytes) -> Registry:
    registry = Registry()
    registry.read(read_groups((data,)))
    return registry


def of_events(events: list[Event]) -> Registry:
    registry = Registry()
    for _ in registry.fold_lines(map(record_of, runs(events))):
        pass
    return registry


def plain(events: list[Event]) -> dict[str, Any]:
    """The same answers as far as a few lines can give them, from the events alone."""
    messages: dict[str, str] = {}
    agents: dict[str, dict[str, Any]] = {}
    calls: dict[tuple[str, str], str] = {}
    for event in events:
        is_entry = isinstance(event, SAID) or (isinstance(event, System) and event.subtype == "instructions")
        if is_entry or isinstance(event, (AgentCreated, AgentTerminated, TranscriptEdit)):
            agents.setdefault(event.agent_id, {"entries": 0, "terminated": False, "created": "", "name": ""})
        agent = agents.get(event.agent_id, {})
        if is_entry and not event.index:
            agent["entries"] += 1
        if isinstance(event, AgentCreated) and not agent["created"]:
            agent |= {"created": event.message_id, "name": event.name}
        if isinstance(event, AgentTerminated):
            agent["terminated"] = True
        if isinstance(event, ToolCall):
            calls.pop((event.agent_id, event.id), None)
            calls[event.agent_id, event.id] = event.message_id
        if isinstance(event, ToolResult):
            calls.pop((event.agent_id, event.id), None)
        messages.setdefault(event.message_id, event.agent_id)
    agents = {agent: facts for agent, facts in agents.items() if any(facts.values())}
    return {"messages": messages, "agents": agents, "calls": calls}


def plainly(registry: Registry) -> dict[str, Any]:
    """What a registry says, in the words of `plain`; an agent that is only named as somebody's parent is left out."""
    fields = ("entries", "terminated", "created", "name")
    agents = {info.agent_id: {name: getattr(info, name) for name in fields} for info in registry.agents.values()}
    return {
        "messages": registry.messages,
        "agents": {agent: facts for agent, facts in agents.items() if any(facts.values())},
        "calls": {(call.agent_id, call.call_id): call.message_id for call in registry.open_calls},
    }


def events_in(data: bytes) -> list[Event]:
    """The events of a file; bytes that are no line are the file's affair, and no message."""
    return [event for event in FORMAT.read(data) if not (isinstance(event, Output) and event.message_id[:1] == "@")]


def hold(data: bytes) -> None:
    assert answers(of_events(events_in(data))) == answers(of_lines(data))


@pytest.mark.parametrize("name", DEMONSTRATIONS)
def test_of_every_demonstration(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    asyncio.run(importlib.import_module(name).play(tmp_path / "session.jsonl"))

    data = (tmp_path / "session.jsonl").read_bytes()
    hold(data)
    assert plain(events_in(data)) == plainly(of_lines(data))


@pytest.mark.parametrize("dialect", [list, as_v1, as_smallchat])
@pytest.mark.parametrize("name", TALKS)
def test_of_every_example_in_every_dialect(name: str, dialect: Any) -> None:
    hold(as_bytes(dialect(TALKS[name])))


def test_of_a_long_session() -> None:
    hold(as_bytes(long_session(300, agents=5)))


@given(sessions())
@settings(max_examples=300, deadline=None)
def test_of_any_session(log: list[dict[str, Any]]) -> None:
    hold(as_bytes(log))


@given(sessions())
@settings(max_examples=300, deadline=None)
def test_a_plain_count_of_any_session(log: list[dict[str, Any]]) -> None:
    data = as_bytes(log)

    assert plain(events_in(data)) == plainly(of_lines(data))


@given(dirty_logs())
@settings(max_examples=300, deadline=None)
def test_of_any_file(data: bytes) -> None:
    """A link that no event can have, such as a second one on the line, is odd and told by the lines alone; no number
    that it mentions is given again."""
    events, lines = answers(of_events(events_in(data))), answers(of_lines(data))
    numbers = [one.pop("next message") for one in (events, lines)]
    del events["counts"], lines["counts"]

    assert events == lines
    assert numbers == sorted(numbers)
