"""Slices where something goes wrong: a full disk, a file that others replace, values that JSON does not know."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harken import Session
from harken.capture import EventBus, JsonlSliceFactory, SliceFactoryConfig, SlicePolicy, TranscriptEntry, append_all
from harken.errors import BadRequest, HarkenError
from harken.events import Prompt, Response

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)
NAME = "harken.capture:TranscriptEntry.jsonl"


@dataclass(frozen=True)
class Step:
    number: int


@dataclass(frozen=True)
class Oddities:
    data: bytes = b"\xff\x00"
    after: timedelta = timedelta(days=1)
    some: frozenset[int] = frozenset({1})


class Opaque:
    """What JSON cannot give back."""

    def __init__(self) -> None:
        self.inner = object()


def entry(content: str, **fields: Any) -> TranscriptEntry:
    return TranscriptEntry(**{"role": "user", "content": content, "created_at": NOON, **fields})


def on_disk(folder: Path) -> SliceFactoryConfig:
    return SliceFactoryConfig(JsonlSliceFactory(folder), JsonlSliceFactory(folder))


def words(session: Session) -> list[tuple[int, str]]:
    return [(one.sequence, one.content) for one in session[TranscriptEntry].all()]


def speak(session: Session, *texts: str) -> None:
    """What an agent logs, whose entries have no ids of their own."""
    if session.root is None:
        session.log_agent_created("agent_001")
    session.append([Prompt(content=text, agent_id="agent_001") for text in texts])


class FullDisk:
    """A disk on which no slice can be written while it is full; half of each line goes through."""

    def __init__(self) -> None:
        self.is_full = False

    def write(self, fd: int, data: memoryview) -> int:
        if not self.is_full:
            return os.write(fd, data)
        if len(data) > 8:
            return os.write(fd, data[:8])
        raise OSError(28, "No space left on device")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    found = FullDisk()
    monkeypatch.setattr("harken.log.slices.write", found.write)
    return found


def test_sessions_that_share_a_folder_have_their_own_entries_once(tmp_path: Path) -> None:
    config = on_disk(tmp_path / "slices")
    for name in ("a", "b", "a", "b"):
        with Session(tmp_path / f"{name}.jsonl", slice_config=config) as session:
            speak(session, f"{name}1", f"{name}2")
            session.dispatch(entry(name))
            live = session[TranscriptEntry].all()
        with Session(tmp_path / f"{name}.jsonl", readonly=True) as session:
            assert session[TranscriptEntry].all() == live
    assert [(0, "b1"), (1, "b2"), (2, "b"), (3, "b1"), (4, "b2"), (5, "b")] == [(e.sequence, e.content) for e in live]
    assert 12 == len((tmp_path / "slices" / NAME).read_bytes().splitlines())


def test_a_reader_writes_no_slice(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        speak(session, "hello")
    with Session(tmp_path / "a.jsonl", readonly=True, slice_config=on_disk(tmp_path / "slices")) as session:
        assert [(0, "hello")] == words(session)
    assert not (tmp_path / "slices").exists()


def test_an_entry_whose_slice_is_full_is_in_the_log_and_in_the_slice_once_there_is_room(
    tmp_path: Path, disk: FullDisk, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[TranscriptEntry] = []
    bus = EventBus()
    bus.subscribe(TranscriptEntry, heard.append)
    folder = tmp_path / "slices"
    with Session(tmp_path / "a.jsonl", bus=bus, slice_config=on_disk(folder)) as session:
        session.dispatch(entry("one"))
        disk.is_full = True
        session.dispatch(entry("two"))
        session.dispatch(entry("three"))
        assert ["one", "two", "three"] == [text for _, text in words(session)]
        assert ["one", "two", "three"] == [one.content for one in heard]
        disk.is_full = False
        session.dispatch(entry("four"))
        assert ["one", "two", "three", "four"] == [text for _, text in words(session)]
    assert 4 == len((folder / NAME).read_bytes().splitlines())
    assert 1 == caplog.text.count("not yet in their slice")


def test_a_slice_that_cannot_be_put_back_is_as_it_was(tmp_path: Path, disk: FullDisk) -> None:
    with Session(slice_config=on_disk(tmp_path)) as session:
        session.dispatch(Step(1))
        before = session.snapshot()
        session.dispatch(Step(2))
        disk.is_full = True
        with pytest.raises(HarkenError, match="No space left"):
            session.restore(before)
        disk.is_full = False
        session.dispatch(Step(3))
        assert (Step(1), Step(2), Step(3)) == session[Step].all()
    assert not list(tmp_path.glob(".*"))


def test_what_an_earlier_session_left_is_not_taken_away_by_a_snapshot_that_does_not_know_it(tmp_path: Path) -> None:
    with Session(slice_config=on_disk(tmp_path)) as session:
        session.dispatch(Step(1))
    with Session(slice_config=on_disk(tmp_path)) as session:
        before = session.snapshot()
        session.dispatch(Step(2))
        session.restore(before)
        assert (Step(1),) == session[Step].all()


def test_a_file_that_another_session_puts_in_its_place_is_written_from_then_on(tmp_path: Path) -> None:
    with Session(slice_config=on_disk(tmp_path)) as one, Session(slice_config=on_disk(tmp_path)) as other:
        one.dispatch(Step(1))
        other.dispatch(Step(2))
        one.restore(one.snapshot())
        other.dispatch(Step(3))
        assert (Step(1), Step(2), Step(3)) == one[Step].all() == other[Step].all()


def test_a_line_that_another_process_tore_is_closed(tmp_path: Path) -> None:
    with Session(slice_config=on_disk(tmp_path)) as session:
        session.dispatch(Step(1))
        (file,) = tmp_path.glob("*Step.jsonl")
        with file.open("ab") as torn:
            torn.write(b'{"num')
        session.dispatch(Step(2))
        assert (Step(1), Step(2)) == session[Step].all()


def test_a_slice_is_read_after_its_session_is_closed(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl", slice_config=on_disk(tmp_path / "slices")) as session:
        session.dispatch(entry("said"))
    assert [(0, "said")] == words(session)


def test_values_come_back_as_they_were_and_what_cannot_is_refused(tmp_path: Path) -> None:
    with Session(slice_config=on_disk(tmp_path)) as session:
        session.dispatch(Oddities())
        assert (Oddities(),) == session[Oddities].all()
        with pytest.raises(BadRequest, match="could not be read again"):
            session.dispatch(Opaque())


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "nobody"},
        {"content": None},
        {"created_at": "2026-01-01"},
        {"sequence": "3"},
        {"sequence": True},
        {"entry_id": "x"},
        {"metadata": [1]},
        {"tool_input": "text"},
        {"tool_name": 3},
        {"source": ""},
    ],
)
def test_an_entry_that_is_none_is_refused_before_it_is_logged(wrong: dict[str, Any]) -> None:
    with Session() as session:
        with pytest.raises(BadRequest):
            session.dispatch(entry(**{"content": "x", **wrong}))
        assert () == session[TranscriptEntry].all()


def test_texts_and_values_that_json_does_not_know_are_kept_as_near_as_it_can(tmp_path: Path) -> None:
    loop: dict[Any, Any] = {"big": 10**30, (1, 2): "key", "half": "\ud800"}
    loop["self"] = loop
    with Session(tmp_path / "a.jsonl", slice_config=on_disk(tmp_path / "slices")) as session:
        session.dispatch(entry("half a \ud800", metadata=loop))
        (held,) = session[TranscriptEntry].all()
    assert "half a \ufffd" == held.content
    assert {"big": "1" + "0" * 30, "(1, 2)": "key", "half": "\ufffd", "self": "…"} == held.metadata
    with Session(tmp_path / "a.jsonl") as session:
        assert (held,) == session[TranscriptEntry].all()


def test_what_has_no_number_comes_after_what_has_one_and_leaves_room_for_what_is_late() -> None:
    with Session() as session:
        session.dispatch(entry("zero"))
        session.dispatch(entry("two", sequence=2))
        session.dispatch(entry("came third"))
        session.append([Prompt(content="came fourth", agent_id=session.root or "")])
        session.dispatch(entry("one", sequence=1))
        assert [(0, "zero"), (1, "one"), (2, "two"), (3, "came third"), (4, "came fourth")] == words(session)


def test_sources_that_are_like_the_names_and_ids_of_other_agents_are_agents_of_their_own(tmp_path: Path) -> None:
    sources = ["primary", "conversation:a", "subagent:a", "subagent:A", "conversation:agent_001", "subagent:agent_001"]
    for number in range(2):
        with Session(tmp_path / "a.jsonl") as session:
            for source in sources:
                session.dispatch(entry("x", source=source))
            found = session[TranscriptEntry].all()
        assert [(source, number) for source in sources] == [(one.source, one.sequence) for one in found[-6:]]


def test_a_reducer_that_fails_does_not_stop_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(values: tuple[Any, ...], event: Any) -> Any:
        raise ZeroDivisionError

    with Session() as session:
        session.set_policy(Step, SlicePolicy.LOG)
        session[Step].register(TranscriptEntry, broken)
        session[TranscriptEntry].register(TranscriptEntry, append_all)
        speak(session, "one")
        session.append([Response(content="two", agent_id="agent_001")])
        assert [(0, "one"), (1, "two")] == words(session)
    assert "the reducer of Step failed" in caplog.text
