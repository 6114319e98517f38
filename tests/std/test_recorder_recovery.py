"""What is left of a recording after a crash or a failed write: the log, and a valid document from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harken.capture import MultiAgentRecorder
from harken.errors import HarkenError, NotFound, Poisoned
from harken.log import Session
from support.std_checks import errors_of
from support.std_recording import begin, play, written


def test_a_document_is_recovered_from_the_log_alone(path: Path) -> None:
    with begin(path) as recorder:
        play(recorder)
    before = path.read_bytes()
    path.unlink()

    document = MultiAgentRecorder.recover(path)

    assert before == path.read_bytes()
    assert "std-008" == document.kind


def test_a_log_that_was_cut_anywhere_gives_a_valid_document(path: Path) -> None:
    with begin(path) as recorder:
        play(recorder)
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))
    whole = log.read_bytes()
    beginning = whole.index(b"\n", whole.index(b"document_acts")) + 1
    seen = 0
    for end in range(beginning, len(whole), 401):
        log.write_bytes(whole[:end])
        data = MultiAgentRecorder.recover(path).data
        acts = len(data["messages"]) + len(data["tool_calls"]) + len(data["sub_sessions"])
        assert [] == errors_of(data)
        assert ("in_progress", False) == (data["status"], "x_harken" in data)
        assert seen <= acts
        seen = acts


def test_a_line_that_cannot_be_read_is_told_in_the_document(path: Path) -> None:
    with begin(path) as recorder:
        recorder.call("Read", call_id="lost")
        sub = recorder.start_sub("developer-01", "Mend it")
        recorder.finish_sub(sub)
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))
    log.write_bytes(log.read_bytes().replace(b'"act":"call","time":', b'"act":"call","tame":', 1))

    data = MultiAgentRecorder.recover(path).data

    assert 1 == len(data["x_harken"]["unread"])
    assert [] == errors_of(data)


def test_whatever_is_lost_of_a_log_the_rest_is_a_valid_document(path: Path) -> None:
    with begin(path) as recorder:
        play(recorder)
        outer = recorder.start_sub("developer-01", "More")
        inner = recorder.start_sub("checker", "Less", parent=outer)
        recorder.finish_sub(inner)
        recorder.finish_sub(outer)
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))
    whole = log.read_bytes().splitlines(keepends=True)
    carrying = [at for at, line in enumerate(whole) if b"document_acts" in line][1:]

    for lost in carrying:
        log.write_bytes(b"".join(b"{torn\n" if at == lost else line for at, line in enumerate(whole)))
        data = MultiAgentRecorder.recover(path).data
        assert [] == errors_of(data), whole[lost]
        assert f"line {lost + 1} of the log cannot be read: not JSON" in data["x_harken"]["unread"]


def test_a_reply_to_a_message_that_is_lost_is_kept_as_a_message(path: Path) -> None:
    with begin(path) as recorder:
        asked = recorder.message("checker", "architect-main", "feedback", {"content": "Why so late?"})
        recorder.message("architect-main", "checker", "feedback", {"content": "It rained."}, reply_to=asked)
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    lost = next(line for line in lines if b'"act":"message"' in line and b"Why so late?" in line)
    log.write_bytes(b"".join(line for line in lines if line is not lost))

    data = MultiAgentRecorder.recover(path).data

    assert [] == errors_of(data)
    assert ["It rained."] == [message["payload"]["content"] for message in data["messages"]]


def test_a_line_that_stands_twice_in_a_log_counts_once(path: Path) -> None:
    with begin(path) as recorder:
        play(recorder)
        recorder.message("checker", "developer-01", "feedback", {"content": "It is late"})
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))
    whole = log.read_bytes().splitlines(keepends=True)
    before = written(path)

    for place in [at for at, line in enumerate(whole) if b"document_acts" in line]:
        log.write_bytes(b"".join([*whole[: place + 1], *whole[place:]]))
        data = MultiAgentRecorder.recover(path).data
        assert [] == errors_of(data), whole[place]
        assert before["messages"] == data["messages"]


def test_without_a_log_there_is_nothing_to_recover(path: Path) -> None:
    with pytest.raises(NotFound):
        MultiAgentRecorder.recover(path)
    assert [] == os.listdir(path.parent)


def test_a_document_that_cannot_be_written_is_told_and_can_be_recovered(path: Path) -> None:
    recorder = begin(path)
    recorder.call("Read")
    path.unlink()
    path.mkdir()
    with pytest.raises(HarkenError, match="the recording itself is in"):
        recorder.close("failed")
    path.rmdir()

    assert "failed" == MultiAgentRecorder.recover(path).data["status"]


def test_after_a_failed_write_close_lets_another_recorder_go_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = begin(path)
    recorder.call("Read", call_id="kept")
    with monkeypatch.context() as failing:
        failing.setattr(Session, "append", _refuse)
        failing.setattr(Session, "log_transcript_entry", _refuse)
        with pytest.raises(OSError, match="full"):
            recorder.call("Read")
    for _ in range(2):
        with pytest.raises(Poisoned, match="was interrupted"):
            recorder.call("Read")
    with pytest.raises(Poisoned, match="was interrupted"):
        recorder.close()

    with MultiAgentRecorder.resume(path) as again:
        again.call("Read", call_id="later")
    assert ["kept", "later"] == [call["call_id"] for call in written(path)["tool_calls"]]


def _refuse(*_: Any) -> None:
    raise OSError("the disk is full")
