"""What a recorder refuses, in a sentence and before anything is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harken.capture import AgentIdentifier, MultiAgentRecorder
from harken.errors import BadRequest, Closed, Conflict, HarkenError, Locked, NotFound
from harken.log import Session
from support.std_checks import errors_of
from support.std_recording import Json, begin, written


@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("start_sub", ("nobody", "work"), "there is no agent 'nobody'"),
        ("start_sub", (("developer-01", "reviewer"), "work"), "is a 'developer', not a 'reviewer'"),
        ("start_sub", (17, "work"), "17 is no agent"),
        ("start_sub", ("developer-01", ""), "description must be a text"),
        ("message", ("nobody", "checker", "feedback"), "there is no agent 'nobody'"),
        ("message", ("checker", "nobody", "feedback"), "there is no agent 'nobody'"),
        ("message", ("checker", "developer-01", "gossip"), "there is no message_type 'gossip'"),
        (
            "message",
            ("checker", "developer-01", "task_completion", {"task_id": "t"}),
            "no message before it assigns it",
        ),
        ("message", ("checker", "developer-01", "review_result", {"task_id": "t"}), "no message before it asks for it"),
        ("message", ("checker", "developer-01", "feedback", {"x": {1}}), "payload.x is a set"),
        ("sub_call", ("sub-009", "Read"), "there is no sub-session 'sub-009'"),
        ("finish_sub", ("sub-009",), "there is no sub-session 'sub-009'"),
        ("finish_sub", ([],), "there is no sub-session"),
        ("end_call", ("tool-009",), "there is no call 'tool-009'"),
        ("end_call", ([],), "there is no call"),
        ("call", ("",), "tool_name must be a text"),
        ("call", ("Read", {"path": Path("x")}), "params.path is a PosixPath, which JSON does not have"),
        ("call", ("Read", {"path": b"x"}), "params.path is a bytes"),
        ("call", ("Read", {"n": float("nan")}), "params.n is nan"),
        ("call", ("Read", {"n": [1, 10**400]}), r"params.n\[1\] has more digits"),
        ("call", ("Read", {1: 2}), "the key 1, which is no text"),
        ("call", ("Read", [1]), "params must be an object"),
        ("close", ("done",), "there is no status 'done'"),
    ],
)
def test_misuse_is_told_and_leaves_nothing_behind(
    path: Path, method: str, arguments: tuple[Any, ...], said: str
) -> None:
    with begin(path) as recorder:
        log = path.with_name(path.name.replace(".json", ".log.jsonl"))
        before = log.read_bytes()
        with pytest.raises(BadRequest, match=said) as told:
            getattr(recorder, method)(*arguments)
        assert told.value.hint
        assert before == log.read_bytes()
        recorder.call("Read")

    assert [] == errors_of(written(path))


@pytest.mark.parametrize(
    "place", ["x" * 300, f"{'x' * 245}.json", "x/" * 3000 + "x.json", "a\0b.json", "\ud800.json", "", 5, None, b"x"]
)
def test_a_path_that_no_file_can_have_is_told(tmp_path: Path, place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for method in (begin, MultiAgentRecorder.resume, MultiAgentRecorder.recover):
        with pytest.raises(HarkenError) as told:
            method(place)
        assert told.value.hint
    assert [] == os.listdir(tmp_path)


def test_the_root_of_all_folders_holds_no_recording() -> None:
    with pytest.raises(NotFound):
        MultiAgentRecorder.recover("/")


@pytest.mark.parametrize("participants", [5, None, "developer-01", AgentIdentifier(agent_id="a", agent_type="b")])
def test_participants_are_several_agents(path: Path, participants: Any) -> None:
    with pytest.raises(BadRequest, match="participants must be several agents") as told:
        MultiAgentRecorder(path, task_title="T", user_prompt="", orchestrator="lead", participants=participants)
    assert told.value.hint
    assert [] == os.listdir(path.parent)


def test_a_folder_that_is_not_there_is_not_taken_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("none/", "file/"):
        with pytest.raises(NotFound, match="there is no folder") as told:
            begin(f"{tmp_path}/{name}")
        assert told.value.hint
    assert ["file"] == os.listdir(tmp_path)


def test_what_ended_cannot_end_again(path: Path) -> None:
    with begin(path) as recorder:
        call_id = recorder.call("Read")
        with pytest.raises(BadRequest, match="has ended already"):
            recorder.end_call(call_id)
        sub = recorder.start_sub("developer-01", "Mend it")
        recorder.finish_sub(sub)
        for act in (lambda: recorder.finish_sub(sub), lambda: recorder.sub_call(sub, "Read")):
            with pytest.raises(BadRequest, match="has ended"):
                act()
        with pytest.raises(BadRequest, match="already"):
            recorder.call("Read", call_id=call_id)
        with pytest.raises(BadRequest, match="before what it follows"):
            recorder.call("Read", started_at="2026-03-04T10:00:00Z", ended_at="2026-03-04T09:00:00Z")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"changes": {}, "summary": "x"}, "files_created. is missing"),
        ({"verdict": "fine", "findings": []}, "`review_id` is missing"),
        ({"output_type": "generic"}, "`summary` is missing"),
        (17, "output must be an object"),
    ],
)
def test_an_output_that_the_standard_does_not_know_is_refused(path: Path, output: Any, said: str) -> None:
    with begin(path) as recorder:
        sub = recorder.start_sub("developer-01", "Mend it")
        with pytest.raises(BadRequest, match=said):
            recorder.finish_sub(sub, output)
        recorder.finish_sub(sub)


def test_a_circle_is_refused(path: Path) -> None:
    circle: Json = {}
    circle["again"] = circle
    with begin(path) as recorder, pytest.raises(BadRequest, match="nested more than 100 deep"):
        recorder.call("Read", circle)


def test_nothing_is_recorded_after_the_end(path: Path) -> None:
    recorder = begin(path)
    recorder.close("failed")

    for act in (lambda: recorder.call("Read"), recorder.close):
        with pytest.raises(Closed, match="is closed") as told:
            act()
        assert told.value.hint.startswith("begin another one; `resume` opens one that was closed as in_progress")
    with pytest.raises(Closed, match="closed as failed"):
        MultiAgentRecorder.resume(path)


def test_two_recorders_on_one_path_are_one_too_many(path: Path) -> None:
    with begin(path):
        for attempt in (lambda: begin(path), lambda: MultiAgentRecorder.recover(path)):
            with pytest.raises(Locked) as told:
                attempt()
            assert "wait until that recorder is closed, or record at another path" == told.value.hint
    with pytest.raises(Conflict, match="holds a recording already"):
        begin(path)


def test_a_file_that_is_there_is_not_overwritten(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(Conflict):
        begin(path)
    assert "mine" == path.read_text()


def test_the_log_of_another_session_is_not_gone_on_with(path: Path) -> None:
    with Session(path.with_name(path.name.replace(".json", ".log.jsonl"))) as session:
        session.log_agent_created("a", role="root")
        session.log_transcript_entry("a", {"role": "user", "content": "Hello"})

    with pytest.raises(Conflict, match="the log of another session"):
        begin(path)


FINDING = {"finding_id": "f", "severity": "minor", "category": "bug", "file": "a.py", "description": "Late."}
CHANGE = {"change_id": "c", "priority": "must_fix", "related_findings": [], "description": "Set it."}


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"review_id": ""}, "output.review_id: `review_id` is empty"),
        ({"findings": [{**FINDING, "finding_id": ""}]}, "`finding_id` is empty"),
        ({"findings": [FINDING, FINDING]}, '"f" is the id of another finding too'),
        ({"required_changes": [CHANGE, CHANGE]}, '"c" is the id of another change too'),
    ],
)
def test_an_output_that_a_document_may_not_have_is_refused(path: Path, part: Json, said: str) -> None:
    verified = {"tests_passed": True, "type_check_passed": True}
    review = {"review_id": "r", "verdict": "approved", "findings": [], "verification": verified, "summary": "Fine."}
    with begin(path) as recorder:
        sub = recorder.start_sub("checker", "Check it")
        with pytest.raises(BadRequest, match=said):
            recorder.finish_sub(sub, {**review, **part})
        recorder.finish_sub(sub, review)
    assert [] == errors_of(written(path))


def test_a_recorder_that_is_refused_leaves_no_log_beside_the_document(path: Path) -> None:
    path.write_text("{}")

    with pytest.raises(Conflict, match="there is a file"):
        begin(path)

    assert [path.name] == [one.name for one in path.parent.iterdir()]
