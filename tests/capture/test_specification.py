"""The examples of the specification of transcript capture, as a user would write them (with our import paths)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harken.capture import (
    EventBus,
    JsonlSliceFactory,
    MemorySliceFactory,
    Session,
    SliceFactoryConfig,
    SlicePolicy,
    TranscriptEntry,
    TranscriptRole,
    append_all,
    format_transcript,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "transcript.txt"


class Adapter:
    """An adapter of somebody's own, which captures entries by hand."""

    def capture(self, role: TranscriptRole, content: str, *, session: Session, **more: Any) -> None:
        session.dispatch(TranscriptEntry(role=role, content=content, created_at=datetime.now(UTC), **more))

    def capture_subagent(self, entries: list[dict[str, Any]], *, session: Session, subagent_id: str) -> None:
        for number, raw in enumerate(entries):
            time = datetime.fromisoformat(raw["timestamp"])
            source = f"subagent:{subagent_id}"
            session.dispatch(TranscriptEntry(raw["type"], raw["content"], time, source=source, sequence=number))


def a_conversation() -> Iterable[TranscriptEntry]:
    def at(second: int) -> datetime:
        return datetime(2026, 1, 5, 14, 2, second, tzinfo=UTC)

    yield TranscriptEntry("system", "You keep a garden.", at(1))
    yield TranscriptEntry("user", "What grows behind the shed?", at(1))
    yield TranscriptEntry("assistant", "I go and look.", at(4))
    call = {"tool_name": "Look", "tool_call_id": "c1", "tool_input": {"at": "shed"}}
    yield TranscriptEntry("assistant", json.dumps(call["tool_input"], indent=2), at(4), **call)
    yield TranscriptEntry("tool", "nettles\nand mint", at(5), tool_name="Look", tool_call_id="c1")
    yield TranscriptEntry("assistant", "Asked about mint …", at(7), source="subagent:herbs")
    yield TranscriptEntry("assistant", "Nettles and mint.", at(9))


def test_the_text_of_a_transcript_is_the_golden_file() -> None:
    with Session() as session:
        for entry in a_conversation():
            session.dispatch(entry)
        assert GOLDEN.read_text("utf-8") == format_transcript(session[TranscriptEntry].all())


def test_a_policy_and_a_reducer_may_be_named_though_they_are_the_default() -> None:
    session = Session(bus=EventBus())
    session.set_policy(TranscriptEntry, SlicePolicy.LOG)
    session[TranscriptEntry].register(TranscriptEntry, append_all)
    Adapter().capture("user", "hi", session=session)
    assert ["hi"] == [entry.content for entry in session[TranscriptEntry].all()]
    session.close()


def test_entries_are_kept_in_a_folder(tmp_path: Path) -> None:
    config = SliceFactoryConfig(
        state_factory=MemorySliceFactory(),
        log_factory=JsonlSliceFactory(base_dir=tmp_path / "agent_transcripts"),
    )
    with Session(bus=EventBus(), slice_config=config) as session:
        Adapter().capture("assistant", "kept", session=session, metadata={"model": "m"})
    (line,) = (tmp_path / "agent_transcripts" / "harken.capture:TranscriptEntry.jsonl").read_text("utf-8").splitlines()
    assert ("assistant", "kept", {"model": "m"}) == tuple(
        json.loads(line)[key] for key in ("role", "content", "metadata")
    )


def test_questions_about_a_transcript() -> None:
    with Session() as session:
        for entry in a_conversation():
            session.dispatch(entry)
        told = session[TranscriptEntry]
        assert 7 == len(told.all())
        latest = told.latest()
        assert latest is not None and "Nettles and mint." == latest.content
        assert 4 == len(told.where(lambda e: e.role == "assistant"))
        assert 6 == len(told.where(lambda e: e.source == "primary"))


def test_a_subagent_has_numbers_of_its_own() -> None:
    raw = [{"type": "user", "content": str(n), "timestamp": "2026-01-05T14:02:00+00:00"} for n in range(3)]
    with Session() as session:
        Adapter().capture("user", "begin", session=session)
        Adapter().capture_subagent(raw, session=session, subagent_id="abc123")
        below = session[TranscriptEntry].where(lambda e: e.source == "subagent:abc123")
        assert [("0", 0), ("1", 1), ("2", 2)] == [(entry.content, entry.sequence) for entry in below]


def test_capture_is_there_when_harken_is_imported() -> None:
    code = "import sys, harken; assert harken.capture.TranscriptEntry; assert 'openai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
