"""`MultiAgentRecorder`: what it is told is in the log before it answers, and in a valid document in the end."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harken.capture import AgentIdentifier, MultiAgentRecorder
from harken.errors import BadRequest, Closed, Conflict, HarkenError, Locked, NotFound, Poisoned
from harken.files import write_whole
from harken.formats.std.document import read
from harken.formats.std.models import DeveloperOutput, FileChanges
from harken.log import Session
from support.std_checks import errors_of, findings_of

NAME = "2026-03-04-001-mend-the-clock-multi.json"
Json = dict[str, Any]


class Ticking:
    """A clock that goes on by a second each time it is asked."""

    def __init__(self) -> None:
        self.instant = 1_772_618_400_000_000

    def __call__(self) -> int:
        self.instant += 1_000_000
        return self.instant


def begin(path: Path, **more: Any) -> MultiAgentRecorder:
    about: Json = {
        "task_title": "Mend the clock",
        "user_prompt": "The clock is late.",
        "orchestrator": "architect-main",
        "participants": ["developer-01", ("checker", "reviewer")],
        "model": "model-1",
        "clock": Ticking(),
    }
    return MultiAgentRecorder(path, **{**about, **more})


def written(path: Path) -> Json:
    data: Json = read(path.read_bytes()).data
    return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def play(recorder: MultiAgentRecorder) -> None:
    """One agent has work done by a second, and has it reviewed by a third."""
    recorder.call("Read", {"file_path": "clock.py"}, result="tick")
    sub = recorder.start_sub("developer-01", "Mend it", priority="high")
    task = {"task_id": "task-001", "task_description": "Mend it"}
    said = recorder.message("architect-main", "developer-01", "task_assignment", {"task": task})
    recorder.sub_call(sub, "Write", {"file_path": "clock.py", "content": "tock"}, result="written")
    changes = {"files_created": ["clock.py"], "files_modified": [], "files_deleted": []}
    recorder.finish_sub(sub, {"changes": changes, "summary": "It is mended"}, tokens_used=7)
    done = {"task_id": "task-001", "status": "completed"}
    recorder.message("developer-01", "architect-main", "task_completion", done, reply_to=said)
    review = {"review_id": "review-001", "task_id": "task-001"}
    recorder.message("architect-main", "checker", "review_request", review)
    sub = recorder.start_sub("checker", "Look at it", task_id="review-001")
    flags = {"tests_passed": True, "type_check_passed": True}
    verdict = {**review, "verdict": "approved", "findings": [], "verification": flags, "summary": "It is good"}
    recorder.finish_sub(sub, verdict)
    recorder.message("checker", "architect-main", "review_result", {**review, "verdict": "approved"})


# -- a whole recording -------------------------------------------------------------------------------------------------


def test_a_recording_is_a_document_without_findings(path: Path) -> None:
    with begin(path) as recorder:
        play(recorder)

    data = written(path)
    assert [] == findings_of(data, path.name)
    assert ("success", "approved", 3) == (
        data["status"],
        data["summary"]["final_verdict"],
        data["summary"]["tool_calls_count"],
    )
    assert [path.name, "2026-03-04-001-mend-the-clock-multi.log.jsonl"] == sorted(os.listdir(path.parent))


def test_while_it_goes_on_the_document_is_there_valid_and_in_progress(path: Path) -> None:
    recorder = begin(path)
    assert ("in_progress", []) == (written(path)["status"], errors_of(written(path)))
    recorder.call("Read")
    recorder.close("failed")


def test_times_come_from_the_clock_unless_they_are_given(path: Path) -> None:
    with begin(path) as recorder:
        early = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
        recorder.call("Read", started_at=early, ended_at="2026-03-04T09:00:02.500Z")
        recorder.call("Grep")

    first, second = written(path)["tool_calls"]
    assert ("2026-03-04T09:00:00.000000Z", 2500) == (first["started_at"], first["duration_ms"])
    assert "2026-03-04T10:00:04.000000Z" == second["started_at"]
    assert "2026-03-04T09:00:00.000000Z" == written(path)["created_at"]


def test_a_call_may_be_begun_and_ended_later(path: Path) -> None:
    with begin(path) as recorder:
        call_id = recorder.begin_call("Bash", {"command": "make test"})
        assert [call_id] == recorder.open_calls
        recorder.end_call(call_id, error="no rule to make target")

    (call,) = written(path)["tool_calls"]
    assert ({"status": "failed", "error": "no rule to make target"}, "action") == (
        call["output"],
        call["tool_category"],
    )


def test_an_exception_says_what_went_wrong(path: Path) -> None:
    with begin(path, user_prompt="") as recorder:
        for error in (ValueError("no such file"), ValueError(), ""):
            recorder.call("Read", error=error)

    outputs = [call["output"] for call in written(path)["tool_calls"]]
    assert ["no such file", "ValueError", ""] == [output["error"] for output in outputs]
    assert {"failed"} == {output["status"] for output in outputs}
    assert [] == errors_of(written(path))


def test_a_task_call_that_was_begun_before_starts_the_sub_session(path: Path) -> None:
    with begin(path) as recorder:
        call_id = recorder.begin_call("Task", {"prompt": "Mend it"}, call_id="toolu_1")
        sub = recorder.start_sub("developer-01", "Mend it", call_id=call_id)
        recorder.finish_sub(sub, "Done")

    data = written(path)
    assert ["toolu_1"] == [call["call_id"] for call in data["tool_calls"]]
    assert (sub, "toolu_1") == (
        data["tool_calls"][0]["subagent_info"]["sub_session_id"],
        data["sub_sessions"][0]["triggered_by_call_id"],
    )
    assert [] == findings_of(data)


def test_a_sub_agent_may_start_another_one(path: Path) -> None:
    with begin(path) as recorder:
        outer = recorder.start_sub("developer-01", "Mend it")
        inner = recorder.start_sub(("finder", "specialist"), "Find it", parent=outer)
        recorder.finish_sub(inner, "Found")
        recorder.finish_sub(outer, "Mended")

    data = written(path)
    assert [] == findings_of(data)
    assert [None, "developer-01"] == [call.get("x_harken_owner") for call in data["tool_calls"]]
    assert outer == data["sub_sessions"][1]["parent_session_id"]
    assert {"agent_id": "finder", "agent_type": "specialist"} == data["collaboration"]["participants"][-1]


def test_outputs_may_be_values_of_the_standard(path: Path) -> None:
    with begin(path, orchestrator=AgentIdentifier(agent_id="lead", agent_type="architect")) as recorder:
        sub = recorder.start_sub("developer-01", "Mend it")
        changes = FileChanges(files_created=[], files_modified=["a.py"], files_deleted=[])
        output = DeveloperOutput(task_id="task-001", status="completed", changes=changes, summary="Done")
        recorder.finish_sub(sub, output)

    assert "Done" == written(path)["sub_sessions"][0]["output"]["summary"]
    assert "implementation_notes" not in written(path)["sub_sessions"][0]["output"]


def test_who_did_all_alone_is_a_single_session(path: Path) -> None:
    with begin(path) as recorder:
        recorder.call("Read")

    assert "single" == written(path)["collaboration"]["mode"]
    assert [] == errors_of(written(path))


def test_in_a_folder_the_document_gets_the_next_free_name(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with begin(tmp_path) as recorder:
            names.append(recorder.path.name)

    assert ["2026-03-04-001-mend-the-clock-multi.json", "2026-03-04-002-mend-the-clock-multi.json"] == names


# -- the end -----------------------------------------------------------------------------------------------------------


def test_an_exception_closes_the_recording_as_failed_and_ends_what_is_open(path: Path) -> None:
    with pytest.raises(RuntimeError), begin(path) as recorder:
        sub = recorder.start_sub("developer-01", "Mend it")
        recorder.begin_call("Bash", {"command": "make"}, sub=sub)
        inner = recorder.start_sub("checker", "Look", parent=sub)
        recorder.begin_call("Read", sub=inner)
        raise RuntimeError("out of tokens")

    data = written(path)
    assert [] == errors_of(data)
    assert "failed" == data["status"]
    assert ["failed", "failed"] == [sub["status"] for sub in data["sub_sessions"]]
    calls = [call for sub in data["sub_sessions"] for call in sub["tool_calls"]]
    assert {"failed"} == {call["output"]["status"] for call in [*calls, *data["tool_calls"]]}


def test_a_success_has_nothing_left_open(path: Path) -> None:
    recorder = begin(path)
    sub = recorder.start_sub("developer-01", "Mend it")
    with pytest.raises(BadRequest, match="'sub-001' is still open"):
        recorder.close("success")
    call_id = recorder.begin_call("Bash", sub=sub)
    with pytest.raises(BadRequest, match="is still open"):
        recorder.finish_sub(sub)
    recorder.end_call(call_id)
    recorder.finish_sub(sub)
    recorder.close("success")

    assert "success" == written(path)["status"]


def test_a_block_that_ends_with_something_open_is_told_and_closed_as_failed(path: Path) -> None:
    with pytest.raises(BadRequest, match="still open"), begin(path) as recorder:
        recorder.start_sub("developer-01", "Mend it")

    assert ("failed", []) == (written(path)["status"], errors_of(written(path)))


def test_what_is_left_in_progress_can_be_gone_on_with(path: Path) -> None:
    recorder = begin(path)
    sub = recorder.start_sub("developer-01", "Mend it")
    call_id = recorder.begin_call("Read", sub=sub)
    recorder.close("in_progress")
    assert [] == errors_of(written(path))

    with MultiAgentRecorder.resume(path) as again:
        assert ([call_id], [sub]) == (again.open_calls[1:], again.open_subs)
        again.end_call(call_id)
        again.finish_sub(sub, "Done")
        again.message("developer-01", "architect-main", "feedback", {"content": "Hello"})

    assert [] == errors_of(written(path))
    with Session(path.with_name(path.name.replace(".json", ".log.jsonl")), readonly=True) as session:
        assert ["architect-main", "developer-01"] == list(session.agents)
        assert [] == session.report


# -- recovery ----------------------------------------------------------------------------------------------------------


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


# -- misuse ------------------------------------------------------------------------------------------------------------


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
            with pytest.raises(Locked):
                attempt()
    with pytest.raises(Conflict, match="holds a recording already"):
        begin(path)


def test_a_file_that_is_there_is_not_overwritten(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(Conflict):
        begin(path)
    assert "mine" == path.read_text()


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


# -- odd values, threads, cost -----------------------------------------------------------------------------------------

HOSTILE = "\x1b[31m\u202e\ud800 \N{SNOWMAN}\x00[x]/../"


def test_every_text_comes_back_as_it_was_given(path: Path) -> None:
    long = "x" * 1_000_000
    with begin(path, user_prompt=long, task_title=HOSTILE, participants=[(HOSTILE, HOSTILE)]) as recorder:
        recorder.call(HOSTILE, {HOSTILE: HOSTILE}, result=HOSTILE, call_id=HOSTILE, category="action")
        sub = recorder.start_sub(HOSTILE, HOSTILE, sub_session_id=HOSTILE, task_id=HOSTILE)
        recorder.sub_call(sub, "Read", {"n": 2**64 - 1, "f": 0.1, "deep": [[[None, True]]]})
        recorder.message(HOSTILE, "architect-main", "feedback", {HOSTILE: [HOSTILE]})
        recorder.finish_sub(sub, HOSTILE)
    data, before = written(path), path.read_bytes()

    assert [] == errors_of(data)
    assert (long, HOSTILE, {HOSTILE: HOSTILE}) == (
        data["user_prompt"],
        data["task_title"],
        data["tool_calls"][0]["input"]["params"],
    )
    assert {"n": 2**64 - 1, "f": 0.1, "deep": [[[None, True]]]} == (
        data["sub_sessions"][0]["tool_calls"][0]["input"]["params"]
    )
    MultiAgentRecorder.recover(path)
    assert before == path.read_bytes()


def test_what_the_program_changes_later_is_not_recorded(path: Path) -> None:
    params = {"files": ["a"]}
    with begin(path) as recorder:
        recorder.call("Read", params)
        params["files"].append("b")

    assert {"files": ["a"]} == written(path)["tool_calls"][0]["input"]["params"]


def test_several_threads_may_record(path: Path) -> None:
    with begin(path) as recorder:
        subs = [recorder.start_sub((f"developer-{n}", "developer"), "work") for n in range(4)]

        def work(sub: str) -> None:
            for _ in range(20):
                recorder.sub_call(sub, "Read")
            recorder.finish_sub(sub)

        threads = [threading.Thread(target=work, args=(sub,)) for sub in subs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    data = written(path)
    assert [20] * 4 == [len(sub["tool_calls"]) for sub in data["sub_sessions"]]
    assert [] == errors_of(data)


def test_no_file_and_no_thread_is_left_open(path: Path) -> None:
    def left() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    before = left()
    with pytest.raises(ZeroDivisionError), begin(path) as recorder:
        recorder.call("Read")
        raise ZeroDivisionError
    with pytest.raises(Conflict):
        begin(path)
    MultiAgentRecorder.recover(path)
    with pytest.raises(Closed):
        MultiAgentRecorder.resume(path)

    assert before == left()


def test_a_long_recording_is_written_few_times(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[Path] = []

    def counted(path: Path, data: bytes, *, replace: bool) -> None:
        times.append(path)
        write_whole(path, data, replace=replace)

    monkeypatch.setattr("harken.capture.writing.write_whole", counted)
    monkeypatch.setattr("harken.capture.writing.AFTER_SECONDS", 1e9)
    with begin(path) as recorder:
        for _ in range(1000):
            recorder.call("Read")

    assert 7 == len(times)  # at the beginning and the end, and after 100, 200, 300, 450 and 675 acts
    assert 1000 == len(written(path)["tool_calls"])


def test_a_message_that_says_more_than_the_task_is_heard(path: Path) -> None:
    with begin(path, participants=["developer-01", "工人"]) as recorder:
        sub = recorder.start_sub("developer-01", "Mend it")
        more = {"task": {"task_id": "task-001", "description": "Mend it by noon"}}
        recorder.message("architect-main", "developer-01", "task_assignment", more)
        recorder.message("工人", "developer-01", "feedback", {"content": "I can help"})
        recorder.finish_sub(sub)

    with Session(path.with_name(path.name.replace(".json", ".log.jsonl")), readonly=True) as session:
        heard = [one["content"] for one in session.transcript("developer-01") if one["role"] == "user"]
        assert "工人" == session.agents["agent_001"].name
    assert ["Mend it", "task_assignment: Mend it by noon", "feedback: I can help"] == heard


def test_the_log_of_another_session_is_not_gone_on_with(path: Path) -> None:
    with Session(path.with_name(path.name.replace(".json", ".log.jsonl"))) as session:
        session.log_agent_created("a", role="root")
        session.log_transcript_entry("a", {"role": "user", "content": "Hello"})

    with pytest.raises(Conflict, match="the log of another session"):
        begin(path)


def test_the_log_is_an_ordinary_session_log(path: Path) -> None:
    with begin(path) as recorder:
        play(recorder)
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))

    with Session(log, readonly=True) as session:
        assert [] == session.report
        assert "architect-main" == session.agents["developer-01"].parent
        assert {"agent_id": "checker", "agent_type": "reviewer"} == session.agents["checker"].attributes
        heard = session.entries("developer-01")
    # The assignment says what the Task call said: it is heard once.
    assert ["Mend it"] == [one["content"] for one in heard if one["role"] == "user"]
    assert all("substance" in one for one in heard if one["role"] == "user")
    assert all(json.loads(line) for line in log.read_bytes().splitlines())
