"""`transcript-v1`: the lines of a slice are a conversation like any other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import orjson
import pytest

import harken
from harken import formats
from harken.capture import JsonlSliceFactory, Session, SliceFactoryConfig, TranscriptEntry
from harken.capture.exchange import Capture, CapturedRequest
from harken.events import AgentCreated, Metric, Prompt, Response, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.testing.formats import FormatContract
from support.small_api import read, user

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)
SAID = (
    TranscriptEntry("system", "Be brief.", NOON),
    TranscriptEntry("user", "Read a.", NOON, sequence=1),
    TranscriptEntry("assistant", "{}", NOON, tool_name="Read", tool_call_id="c", tool_input={}, sequence=2),
    TranscriptEntry("tool", "no such file", NOON, "Read", "c", metadata={"is_error": True}, sequence=3),
    TranscriptEntry("assistant", "I look.", NOON, source="subagent:helper"),
    TranscriptEntry("assistant", "Sorry.", NOON, metadata={"usage": {"output_tokens": 3, "model": "m"}}, sequence=4),
)
LINES = b"".join(orjson.dumps(one) + b"\n" for one in SAID)


class TestTranscript(FormatContract):
    format = formats.get("transcript-v1")
    samples = (LINES,)


def test_entries_are_events() -> None:
    events = formats.get("transcript-v1").read(LINES)
    kinds = ["system", "prompt", "tool_call", "tool_result", "agent_created", "response", "response", "metric"]
    assert kinds == [event.kind for event in events]
    assert [("helper", "child")] == [(e.agent_id, e.role) for e in events if isinstance(e, AgentCreated)]
    assert [(3, "m")] == [(e.output_tokens, e.model) for e in events if isinstance(e, Metric)]
    assert [True] == [e.is_error for e in events if isinstance(e, ToolResult)]
    assert str(SAID[0].entry_id) == events[0].message_id


def test_lines_that_came_late_are_put_in_order() -> None:
    shuffled = b"".join(reversed(LINES.splitlines(keepends=True)))
    said = [e for e in formats.get("transcript-v1").read(shuffled) if not e.agent_id and e.kind != "metric"]
    assert ["system", "prompt", "tool_call", "tool_result", "response"] == [event.kind for event in said]


def test_a_type_key_and_fields_that_are_left_out_do_no_harm() -> None:
    (event,) = formats.get("transcript-v1").read(b'{"__type__":"a:B","role":"user","content":"hi"}\n')
    assert isinstance(event, Prompt)
    assert ("hi", None, "@0") == (event.content, event.time, event.message_id)


def test_usage_stands_beside_the_reply_and_comes_back() -> None:
    events = [Prompt(content="q"), Response(content="a"), Metric(input_tokens=5, output_tokens=1, api_id="r")]
    again = formats.get("transcript-v1").read(formats.get("transcript-v1").write(events).data)
    assert [(5, 1, "r")] == [(e.input_tokens, e.output_tokens, e.api_id) for e in again if isinstance(e, Metric)]


def test_a_slice_is_recognised_and_a_session_is_written_as_one(tmp_path: Path) -> None:
    config = SliceFactoryConfig(log_factory=JsonlSliceFactory(tmp_path))
    with Session(slice_config=config) as session:
        for one in SAID:
            session.dispatch(one)
    data = (tmp_path / "harken.capture:TranscriptEntry.jsonl").read_bytes()
    found = formats.detect(data)
    assert found is not None and "transcript-v1" == found.name

    log = tmp_path / "a.jsonl"
    with Session(log) as session:
        for one in SAID:
            session.dispatch(one)
    with harken.open(tmp_path / "store") as repo:
        list(repo.import_sessions([log]))
        (main,) = [row.session for row in repo.sessions() if "/" not in row.session]
        lines = repo.materialize(main, format="transcript-v1").bytes.splitlines()
    kept = [one for one in SAID if one.source == "primary"]
    assert [one.content for one in kept] == [orjson.loads(line)["content"] for line in lines]


def test_a_session_that_is_written_and_read_is_the_same_conversation() -> None:
    events = [ToolCall(id="x", name="ls", input=b'{"at":"/"}', time=1), ToolResult(id="x", output="bin", time=2)]
    call, result = formats.get("transcript-v1").read(formats.get("transcript-v1").write(events).data)
    assert isinstance(call, ToolCall) and isinstance(result, ToolResult)
    assert ("x", "ls", b'{"at":"/"}', "ls") == (call.id, call.name, call.input, result.name)


def test_what_a_captured_session_says_of_its_entries_is_written(tmp_path: Path) -> None:
    own = TranscriptEntry("user", "By hand.", NOON, metadata={"mood": "calm"})
    with harken.open(tmp_path / "store") as repo, repo.session(tmp_path / "log.jsonl") as session:
        capture = Capture(session, "test")
        exchange = capture.request(CapturedRequest(messages=[user("a")], read=read, model="m"))
        assert exchange is not None
        exchange.reply([Response(content="A", model="m-1")], metadata={"finish_reason": "stop", "request_id": "q1"})
        session.dispatch(own)
        session.checkpoint()
        entries = session[TranscriptEntry].all()
        made = repo.materialize(session.session_id, format="transcript-v1")

    lines = [orjson.loads(line) for line in made.bytes.splitlines()]
    assert [one.metadata for one in entries] == [line["metadata"] for line in lines]
    assert [one.content for one in entries] == [line["content"] for line in lines]
    assert str(own.entry_id) == lines[-1]["entry_id"]
    assert [("ids of entries", 2)] == [(loss.what, loss.count) for loss in made.losses]


def test_entries_that_were_written_before_and_new_ones_behind_them_are_all_written(tmp_path: Path) -> None:
    said = [Prompt(content="a", message_id="1"), Response(content="A", message_id="2"), Prompt(content="b")]
    before = formats.get("transcript-v1").write(said).data.splitlines()
    with harken.open(tmp_path / "store") as repo, repo.session(tmp_path / "log.jsonl") as session:
        for line in before[1:]:
            session.dispatch(msgspec.json.decode(line, type=TranscriptEntry))
        agent = session.root or ""
        session.append([Response(content="B", agent_id=agent), Prompt(content="c", agent_id=agent)])
        session.checkpoint()
        made = repo.materialize(session.session_id, format="transcript-v1")

    lines = [orjson.loads(line) for line in made.bytes.splitlines()]
    assert ["A", "b", "B", "c"] == [line["content"] for line in lines]
    assert [orjson.loads(line)["entry_id"] for line in before[1:]] == [line["entry_id"] for line in lines[:2]]
    assert 4 == len({line["entry_id"] for line in lines})


def test_usage_in_the_words_of_a_provider_is_not_taken_for_ours() -> None:
    used = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 11}
    entry = TranscriptEntry("assistant", "Hi.", NOON, metadata={"usage": used})
    events = formats.get("transcript-v1").read(orjson.dumps(entry) + b"\n")
    assert ["response"] == [event.kind for event in events]


@pytest.mark.parametrize("inside", [{}, {"model": "m-2"}])
def test_usage_is_of_the_model_that_stands_in_it_or_beside_it(inside: dict[str, str]) -> None:
    about = {"model": "m-1", "usage": {"output_tokens": 3, "api_id": "r1", **inside}}
    entry = TranscriptEntry("assistant", "Hi.", NOON, metadata=about)
    figures = Tally.of(formats.get("transcript-v1").read(orjson.dumps(entry) + b"\n")).figures()
    assert [inside.get("model", "m-1")] == [*figures.models]
    assert 3 == figures.usage.output


def read_entries(lines: bytes) -> list[TranscriptEntry]:
    return [msgspec.convert(orjson.loads(line), TranscriptEntry) for line in lines.splitlines()]


def test_a_stored_id_stays_with_its_entry_also_where_it_comes_behind_others(tmp_path: Path) -> None:
    """Entries that were written once and come back have ids that are made of places."""
    with harken.open(tmp_path / "store") as repo:
        with repo.session(tmp_path / "old.jsonl") as session:
            session.log_agent_created("a")
            session.append([Prompt(agent_id="a", content="old q")])
            session.append([Response(agent_id="a", content="old a")])
            name = session.session_id
        old = read_entries(repo.materialize(name, format="transcript-v1").bytes)
        with repo.session(tmp_path / "new.jsonl") as session:
            session.log_agent_created("a")
            session.append([Prompt(agent_id="a", content="new q")])
            for entry in old:
                session.dispatch(entry)
            name = session.session_id
        written = read_entries(repo.materialize(name, format="transcript-v1").bytes)

    assert [one.entry_id for one in old] == [one.entry_id for one in written[1:]]
    assert len(written) == len({one.entry_id for one in written})


@pytest.mark.parametrize(("kind", "origin"), [("compaction", "compaction"), ("remark", "remark"), ("injected", "")])
def test_a_user_entry_of_a_kind_is_what_a_program_said(kind: str, origin: str) -> None:
    prompt = Prompt(content="They met.", source="injected", origin=origin, time=0)
    written = formats.get("transcript-v1").write([prompt])

    (read,) = (event for event in formats.get("transcript-v1").read(written.data) if isinstance(event, Prompt))

    assert kind == orjson.loads(written.data)["metadata"]["kind"]
    assert ("injected", origin) == (read.source, read.origin)
