"""`MultiAgentRecorder`: what it is told is in the log before it answers, and in a valid document in the end."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

import harken
from harken.capture import AgentIdentifier, MultiAgentRecorder, writing
from harken.errors import BadRequest, Closed, Conflict
from harken.files import names_in, write_whole
from harken.formats.std.models import DeveloperOutput, FileChanges
from harken.log import Session
from support.std_checks import errors_of, findings_of
from support.std_recording import Ticking, begin, play, written

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


@pytest.mark.parametrize("status", ["success", "failed"])
def test_a_clock_that_was_set_back_turns_nothing_round(path: Path, status: str) -> None:
    clock = Ticking()
    recorder = begin(path, clock=clock)
    name = recorder.begin_call("Bash")
    clock.instant -= 3_600_000_000
    if status == "success":
        recorder.end_call(name, result="done")
    recorder.close(status)

    data = written(path)
    (call,) = data["tool_calls"]
    assert [] == errors_of(data)
    assert (call["started_at"], 0) == (call["ended_at"], call["duration_ms"])
    assert call["ended_at"] == data["completed_at"]


def test_calls_stand_in_the_order_in_which_they_are_said_to_have_begun(path: Path) -> None:
    with begin(path) as recorder:
        for second in (20, 10):
            time = f"2026-03-04T10:00:{second}Z"
            recorder.call("Read", call_id=f"at-{second}", started_at=time, ended_at=time)

    data = written(path)
    assert [] == findings_of(data, path.name)
    assert ["at-10", "at-20"] == [call["call_id"] for call in data["tool_calls"]]


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


def test_an_output_of_no_special_kind_has_all_fields_of_its_type(path: Path) -> None:
    with begin(path) as recorder:
        for output in ("Done", {"summary": "Done"}):
            recorder.finish_sub(recorder.start_sub(("finder", "specialist"), "Find it"), output)

    told = {"output_type": "generic", "status": "completed", "summary": "Done", "data": {}}
    subs = written(path)["sub_sessions"]
    assert [{**told, "task_id": sub["task"]["task_id"]} for sub in subs] == [sub["output"] for sub in subs]


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


@pytest.mark.parametrize("is_done", [False, True])
def test_a_recorder_whose_name_in_a_folder_another_one_took_meanwhile_gets_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    looked = [()]  # at the first look nothing is there yet
    monkeypatch.setattr(writing, "names_in", lambda folder: looked.pop() if looked else names_in(folder))
    other = begin(tmp_path / "2026-03-04-001-mend-the-clock-multi.json")
    if is_done:
        other.close("failed")

    with begin(tmp_path) as recorder:
        assert "2026-03-04-002-mend-the-clock-multi.json" == recorder.path.name


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


def test_what_an_agent_sent_is_part_of_what_it_goes_on_with(path: Path, tmp_path: Path) -> None:
    with begin(path) as recorder:
        recorder.call("Read", {"file_path": "clock.py"}, result="tick")
        recorder.message("architect-main", "developer-01", "feedback", {"message": "Mind the spring."})
    log = path.with_name(path.name.replace(".json", ".log.jsonl"))

    with Session(log, readonly=True) as session:
        words = 'feedback: {"message": "Mind the spring."}'
        assert [words] == [one["content"] for one in session.transcript("architect-main") if "content" in one][2:]
        (heard,) = session.entries("developer-01")
    assert words == heard["content"]
    with harken.open(tmp_path / "store") as repo:
        list(repo.import_sessions([log]))
        (main,) = [row.session for row in repo.sessions() if "/" not in row.session]
        assert 1 == repo.materialize(main, format="anthropic-messages-v1").bytes.decode().count("Mind the spring.")
        assert 1 == repo.materialize(f"{main}/developer-01", format="anthropic-messages-v1").bytes.count(b"Mind the")
