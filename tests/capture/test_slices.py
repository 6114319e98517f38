"""Entries and slices: what is dispatched is in the log, in its slice and on the bus."""

from __future__ import annotations

import stat
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import harken
from harken import Session
from harken.capture import (
    EventBus,
    JsonlSliceFactory,
    MemorySliceFactory,
    SliceFactoryConfig,
    SlicePolicy,
    TranscriptEntry,
    append_all,
    format_transcript,
    replace_latest,
)
from harken.errors import BadRequest, HarkenError
from harken.events import TranscriptEdit
from harken.formats.transcript.events import drafts_of
from harken.log import dispatching
from harken.log.dispatching import Append

NOON = datetime(2026, 2, 3, 12, 0, 0, 123456, tzinfo=UTC)


@dataclass(frozen=True)
class Plan:
    step: str


def entry(content: str, **fields: object) -> TranscriptEntry:
    return TranscriptEntry(**{"role": "user", "content": content, "created_at": NOON, **fields})


def words(session: Session) -> list[str]:
    return [one.content for one in session[TranscriptEntry].all()]


def test_an_entry_that_is_dispatched_is_in_its_slice_in_the_log_and_on_the_bus(tmp_path: Path) -> None:
    bus = EventBus()
    heard: list[TranscriptEntry] = []
    bus.subscribe(TranscriptEntry, heard.append)
    said = entry("hello")
    with Session(tmp_path / "a.jsonl", bus=bus) as session:
        session.dispatch(said)
        assert (said,) == session[TranscriptEntry].all()
        assert [said] == heard
        assert "hello" == session.transcript(session.root or "")[0]["content"]


def test_entries_are_made_when_somebody_asks_for_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[object] = []
    monkeypatch.setattr(dispatching, "drafts_of", lambda *given: made.append(given) or drafts_of(*given))
    with Session(tmp_path / "a.jsonl") as session:
        session.dispatch(Plan("look"))
        session.log_agent_created("agent_001")
        session.log_transcript_entry("agent_001", {"role": "user", "content": "hello"})
        assert not made
        assert ["hello"] == words(session)
        session.log_transcript_entry("agent_001", {"role": "user", "content": "bye"})
    assert ["hello", "bye"] == words(session)


def test_entries_that_nobody_asked_for_are_there_when_the_session_is_closed() -> None:
    with Session() as session:
        session.dispatch(Plan("look"))
        session.log_agent_created("agent_001")
        session.log_transcript_entry("agent_001", {"role": "user", "content": "hello"})
    assert ["hello"] == words(session)


def test_a_reducer_hears_entries_that_come_after_it(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        session.dispatch(Plan("look"))
        session.log_agent_created("agent_001")
        session.log_transcript_entry("agent_001", {"role": "user", "content": "before"})
        session[Plan].register(TranscriptEntry, lambda plans, one: Append(Plan(one.content)))
        session.log_transcript_entry("agent_001", {"role": "user", "content": "after"})
        assert ["look", "after"] == [plan.step for plan in session[Plan].all()]


def test_entries_come_back_from_the_log_as_they_were(tmp_path: Path) -> None:
    given = [
        entry("be brief", role="system", metadata={"why": [1, {"x": None}]}),
        entry("read it"),
        entry("let me see", role="assistant", metadata={"kind": "thinking", "signature": "s"}),
        entry('{\n  "path": "a"\n}', role="assistant", tool_name="Read", tool_call_id="c1", tool_input={"path": "a"}),
        entry("no such file", role="tool", tool_name="Read", tool_call_id="c1", metadata={"is_error": True}),
        entry("it failed", role="assistant", metadata={"kind": "error"}),
        entry("from below", role="assistant", source="subagent:abc", metadata={"model": "m", "usage": {"in": 3}}),
        entry("of my own", source="somebody else's"),
        entry("", role="system", metadata={"kind": "a notice without words"}),
        entry("without a zone", created_at=datetime(2026, 1, 1)),  # noqa: DTZ001
    ]
    path = tmp_path / "a.jsonl"
    with Session(path) as session:
        for one in given:
            session.dispatch(one)
        held = session[TranscriptEntry].all()
    with Session(path) as session:
        assert held == session[TranscriptEntry].all()
    numbers = {"primary": 0, "subagent:abc": 0, "somebody else's": 0}
    for one, kept in zip(given, held, strict=True):
        assert replace(one, sequence=numbers[one.source]) == kept
        numbers[one.source] += 1


@example(
    [TranscriptEntry(role="system", content="", created_at=datetime(2000, 1, 1, tzinfo=UTC), metadata={"kind": "x"})]
)
@given(
    st.lists(
        st.builds(
            TranscriptEntry,
            role=st.sampled_from(["system", "user", "assistant", "tool"]),
            content=st.text(st.characters(exclude_categories=["Cs"])),
            created_at=st.datetimes(timezones=st.just(UTC)),
            tool_name=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            tool_call_id=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            tool_input=st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(-9, 9)),
            metadata=st.none()
            | st.dictionaries(
                st.sampled_from(["kind", "model", "x"]),
                st.sampled_from(["thinking", "error", "server_tool", "compaction"]) | st.integers(0, 9),
            ),
            entry_id=st.uuids(),
            source=st.sampled_from(["primary", "subagent:a", "conversation:b", "c"]),
        ),
        max_size=8,
        unique_by=lambda one: one.entry_id,
    )
)
def test_any_entries_are_the_same_in_the_slice_and_read_again(given: list[TranscriptEntry]) -> None:
    with Session() as session:
        for one in given:
            session.dispatch(one)
        held = session[TranscriptEntry].all()
        session._slices = None  # what is read afresh
        session.line_observers.clear()
        assert held == session[TranscriptEntry].all()
        assert [replace(one, sequence=0) for one in given] == [replace(one, sequence=0) for one in held]


