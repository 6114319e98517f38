"""Which tier a translation takes: a function of what the formats say they can do."""

from __future__ import annotations

import json

import pytest

from harken import formats
from harken.context.translate import tier_between
from harken.events import Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.cbor import encode_events
from harken.formats import Format, get
from harken.repo import Repo
from harken.store.memory import MemoryStore

ALL = [get(name) for name in formats.names()]


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_the_tier_follows_from_abilities_alone(target: Format) -> None:
    for source in ALL:
        tier = tier_between([source], target)
        if source.name == target.name:
            assert tier == "1"
        elif source.name in target.older:
            assert tier == "2"
        elif "read" in source.can and "write" in target.can:
            assert tier == ("3" if target.is_rendering else "2s")
        else:
            assert tier == "4"
    assert tier_between([None], target) == "4"


def test_a_chain_of_several_formats_takes_the_tier_that_all_of_them_reach() -> None:
    events, codex, stream = get("events-v1"), get("codex-v1"), get("claude-stream-v1")
    assert tier_between([events, codex], codex) == "2s"
    assert tier_between([events, None], codex) == "4"
    assert tier_between([codex], stream) == "4"


V1 = (
    b'{"message_id": "msg_0", "agent_id": "agent_001", "event_type": "agent_created", "name": "root", "role": "root"}\n'
    b'{"message_id": "msg_1", "agent_id": "agent_001", "event_type": "transcript_entry", "role": "user",'
    b' "content": "Hello?", "caused_by": null, "content_id": "msg_1", "mood": "kept"}\n'
    b'{"message_id": "msg_2", "agent_id": "agent_001", "event_type": "transcript_entry", "role": "assistant",'
    b' "content": "Hello.", "caused_by": "msg_1"}\n'
)


@pytest.mark.parametrize(
    "name", [one.name for one in map(get, formats.names()) if {"read", "write"} <= one.can and one.name != "std-001"]
)
def test_a_chain_of_several_formats_is_one_agents_conversation_in_each_format(name: str) -> None:
    repo, target = Repo(MemoryStore()), get(name)
    parent = ""
    for number, source in enumerate(("events-v1", "openai-chat-v1", "events-v1")):
        said = [Prompt(message_id=f"p{number}", content="?"), Response(message_id=f"r{number}", content=f"{number}.")]
        parent = repo.checkpoint(get(source).write(said).data, format=source, parent=parent or None).id
    made = repo.materialize(parent, format=name)
    answers = [one for one in target.read_conversation(target.context(made.bytes)) if isinstance(one, Response)]

    assert ["0.", "1.", "2."] == [one.content for one in answers]
    assert 1 == len({one.agent_id for one in answers})


def test_a_log_of_v1_is_given_in_v2_to_whoever_asks_for_v2_and_as_it_is_to_others() -> None:
    repo = Repo(MemoryStore())
    commit = repo.checkpoint(V1, format="session-log-v2")

    as_kept = repo.materialize(commit, stop="root")
    asked_for = repo.materialize(commit, format="session-log-v2", stop="root")

    assert (as_kept.tier, as_kept.bytes) == ("1", V1)
    assert (asked_for.tier, asked_for.tier_name, asked_for.losses) == ("2", "field", ())
    lines = [json.loads(line) for line in asked_for.bytes.splitlines()]
    assert [line.get("cause") for line in lines] == [None, None, "msg_1"]
    assert not any("caused_by" in line or "content_id" in line for line in lines)
    assert lines[1]["mood"] == "kept", "what nobody knows stays"
    log = get("session-log-v2")
    assert log.read(V1) == log.read(asked_for.bytes)


def test_what_is_in_the_present_shape_already_is_native() -> None:
    repo = Repo(MemoryStore())
    commit = repo.checkpoint(get("session-log-v2").write([Prompt(message_id="msg_1", agent_id="a", content="Hi")]).data)

    assert repo.materialize(commit, format="session-log-v2").tier == "1"


BARE = (
    b'{"id": "0197a1b2-0000-7000-8000-000000000001", "timestamp": "2025-06-01T10:00:00.000Z", "git": {}}\n'
    b'{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]}\n'
    b'{"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}\n'
    b'{"type": "function_call_output", "call_id": "c1", "output": "a.txt"}\n'
)


def test_a_rollout_of_the_first_codex_is_given_as_todays_lines() -> None:
    repo = Repo(MemoryStore())
    commit = repo.checkpoint(BARE, format="codex-v1")

    made = repo.materialize(commit, format="codex-v1")

    assert made.tier == "2"
    lines = [json.loads(line) for line in made.bytes.splitlines()]
    assert {"timestamp", "type", "payload"} == set.intersection(*(set(line) for line in lines))
    assert lines[0]["payload"]["id"] == "0197a1b2-0000-7000-8000-000000000001"
    codex = get("codex-v1")
    words = [(type(event), getattr(event, "content", "")) for event in codex.read_conversation(made.bytes)]
    assert (Prompt, "List the files.") in words


def test_what_nobody_knows_in_a_rollout_of_the_first_codex_is_given_as_it_is() -> None:
    unknown = b'{"type": "function_result", "call_id": "c1", "output": "a.txt"}\n'
    repo = Repo(MemoryStore())
    commit = repo.checkpoint(BARE + unknown, format="codex-v1")

    made = repo.materialize(commit, format="codex-v1")

    assert (made.tier, made.losses) == ("2", ())
    assert unknown in made.bytes


def test_a_narrative_is_a_rendering() -> None:
    repo = Repo(MemoryStore())
    said = [
        Prompt(content="# Please list\nthe files."),
        Thinking(content="hm"),
        Response(content="I will."),
        ToolCall(id="c1", name="Bash", input=b'{"command": "ls"}'),
        ToolResult(id="c1", output="a.txt\n```\n" + "x" * 2000, is_error=True),
        Response(content="There is one."),
    ]
    commit = repo.checkpoint(encode_events(said), format="events-v1")

    made = repo.materialize(commit, format="narrative-v1")

    assert (made.tier, made.tier_name, made.format) == ("3", "rendering", "narrative-v1")
    text = made.bytes.decode()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["# A conversation so far", "## User", "## Assistant", "## Assistant"]
    assert "\\# Please list\nthe files." in text
    assert "- Call: `Bash: ls`" in text
    assert "- Failed of `Bash`:\n\n````\na.txt" in text
    assert {loss.what: loss.count for loss in made.losses} == {"thinking": 1, "end of a long result": 1}
