"""Transcript files of Claude Code as a session: the same events as an import has, while the files grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken import Session
from harken.capture import EventBus, PromptExecuted, PromptRendered, ToolInvoked, TranscriptEntry
from harken.capture.claude_agent_sdk import files
from harken.capture.claude_agent_sdk.sources import ClaudeConversation
from harken.events import Event, Metric, Output, System
from harken.events.edits import is_entry
from harken.events.tally import Tally
from harken.formats.claude_code.read import read
from harken.formats.transcript.events import draft_of
from support.recordings import recorded

RECORDED = recorded("claude-code")
AGENTS = next(one for one in RECORDED if (one.version, one.scenario) == ("2.1.325", "agents"))
Record = dict[str, Any]


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with Session(tmp_path / "log.jsonl", ack="os") as session:
        yield session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "claude" / "0f0e.jsonl"


def write(path: Path, *records: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def user(uuid: str, words: Any, **more: Any) -> Record:
    about = {"parentUuid": None, "isSidechain": False, "sessionId": "0f0e", "timestamp": "2026-01-05T09:00:00.000Z"}
    return {**about, "type": "user", "uuid": uuid, "message": {"role": "user", "content": words}, **more}


def assistant(uuid: str, *blocks: Record, name: str = "msg_1", stop: str | None = None, **more: Any) -> Record:
    usage = {"input_tokens": 100, "output_tokens": 10}
    body = {"id": name, "role": "assistant", "model": "m", "content": list(blocks), "usage": usage, "stop_reason": stop}
    return {**user(uuid, ""), "type": "assistant", "message": body, "requestId": f"req_{name}", **more}


def says(words: str) -> Record:
    return {"type": "text", "text": words}


def calls(name: str, call: str, **given: Any) -> Record:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(uuid: str, call: str, words: str, **more: Any) -> Record:
    return user(uuid, [{"type": "tool_result", "tool_use_id": call, "content": words}], **more)


def said(session: Session, source: str = "primary") -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in session[TranscriptEntry].all() if one.source == source]


def expected(data: bytes) -> list[tuple[str, str]]:
    """The entries that an import would have; a record that a compaction wrote a second time is one."""
    once: dict[tuple[str, int], Event] = {}
    for event in read(data):
        once.setdefault((event.message_id, event.index), event)
    drafts = [draft_of(event, {}) for event in once.values()]
    return [(draft.role, draft.content) for draft in drafts if draft is not None]


def is_attached(entry: tuple[str, str]) -> bool:
    return entry[1].startswith("<system-reminder>")


def without_instructions(entries: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [entry for entry in entries if entry[0] != "system"]


@pytest.mark.parametrize("recording", RECORDED, ids=lambda one: one.name)
def test_a_file_that_grows_becomes_the_entries_and_numbers_of_an_import(
    recording: Any, session: Session, path: Path
) -> None:
    data = recording.path.read_bytes()
    path.parent.mkdir()
    conversation = ClaudeConversation(session, path, subagents=False)
    for end in (*range(0, len(data), max(1, len(data) // 7)), len(data)):
        path.write_bytes(data[:end])
        conversation.look()
    conversation.look(last=True)
    main = b"".join(line for line in data.splitlines(keepends=True) if b'"isSidechain":true' not in line)
    for wanted in (is_attached, lambda entry: not is_attached(entry)):  # what is attached stands before its prompt
        assert list(filter(wanted, without_instructions(expected(main)))) == list(
            filter(wanted, without_instructions(said(session)))
        )
    imported, captured = Tally.of(read(main)), Tally.of(session.events())
    for figure in ("tokens", "tools", "responses", "errors", "cost_usd_micros", "compactions"):
        assert getattr(imported, figure) == getattr(captured, figure), figure
    assert imported.messages == captured.messages + imported.origins.get("compact_summary", 0)  # here it is an edit
    opaque = [event.raw for event in read(main) if isinstance(event, Output)]
    notices = [event for event in read(main) if isinstance(event, System)]
    opaque += [event.metadata for event in notices if event.subtype == "compact_boundary"]
    kept = [event.raw for event in session.events() if isinstance(event, Output)]
    assert sorted(opaque) == sorted(kept)


def test_sub_agents_are_sources_of_their_own_below_the_call_that_started_them(session: Session) -> None:
    ClaudeConversation(session, AGENTS.path).look(last=True)
    [name] = [one for one in session.agents if one != session.root]
    own = AGENTS.path.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
    assert sorted(without_instructions(expected(own.read_bytes()))) == sorted(
        without_instructions(said(session, f"subagent:{name}"))
    )
    [created] = [line for line in session.records() if line["event_type"] == "agent_created" and line.get("parent")]
    [call] = [event for event in session.events() if event.message_id == created["cause"] and is_entry(event)]
    assert (session.root, "Agent") == (created["parent"], getattr(call, "name", ""))


def nested(path: Path) -> None:
    """A main agent that starts `a1`, which starts `a2`."""
    below = path.with_suffix("") / "subagents"
    write(path, user("u1", "Go."), assistant("u2", calls("Agent", "t1", prompt="one"), stop="tool_use"))
    for name, call, depth in (("a1", "t1", 1), ("a2", "t2", 2)):
        own = below / f"agent-{name}.jsonl"
        side: Record = {"isSidechain": True, "agentId": name}
        nexts = [calls("Agent", "t2", prompt="two")] if name == "a1" else [says("Deep.")]
        write(own, user(f"{name}u", name, **side), assistant(f"{name}v", *nexts, name=name, stop="end_turn", **side))
        about = {"agentType": "looker", "toolUseId": call, "spawnDepth": depth}
        own.with_suffix(".meta.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("how", "sources"),
    [
        ({}, {"primary", "subagent:a1", "subagent:a2"}),
        ({"depth": 1}, {"primary", "subagent:a1"}),
        ({"depth": 0}, {"primary"}),
        ({"subagents": False}, {"primary"}),
    ],
)
def test_sub_agents_are_captured_to_the_depth_that_was_asked_for(
    session: Session, path: Path, how: Any, sources: set[str]
) -> None:
    nested(path)
    ClaudeConversation(session, path, **how).look(last=True)
    assert sources == {entry.source for entry in session[TranscriptEntry].all()}


def test_a_sub_agent_of_a_sub_agent_stands_below_it(session: Session, path: Path) -> None:
    nested(path)
    ClaudeConversation(session, path).look(last=True)
    assert (session.root, "a1") == (session.agents["a1"].parent, session.agents["a2"].parent)


def test_a_sub_agents_file_waits_until_its_call_is_known(session: Session, path: Path) -> None:
    nested(path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(whole[0])
    conversation = ClaudeConversation(session, path)
    conversation.look()
    assert {session.root} == set(session.agents)
    path.write_bytes(b"".join(whole))
    conversation.look()
    assert "u2" == next(line["cause"] for line in session.records() if line.get("agent_id") == "a1")


@pytest.mark.parametrize("again", ["same conversation", "another one", "opened again"])
def test_a_file_that_is_read_again_gives_nothing_twice(tmp_path: Path, path: Path, again: str) -> None:
    twins = [{"type": "mode", "mode": "x"}] * 2
    write(path, user("u1", "Hi."), *twins, assistant("u2", says("Hello.")), {"type": "tool_result", "content": "flat"})
    session = Session(tmp_path / "log.jsonl", ack="os")
    conversation = ClaudeConversation(session, path)
    conversation.look()
    before = [event for event in session.events() if not isinstance(event, System)]
    if again == "opened again":
        session.close()
        session = Session(tmp_path / "log.jsonl", ack="os")
    if again != "same conversation":
        conversation = ClaudeConversation(session, path)
    path.write_bytes(path.read_bytes()[:-1].replace(b"Hi.", b"Hi!") + b"\n")
    path.rename(path.with_suffix(".old"))
    path.write_bytes(path.with_suffix(".old").read_bytes())
    write(path, *twins[:1], user("u3", "Bye."))
    conversation.look(last=True)
    after = [event for event in session.events() if not isinstance(event, System)]
    assert before == after[: len(before)]
    assert ["output", "prompt"] == [event.kind for event in after[len(before) :]]
    session.close()


def test_the_tokens_of_a_message_over_several_records_count_once(session: Session, path: Path) -> None:
    write(path, user("u1", "Hi."), assistant("u2", says("One.")), assistant("u3", calls("Read", "t1", at=1)))
    ClaudeConversation(session, path).look(last=True)
    assert 2 == sum(isinstance(event, Metric) for event in session.events())
    tokens = Tally.of(session.events()).tokens
    assert (100, 10) == (tokens.input, tokens.output)


def snapshot(uuid: str, *words: str) -> Record:
    return {**user(uuid, ""), "type": "attachment", "attachment": {"type": "prompt_snapshot", "systemPrompt": words}}


def test_instructions_stand_first_and_once(session: Session, path: Path) -> None:
    conversation = ClaudeConversation(session, path, instructions="of the options")
    write(path, user("u1", "Hi."))
    conversation.look()
    assert [] == said(session)  # the file may still say which instructions there were
    write(
        path,
        snapshot("u2", "Be brief.", "Be kind."),
        assistant("u3", says("Hello.")),
        snapshot("u4", "Be brief.\n\nBe kind."),
    )
    conversation.look(last=True)
    brief = ("system", "Be brief.\n\nBe kind.")
    assert [brief, ("user", "Hi."), ("assistant", "Hello.")] == said(session)


def attachment(uuid: str, words: str) -> Record:
    rendered = [{"role": "user", "content": words}]
    return {**user(uuid, ""), "type": "attachment", "attachment": {"type": "date"}, "rendered": rendered}


def test_what_is_attached_to_a_prompt_stands_before_it_as_the_model_reads_it(session: Session, path: Path) -> None:
    conversation = ClaudeConversation(session, path)
    write(path, user("u1", "Hi."), attachment("a1", "one"))
    conversation.look()
    write(
        path, {"type": "api-request", "id": "r1"}, attachment("a2", "two"), assistant("u2", calls("Read", "t1", at=1))
    )
    conversation.look()
    assert ["one", "two", "Hi."] == [words for _, words in said(session)][:3]
    write(path, result("u3", "t1", "found"), attachment("a3", "three"))
    write(path, assistant("u4", says("Done."), name="msg_2"), user("u5", "Next."), attachment("a4", "four"))
    conversation.look(last=True)
    words = [words for _, words in said(session)]
    assert ["found", "three", "Done.", "four", "Next."] == words[4:]


def test_without_a_snapshot_the_instructions_are_those_of_the_options(session: Session, path: Path) -> None:
    write(path, user("u1", "Hi."), assistant("u3", says("Hello.")))
    ClaudeConversation(session, path, instructions="Be brief.").look()
    assert [("system", "Be brief."), ("user", "Hi."), ("assistant", "Hello.")] == said(session)


def test_records_wait_for_instructions_only_for_a_moment(
    session: Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([10.0, 10.5, 12.0, 12.0])
    monkeypatch.setattr(files, "monotonic", lambda: next(clock))
    write(path, user("u1", "Hi."))
    conversation = ClaudeConversation(session, path)
    conversation.look()
    assert [] == said(session)
    conversation.look()
    assert [("user", "Hi.")] == said(session)


FLAT: list[Record] = [
    {"type": "system", "content": "Be brief."},
    {"type": "user", "content": "Look.", "timestamp": "2026-01-05T09:00:00Z", "session_id": "s-1"},
    {"type": "assistant", "content": ["I will ", {"type": "text", "text": "look."}]},
    {"type": "tool_use", "tool_name": "Read", "tool_use_id": "t1", "input": {"path": "a"}},
    {"type": "tool_result", "tool_name": "Read", "tool_use_id": "t1", "content": "found"},
]


def test_the_flat_shape_of_the_specification_is_converted_too(session: Session, path: Path) -> None:
    write(path, *FLAT)
    ClaudeConversation(session, path).look(last=True)
    entries = session[TranscriptEntry].all()
    assert [
        ("system", "Be brief.", None),
        ("user", "Look.", None),
        ("assistant", "I will ", None),
        ("assistant", "look.", None),
        ("assistant", '{\n  "path": "a"\n}', "Read"),
        ("tool", "found", "Read"),
    ] == [(one.role, one.content, one.tool_name) for one in entries]
    assert ("t1", {"path": "a"}, "t1") == (entries[4].tool_call_id, entries[4].tool_input, entries[5].tool_call_id)
    about = entries[1].metadata or {}
    assert ("user", "s-1", 2026) == (about["raw_type"], about["claude_session_id"], entries[1].created_at.year)
    assert "tool_use" == (entries[4].metadata or {})["raw_type"]


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{",
        b"\xff\xfe",
        b"null",
        b'{"type": []}',
        b'{"type": "user", "content": 7}',
        b'{"type": "user", "message": {"content": 7}}',
        b'{"type": "system", "subtype": 5, "content": {}}',
        b'{"type": "attachment", "attachment": {"type": "prompt_snapshot", "systemPrompt": [3, {"text": 4}]}}',
        b'{"type": "assistant", "uuid": 9, "message": {"id": 3, "usage": [], "content": [1, null, {"type": 2}]}}',
        b'{"uuid": "\\ud800", "type": "user", "message": {"content": "\\ud800"}, "timestamp": "no"}',
        b'{"type": "tool_use", "tool_name": 5, "tool_use_id": {}, "input": "\\ud800"}',
        b'{"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preservedMessages": {"uuids": 7}}}',
        b"[" * 5000,
    ],
    ids=lambda line: str(line[:60]),
)
def test_whatever_stands_in_a_file_the_rest_of_it_is_captured(session: Session, path: Path, line: bytes) -> None:
    write(path, user("u1", "Hi."))
    with path.open("ab") as file:
        file.write(line + b"\n")
    write(path, assistant("u2", says("Hello.")))
    problems: list[Exception] = []
    ClaudeConversation(session, path, failed=problems.append).look(last=True)
    assert [] == problems
    assert [("user", "Hi."), ("assistant", "Hello.")] == [said(session)[0], said(session)[-1]]


def test_a_fork_of_a_captured_session_is_another_conversation_with_its_whole_history(
    session: Session, path: Path
) -> None:
    write(path, user("u1", "Hi."), assistant("u2", says("Hello.")))
    ClaudeConversation(session, path).look(last=True)
    fork = path.with_name("f0f0.jsonl")
    write(fork, user("u1", "Hi."), assistant("u2", says("Hello.")), user("u9", "Other."))
    ClaudeConversation(session, fork).look(last=True)
    ClaudeConversation(session, fork).look(last=True)
    heard = [("user", "Hi."), ("assistant", "Hello."), ("user", "Other.")]
    assert (heard[:2], heard) == (said(session), said(session, "conversation:f0f0"))


def test_a_compaction_folds_what_was_said_and_keeps_what_it_preserves(session: Session, path: Path) -> None:
    boundary = {**user("b1", ""), "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
    boundary["compactMetadata"] = {"trigger": "auto", "preservedMessages": {"anchorUuid": "b1", "uuids": ["u3"]}}
    write(
        path,
        snapshot("s1", "Be brief."),
        user("u1", "Hi."),
        assistant("u2", says("Hello.")),
        user("u3", "Kept."),
        boundary,
        user("c1", "What was said so far.", isCompactSummary=True),
        user("u4", "Next."),
    )
    ClaudeConversation(session, path).look(last=True)
    words = [line["content"] for line in session.transcript(session.root or "")]
    assert ["Be brief.", "What was said so far.", "Kept.", "Next."] == words
    entries = session[TranscriptEntry].all()
    assert [
        "Be brief.", "Hi.", "Hello.", "Kept.", "What was said so far.", "Next.",
    ] == [one.content for one in entries]  # fmt: skip
    assert ("user", "compaction") == (entries[4].role, (entries[4].metadata or {})["kind"])


def test_who_goes_back_in_a_file_takes_back_what_was_said_since(session: Session, path: Path) -> None:
    write(path, user("u1", "One?"), assistant("a1", says("One."), parentUuid="u1"))
    write(path, user("u2", "Two?", parentUuid="a1"), assistant("a2", says("Two."), parentUuid="u2", name="msg_2"))
    write(path, user("u3", "Three?", parentUuid="a1"), assistant("a3", says("Three."), parentUuid="u3", name="msg_3"))
    for _ in range(2):
        ClaudeConversation(session, path).look(last=True)
    spoken = [line["content"] for line in session.entries(session.root)]
    assert ["One?", "One.", "Three?", "Three."] == spoken
    assert ["One?", "One.", "Two?", "Two.", "Three?", "Three."] == [
        one.content for one in session[TranscriptEntry].all()
    ]


def test_a_prompt_that_was_never_answered_beside_the_conversation_takes_nothing_back(
    session: Session, path: Path
) -> None:
    write(path, user("u1", "One?"), assistant("a1", says("One."), parentUuid="u1"))
    write(path, user("u2", "Two?", parentUuid="a1"), user("u3", "Still there?", parentUuid="u1"))
    write(path, assistant("a2", says("Two."), parentUuid="u2", name="msg_2"))
    ClaudeConversation(session, path).look(last=True)
    spoken = [line["content"] for line in session.entries(session.root)]
    assert ["One?", "One.", "Two?", "Still there?", "Two."] == spoken


def test_results_of_calls_at_once_are_not_taken_back_by_the_prompt_that_follows_one_of_them(
    session: Session, path: Path
) -> None:
    write(path, user("u1", "Look."), assistant("a1", calls("Read", "c1"), parentUuid="u1"))
    write(path, assistant("a2", calls("Read", "c2"), parentUuid="a1"))
    write(path, result("r1", "c1", "one", parentUuid="a1"), result("r2", "c2", "two", parentUuid="a2"))
    write(path, user("u2", "[Request interrupted by user]", parentUuid="r1"))
    ClaudeConversation(session, path).look(last=True)
    assert 6 == len(session.entries(session.root))


def test_secrets_are_masked_also_in_what_is_kept_raw(session: Session, path: Path) -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    records = [
        {"type": "mode", "mode": "hunter2"},
        user("u1", "hunter2"),
        assistant("u2", calls("Bash", "t1", command="hunter2")),
        result("u3", "t1", "hunter2"),
        {**user("u4", ""), "type": "system", "subtype": "informational", "content": "hunter2"},
        snapshot("u5", "hunter2"),
    ]
    write(path, *records)
    how: Any = {"mask": mask, "instructions": "hunter2"}
    ClaudeConversation(session, path, **how).look(last=True)
    ClaudeConversation(session, path, **how).look(last=True)
    assert b"hunter2" not in session.path.read_bytes()
    assert 1 == sum(b'\\"mode\\"' in line for line in session.path.read_bytes().splitlines())


def test_the_bus_hears_of_prompts_tools_and_answers(tmp_path: Path, path: Path) -> None:
    from harken.capture.claude_agent_sdk.telling import Telling

    bus, heard = EventBus(), list[Any]()
    for kind in (PromptRendered, ToolInvoked, PromptExecuted):
        bus.subscribe(kind, heard.append)
    write(
        path,
        user("u1", "Look."),
        assistant("u2", calls("Read", "t1", at=1), stop="tool_use"),
        result("u3", "t1", "found"),
        assistant("u4", says("Done."), name="msg_2", stop="end_turn"),
    )
    with Session(bus=bus) as session:
        ClaudeConversation(session, path, told=Telling(session).record).look(last=True)
    rendered, invoked, executed = heard
    assert ({"role": "user", "content": "Look."},) == rendered.messages
    assert ("Read", "t1", {"at": 1}, "found") == (invoked.name, invoked.call_id, invoked.params, invoked.result)
    assert ("Done.", 10) == (executed.result, executed.usage["output"])


def test_a_sub_agent_inside_the_main_file_is_a_source_of_its_own(session: Session, path: Path) -> None:
    side: Record = {"isSidechain": True, "agentId": "a7"}
    write(path, user("u1", "Go."), user("s1", "Dig.", **side), assistant("s2", says("Dug."), **side))
    ClaudeConversation(session, path).look(last=True)
    assert [("user", "Go.")] == said(session)
    assert [("user", "Dig."), ("assistant", "Dug.")] == said(session, "subagent:a7")