def test_numbers_have_no_gaps_and_a_taken_one_gives_way() -> None:
    with Session() as session:
        for text in "abc":
            session.dispatch(entry(text))
        session.dispatch(entry("d", sequence=1))
        assert [0, 1, 2, 3] == [one.sequence for one in session[TranscriptEntry].all()]


def test_what_arrives_out_of_order_is_put_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Session(path) as session:
        for number in (2, 0, 3, 1):
            session.dispatch(entry(str(number), sequence=number))
            session.dispatch(entry(f"sub {number}", source="subagent:x"))
        first = words(session)
    assert ["0", "sub 2", "1", "sub 0", "2", "sub 3", "3", "sub 1"] == first
    with Session(path) as session:
        assert first == words(session)


@pytest.mark.parametrize("in_batch", [False, True])
@pytest.mark.parametrize("order", [(2, 0, 3, 1), (3, 2, 1, 0), (1, 3, 5, 0, 4, 2)])
def test_what_arrives_out_of_order_is_at_its_place_wherever_the_log_is_read(
    tmp_path: Path, order: tuple[int, ...], in_batch: bool
) -> None:
    path = tmp_path / "a.jsonl"
    expected = [f"w{number}" for number in sorted(order)]
    with Session(path) as session, session.batch() if in_batch else nullcontext():
        for number in order[:-1]:
            session.dispatch(entry(f"w{number}", sequence=number))
            session.dispatch(entry(f"x{number}", sequence=number, source="subagent:x"))
    with Session(path) as session:
        session.dispatch(entry(f"w{order[-1]}", sequence=order[-1]))
        assert expected == [one for one in words(session) if one[0] == "w"]
        assert expected == [message["content"] for message in session.transcript(session.root or "")]
        below = next(name for name in session.agents if name != session.root)
        assert [f"x{number}" for number in sorted(order[:-1])] == [m["content"] for m in session.transcript(below)]
    with harken.open(tmp_path / "store") as repo:
        list(repo.import_sessions([path]))
        (main,) = [row.session for row in repo.sessions() if "/" not in row.session]
        chat = repo.materialize(main, format="openai-chat-v1").bytes
        entries = repo.materialize(main, format="transcript-v1").bytes.splitlines()
        (figures,) = (total.figures for total in repo.stats([main]))
    assert expected == [message["content"] for message in orjson.loads(chat)["messages"]]
    assert [(at, word) for at, word in enumerate(expected)] == [
        (line["sequence"], line["content"]) for line in map(orjson.loads, entries)
    ]
    assert len(expected) == figures.prompts.human


def test_an_entry_that_is_late_leaves_alone_what_was_cut_off_and_adds_one_edit(tmp_path: Path) -> None:
    with Session() as session:
        for number in (0, 2, 3):
            session.dispatch(entry(str(number), sequence=number))
        agent = session.root or ""
        session.append([TranscriptEdit(agent_id=agent, action="truncate", n=2)])
        session.dispatch(entry("failed", role="system", sequence=1, metadata={"kind": "error"}))
        assert 1 == sum(isinstance(event, TranscriptEdit) for event in session.events())
        session.dispatch(entry("4", sequence=4))
        session.dispatch(entry("one", sequence=5))
        assert ["0", "2", "4", "one"] == [message["content"] for message in session.transcript(agent)]
    with Session() as session:
        for number in reversed(range(50)):
            session.dispatch(entry(str(number), sequence=number))
        assert [str(number) for number in range(50)] == [m["content"] for m in session.transcript(session.root or "")]
        assert 49 == sum(isinstance(event, TranscriptEdit) for event in session.events())


