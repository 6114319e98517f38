"""The summary that a document should have, computed from the rest of it."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.std.summary import computed_summary, unknown_durations
from support.std_documents import BUILDER, CHECKER, call, multi, single


def without(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "summary"}


@pytest.mark.parametrize("make", [single, multi])
def test_a_document_that_is_right_has_the_summary_that_is_computed(make: Any) -> None:
    assert make()["summary"] == computed_summary(without(make()))


def test_agents_of_other_types_are_listed() -> None:
    data = multi()
    data["collaboration"]["participants"][0]["agent_type"] = "plumber"
    data["sub_sessions"][0]["agent"]["agent_type"] = "plumber"
    rows = computed_summary(data)["agents"]
    assert ["lead", "builder", "checker"] == [row["agent_id"] for row in rows]


def test_two_reviewers_are_listed() -> None:
    data = multi()
    data["collaboration"]["participants"].append({"agent_id": "second", "agent_type": "reviewer"})
    assert isinstance(computed_summary(data)["agents"], list)


@pytest.mark.parametrize("mark", [{"x_harken_owner": "builder"}, {"x_harken_derived": True}])
def test_a_call_that_the_main_agent_did_not_make_is_not_counted(mark: dict[str, Any]) -> None:
    data = multi()
    data["tool_calls"].append(call("tool-009", 50, "Task", "interaction", **mark))
    assert multi()["summary"] == computed_summary(data)


def test_calls_that_overlap_take_their_time_once() -> None:
    data = multi()
    data["tool_calls"].append(call("tool-004", 31))
    assert 121000 == computed_summary(data)["agents"]["architect"]["duration_ms"]


def test_a_second_attempt_at_a_task_is_not_another_task() -> None:
    data = multi()
    data["sub_sessions"][0]["status"] = "failed"
    data["sub_sessions"].append({**multi()["sub_sessions"][0], "sub_session_id": "sub-003"})
    assert {"total": 1, "completed": 1, "failed": 0} == computed_summary(data)["tasks"]


def test_a_task_that_was_only_assigned_counts_as_one_that_did_not_end() -> None:
    data = multi()
    told = {"message_type": "task_assignment", "payload": {"task": {"task_id": "task-002"}}}
    data["messages"].append(told)
    assert {"total": 2, "completed": 1, "failed": 0} == computed_summary(data)["tasks"]
    data["messages"].append({"message_type": "task_completion", "payload": {"task_id": "task-002", "status": "failed"}})
    assert {"total": 2, "completed": 1, "failed": 1} == computed_summary(data)["tasks"]


def test_a_review_that_was_assigned_as_a_task_is_none() -> None:
    data = multi()
    data["messages"].append({"message_type": "task_assignment", "payload": {"task": {"task_id": "review-001"}}})
    assert 1 == computed_summary(data)["tasks"]["total"]


def test_the_last_verdict_is_the_final_one() -> None:
    data = multi()
    request, result = data["messages"][2], data["messages"][3]
    data["messages"] += [request, {**result, "payload": {**result["payload"], "verdict": "rejected"}}]
    found = computed_summary(data)
    assert ("rejected", 2) == (found["final_verdict"], found["review_iterations"])


def test_without_a_verdict_there_is_no_final_one() -> None:
    data = multi()
    del data["sub_sessions"][1]["output"]
    del data["messages"][3]
    assert "final_verdict" not in computed_summary(data)


def test_without_messages_the_reviews_themselves_are_counted() -> None:
    data = multi()
    data["messages"] = []
    found = computed_summary(data)
    assert (1, "approved") == (found["review_iterations"], found["final_verdict"])
    assert {"total": 1, "completed": 1, "failed": 0} == found["tasks"]


def test_calls_that_failed_are_counted_over_all_agents() -> None:
    data = multi()
    data["tool_calls"][0]["output"]["status"] = "failed"
    data["sub_sessions"][0]["tool_calls"][0]["output"]["status"] = "failed"
    assert 2 == computed_summary(data)["errors_encountered"]


FILES = [
    ("Write", {"file_path": "a"}, "", (["a"], [])),
    ("Write", {"file_path": "a"}, "The file a has been updated.", ([], ["a"])),
    ("NotebookEdit", {"notebook_path": "a"}, "", ([], ["a"])),
    ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n"}, "", (["a"], ["b"])),
    ("shell", {"command": ["apply_patch", "*** Begin Patch\n*** Update File: b\n*** End Patch"]}, "", ([], ["b"])),
    ("apply_patch", {"changes": [{"path": "a", "kind": "add"}, {"path": "b", "kind": "delete"}]}, "", (["a"], [])),
    ("Read", {"file_path": "a"}, "", ([], [])),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "params", "said", "expected"), FILES)
def test_calls_that_write_tell_of_files(tool: str, params: Any, said: str, expected: Any) -> None:
    data = single()
    output = {"status": "success", "result": {"display": said}}
    data["tool_calls"] = [call("tool-001", 5, tool, "action", input={"params": params}, output=output)]
    found = computed_summary(data)
    assert expected == (found["files_created"], found["files_modified"])


def test_a_file_that_was_read_before_is_modified_by_a_write() -> None:
    data = single()
    params = {"input": {"params": {"file_path": "a"}}}
    data["tool_calls"] = [call("tool-001", 5, **params), call("tool-002", 9, "Write", "action", **params)]
    assert ["a"] == computed_summary(data)["files_modified"]


def test_a_call_that_failed_wrote_nothing() -> None:
    data = single()
    data["tool_calls"] = [call("tool-001", 5, "Write", "action", output={"status": "failed"})]
    assert [] == computed_summary(data)["files_created"]


def test_a_session_that_goes_on_has_lasted_until_the_last_instant_that_is_known() -> None:
    data = {**single(), "status": "in_progress"}
    del data["completed_at"]
    assert 21000 == computed_summary(data)["total_duration_ms"]


def test_durations_that_nobody_knows_are_told_apart_from_none() -> None:
    data = multi()
    for key in ("created_at", "completed_at"):
        del data[key]
    for one in (*data["tool_calls"], *data["sub_sessions"], *data["messages"]):
        for key in ("started_at", "completed_at", "timestamp"):
            one.pop(key, None)
    for sub in data["sub_sessions"]:
        del sub["tool_calls"][0]["started_at"]
    agents = ["architect", "developers[0]", "reviewer"]
    expected = ["summary.total_duration_ms", *(f"summary.agents.{name}.duration_ms" for name in agents)]
    assert expected == unknown_durations(data)
    assert 0 == computed_summary(data)["total_duration_ms"]


def test_an_agent_is_at_work_while_any_of_its_sub_sessions_goes_on() -> None:
    data = multi()
    first = data["sub_sessions"][0]
    data["sub_sessions"].append({**first, "sub_session_id": "sub-003"})
    first["status"] = "in_progress"
    assert "in_progress" == computed_summary(data)["agents"]["developers"][0]["status"]


def test_an_agent_is_as_its_last_sub_session_is() -> None:
    data = multi()
    data["sub_sessions"][0]["status"] = "failed"
    rows = computed_summary(data)["agents"]
    assert "failed" == rows["developers"][0]["status"]
    assert BUILDER["agent_id"] == rows["developers"][0]["agent_id"]
    assert CHECKER["agent_id"] == rows["reviewer"]["agent_id"]


ODD: list[Any] = [None, True, 3, -1.5, 10**400, "x", "\ud800", [], [[1]], {}, {"a": None}, [{}], [None]]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_any_value_in_any_place_gives_a_summary(odd: Any) -> None:
    for make in (single, multi):
        for replaced in _replaced(make(), odd):
            assert computed_summary(replaced)["tool_calls_count"] >= 0


def _replaced(value: Any, odd: Any) -> Any:
    """The document with each of its parts replaced in turn."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {**value, key: odd}
            yield from ({**value, key: new} for new in _replaced(inner, odd))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield [*value[:place], odd, *value[place + 1 :]]
            yield from ([*value[:place], new, *value[place + 1 :]] for new in _replaced(inner, odd))