def test_what_others_log_in_an_open_batch_keeps_its_number_and_its_id(tmp_path: Path) -> None:
    def told(session: Session) -> list[tuple[str, int, UUID]]:
        return [(one.content, one.sequence, one.entry_id) for one in session[TranscriptEntry].all()]

    path = tmp_path / "a.jsonl"
    with Session(path) as session:
        with session.batch():
            session.log_agent_created("agent_001", role="root")
            session.log_transcript_entry("agent_001", {"role": "user", "content": "by hand"})
            session.dispatch(entry("third", sequence=2))
            assert not session[TranscriptEntry].all()
            session.log_transcript_entry("agent_001", {"role": "assistant", "content": "by hand again"})
            session.dispatch(entry("second", sequence=1))
        first = told(session)
    assert [("by hand", 0), ("second", 1), ("third", 2), ("by hand again", 3)] == [one[:2] for one in first]
    with Session(path) as session:
        assert first == told(session)
        texts = [message["content"] for message in session.transcript("agent_001")]
    assert ["by hand", "second", "third", "by hand again"] == texts


def test_the_same_entry_twice_is_one() -> None:
    said = entry("once")
    with Session() as session:
        session.dispatch(said)
        session.dispatch(said)
        with session.batch():
            session.dispatch(other := entry("twice in a batch"))
            session.dispatch(other)
        assert ["once", "twice in a batch"] == words(session)


def test_what_is_logged_otherwise_is_an_entry_too_with_an_id_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Session(path) as session:
        session.log_agent_created("agent_001")
        call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"at":"/"}'}}
        session.log_transcript_entry("agent_001", {"role": "assistant", "content": "Look.", "tool_calls": [call]})
        session.log_transcript_entry("agent_001", {"role": "tool", "tool_call_id": "c", "content": "bin"})
        live = session[TranscriptEntry].all()
    assert ["Look.", '{\n  "at": "/"\n}', "bin"] == [one.content for one in live]
    assert ["ls", "ls"] == [one.tool_name for one in live[1:]]
    assert [5, 5, 5] == [one.entry_id.version for one in live]
    with Session(path) as again:
        assert live == again[TranscriptEntry].all()
    moved = path.rename(tmp_path / "b.jsonl")
    with Session(moved, readonly=True) as again:
        assert live == again[TranscriptEntry].all()


def test_a_slice_on_disk_is_found_again_by_a_session_without_a_file(tmp_path: Path) -> None:
    config = SliceFactoryConfig(MemorySliceFactory(), JsonlSliceFactory(base_dir=tmp_path / "slices"))
    with Session(slice_config=config) as session:
        session.dispatch(entry("one"))
    with Session(slice_config=config) as session:
        session.dispatch(entry("two"))
        assert [("one", 0), ("two", 1)] == [(one.content, one.sequence) for one in session[TranscriptEntry].all()]
    file = tmp_path / "slices" / "harken.capture:TranscriptEntry.jsonl"
    assert 2 == len(file.read_bytes().splitlines())
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert 0o700 == stat.S_IMODE(file.parent.stat().st_mode)
    assert b"__type__" not in file.read_bytes()


def test_a_slice_on_disk_gets_what_only_the_log_has(tmp_path: Path) -> None:
    config = SliceFactoryConfig(log_factory=JsonlSliceFactory(tmp_path / "slices"))
    with Session(tmp_path / "a.jsonl") as session:
        session.dispatch(entry("before there was a slice"))
    with Session(tmp_path / "a.jsonl", slice_config=config) as session:
        session.dispatch(entry("with it"))
        assert ["before there was a slice", "with it"] == words(session)


def test_a_torn_line_of_a_slice_costs_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = SliceFactoryConfig(log_factory=JsonlSliceFactory(tmp_path))
    with Session(slice_config=config) as session:
        session.dispatch(entry("whole"))
    file = tmp_path / "harken.capture:TranscriptEntry.jsonl"
    file.write_bytes(file.read_bytes() + b'{"role":"us')
    with Session(slice_config=config) as session:
        session.dispatch(entry("after"))
        assert ["whole", "after"] == words(session)
    assert "line 2 cannot be read" in caplog.text


def test_a_type_key_is_read_and_an_id_that_is_stored_is_kept(tmp_path: Path) -> None:
    known = UUID(int=7)
    line = b'{"__type__":"a:B","role":"user","content":"x","created_at":"2026-01-02T03:04:05+00:00","entry_id":"%s"}\n'
    (tmp_path / "harken.capture:TranscriptEntry.jsonl").write_bytes(line % str(known).encode())
    with Session(slice_config=SliceFactoryConfig(log_factory=JsonlSliceFactory(tmp_path))) as session:
        assert [known] == [one.entry_id for one in session[TranscriptEntry].all()]


def test_state_is_put_back_and_a_log_is_not() -> None:
    with Session() as session:
        session[Plan].register(Plan, replace_latest)
        session.dispatch(Plan("one"))
        before = session.snapshot()
        session.dispatch(Plan("two"))
        session.dispatch(entry("said"))
        assert Plan("two") == session[Plan].latest()
        session.restore(before)
        assert (Plan("one"),) == session[Plan].all()
        assert ["said"] == words(session)


def test_a_log_slice_of_any_type_only_grows() -> None:
    with Session() as session:
        session.set_policy(Plan, SlicePolicy.LOG)
        session.dispatch(Plan("one"))
        session.restore({})
        assert (Plan("one"),) == session[Plan].all()
        session[Plan].register(Plan, replace_latest)
        with pytest.raises(BadRequest, match="only grows"):
            session.dispatch(Plan("two"))


def test_the_policy_of_entries_is_log_and_their_reducer_append_all() -> None:
    with Session() as session:
        session.set_policy(TranscriptEntry, SlicePolicy.LOG)
        session[TranscriptEntry].register(TranscriptEntry, append_all)
        session.dispatch(entry("a"))
        assert ["a"] == words(session)
        with pytest.raises(BadRequest, match="stay there"):
            session.set_policy(TranscriptEntry, SlicePolicy.STATE)
        with pytest.raises(BadRequest, match="what the log says"):
            session[TranscriptEntry].register(Plan, append_all)


def test_entries_are_asked_for_by_what_they_are() -> None:
    with Session() as session:
        assert session[TranscriptEntry].latest() is None
        session.dispatch(entry("q"))
        session.dispatch(entry("a", role="assistant"))
        session.dispatch(entry("b", role="assistant", source="subagent:x"))
        assert ["a", "b"] == [one.content for one in session[TranscriptEntry].where(lambda e: e.role == "assistant")]
        assert ["q", "a"] == [one.content for one in session[TranscriptEntry].where(lambda e: e.source == "primary")]
        latest = session[TranscriptEntry].latest()
        assert latest is not None and "b" == latest.content


def test_a_handler_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus()
    heard: list[object] = []

    def broken(_: object) -> None:
        raise ValueError("no")

    bus.subscribe(Plan, broken)
    end = bus.subscribe(object, heard.append)
    with Session(bus=bus) as session:
        session.dispatch(Plan("one"))
        end()
        session.dispatch(Plan("two"))
    assert [Plan("one")] == heard
    assert "a handler of Plan failed" in caplog.text


def test_a_session_in_memory_is_gone_when_it_is_closed() -> None:
    session = Session()
    session.log_agent_created("agent_001")
    session.log_transcript_entry("agent_001", {"role": "user", "content": "x"})
    assert [{"role": "user", "content": "x"}] == session.transcript("agent_001")
    session.close()
    with pytest.raises(HarkenError, match="in memory only"):
        session.transcript("agent_001")
    with pytest.raises(HarkenError, match="in memory only"):
        session.log_transcript_entry("agent_001", {"role": "user", "content": "y"})


def test_the_text_for_people() -> None:
    entries = [
        TranscriptEntry("system", "You answer briefly.", datetime(2026, 1, 1, 9, 15, 32, tzinfo=UTC)),
        TranscriptEntry("tool", "4 lines", datetime(2026, 1, 1, 9, 15, 36, tzinfo=UTC), tool_name="Read"),
        TranscriptEntry("assistant", "Done.", datetime(2026, 1, 1, 9, 15, 38, tzinfo=UTC), source="subagent:abc"),
    ]
    expected = (
        "[09:15:32] ⚙️ SYSTEM\nYou answer briefly.\n\n[09:15:36] 🔧 Read\n4 lines\n\n"
        "[subagent:abc] [09:15:38] 🤖 ASSISTANT\nDone.\n"
    )
    assert expected == format_transcript(entries)
