"""What other programs write of calls, tasks and times in places of their own is read by an import, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Event, Prompt, Response, ToolCall, ToolResult
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import Repaired, repair
from harken.formats.std.spellings import known_time
from harken.formats.std.summary import computed_summary
from support.std_documents import Json, multi, single


def told(document: Json) -> list[Event]:
    return list(events_of(json.dumps(document).encode()))


def with_call(**fields: Any) -> Json:
    """A document with one call that has these fields; one that is None is left out."""
    document = single()
    call = {**document["tool_calls"][0], **fields}
    document["tool_calls"] = [{key: value for key, value in call.items() if value is not None}]
    return document


def repaired(document: Json) -> Repaired:
    return repair(json.dumps(document).encode(), f"{document['session_id']}.json")


def the_call(document: Json) -> ToolCall:
    return next(event for event in told(document) if isinstance(event, ToolCall))


def results(document: Json) -> list[tuple[str, bool]]:
    return [(event.output, event.is_error) for event in told(document) if isinstance(event, ToolResult)]


def exported(document: Json) -> Json:
    return document_of(told(document), SessionFacts()).document.data


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"params": {}, "raw_command": "npm test"}, {"command": "npm test"}),
        ({"params": None, "raw_command": "npm test"}, {"command": "npm test"}),
        ({"params": {"timeout": 5}, "raw_command": "npm test"}, {"timeout": 5, "command": "npm test"}),
        ({"params": {"command": "make"}, "raw_command": "npm test"}, {"command": "make"}),
        ({"params": {}, "description": "Look at the clock"}, {"description": "Look at the clock"}),
        ({"params": {"timeout": 5}, "description": "Look at the clock"}, {"timeout": 5}),
        ({"params": {}}, {}),
    ],
)
def test_what_a_call_was_asked_stands_beside_its_params(given: Json, expected: Json) -> None:
    assert expected == json.loads(the_call(with_call(tool_name="Bash", input=given)).input)


def test_an_export_has_params_and_command_in_the_places_that_they_had() -> None:
    given = {"params": {"timeout": 5}, "raw_command": "npm test", "description": "Run the tests"}
    document = with_call(tool_name="Bash", tool_category="action", input=given)

    assert given == exported(document)["tool_calls"][0]["input"]


def test_params_that_stand_in_the_call_itself_are_read() -> None:
    document = with_call(input=None, arguments={"file_path": "clock.py"})

    assert {"file_path": "clock.py"} == json.loads(the_call(document).input)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "c-1", "tool": "shell", "args": {"command": "ls"}},
        {"tool_use_id": "c-1", "name": "shell", "parameters": {"command": "ls"}},
        {"id": "c-1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}},
    ],
)
def test_a_call_under_other_names(fields: Json) -> None:
    call = the_call(with_call(call_id=None, tool_name=None, input=None, **fields))

    assert ("c-1", "shell", {"command": "ls"}) == (call.id, call.name, json.loads(call.input))


# -- what came of a call -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"status": "success", "stdout": "42 passed"}, ("42 passed", False)),
        ({"status": "success", "summary": "three files", "truncated": True}, ("three files", False)),
        ({"status": "success", "lines": 3, "text": "abc"}, ('{"lines":3,"text":"abc"}', False)),
        ({"status": "failed", "error": "no such file", "stderr": "cat: x"}, ("no such file\ncat: x", True)),
        ({"success": False, "message": "no such file"}, ("no such file", True)),
        ({"stdout": "1 failed", "exit_code": 1}, ("1 failed", True)),
        ({"stdout": "all well", "exit_code": 0}, ("all well", False)),
        ({"status": "success", "exit_code": 1, "result": "1 failed"}, ("1 failed", False)),
        ({"status": False, "result": "1 failed"}, ("1 failed", True)),
        ({"status": "success", "x_harken_old_status": "done"}, ("", False)),
        ({"status": "success", "result": {"display": ""}, "stdout": "more"}, ("", False)),
    ],
)
def test_the_words_of_an_output_without_a_result(output: Json, expected: tuple[str, bool]) -> None:
    assert [expected] == results(with_call(output=output))


@pytest.mark.parametrize("word", ["失敗", "エラー", "fehlgeschlagen", "Fallido", "échoué", "falhou", "ошибка", "실패"])
def test_a_call_that_failed_in_another_language(word: str) -> None:
    assert [("abc", True)] == results(with_call(output={"status": word, "result": "abc"}))


@pytest.mark.parametrize("word", ["完了", "erledigt", "completado", "terminé", "concluído", "выполнено", "완료"])
def test_a_status_in_another_language_is_repaired(word: str) -> None:
    mended = repaired({**single(), "status": word})

    assert mended.is_valid
    assert "success" == json.loads(mended.data)["status"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "success", "result": "abc"}, [("abc", False)]),
        ({"error": "no such file"}, [("no such file", True)]),
        ({"status": "failed"}, [("", True)]),
        ({"status": "running"}, []),
        ({}, []),
    ],
)
def test_an_output_that_stands_in_the_call_itself(fields: Json, expected: list[tuple[str, bool]]) -> None:
    assert expected == results(with_call(output=None, **fields))


def test_an_export_of_other_words_has_them_as_its_result_too() -> None:
    document = with_call(output={"status": "success", "stdout": "42 passed"})
    once = exported(document)["tool_calls"][0]["output"]

    assert {"status": "success", "stdout": "42 passed", "result": {"display": "42 passed"}} == once


# -- times -------------------------------------------------------------------------------------------------------------

_BEGAN, _ENDED = "2026-03-04T10:00:05Z", "2026-03-04T10:00:07Z"


@pytest.mark.parametrize(
    "fields",
    [
        {"started_at": _BEGAN, "ended_at": None, "duration_ms": "2000"},
        {"started_at": _BEGAN, "ended_at": None, "duration_ms": "2s"},
        {"started_at": None, "ended_at": _ENDED, "duration_ms": "2000"},
        {"started_at": _BEGAN, "ended_at": None, "duration_ms": None, "duration": "2s"},
        {"started_at": _BEGAN, "ended_at": "", "duration_ms": 2000},
        {"started_at": _BEGAN, "ended_at": "N/A", "duration_ms": 2000},
        {"started_at": "", "ended_at": _ENDED, "duration_ms": 2000},
        {"started_at": 1772618405, "ended_at": 1772618407000},
        {"started_at": "2026-03-04 10:00:05 UTC", "ended_at": "2026/03/04 10:00:07"},
        {"started_at": None, "ended_at": None, "start_time": _BEGAN, "end_time": _ENDED},
        {"started_at": None, "ended_at": None, "duration_ms": 2000, "timestamp": 1772618405000},
    ],
)
def test_the_times_of_a_call_in_other_words(fields: Json) -> None:
    expected = with_call(started_at=_BEGAN, ended_at=_ENDED)
    document = with_call(**fields)
    mended = repaired(document)

    assert mended.is_valid
    assert times(expected) == times(document) == times(json.loads(mended.data))


def times(document: Json) -> list[int | None]:
    return [event.time for event in told(document) if isinstance(event, ToolCall | ToolResult)]


@pytest.mark.parametrize(
    "fields",
    [
        {"started_at": "9999-12-31T00:00:00Z", "ended_at": None, "duration_ms": 900_000_000_000},
        {"started_at": None, "ended_at": "0001-01-01T00:00:00Z", "duration_ms": 900_000_000_000},
    ],
)
def test_a_time_that_no_calendar_has_is_not_told(fields: Json) -> None:
    document = with_call(**fields)

    assert None in times(document)
    assert exported(document)


def test_a_session_in_seconds_since_1970_has_its_times() -> None:
    document = multi()
    expected = {event.message_id: event.time for event in told(document)}
    assert ["2026-03-04T10:00:00Z", "2026-03-04T10:00:30Z"] == [
        document["created_at"],
        document["messages"][0]["timestamp"],
    ]
    document["created_at"], document["messages"][0]["timestamp"] = 1772618400, 1772618430

    assert expected.items() <= {event.message_id: event.time for event in told(document)}.items()


# -- tasks and answers -------------------------------------------------------------------------------------------------


def conversation(document: Json) -> list[tuple[str, str, str]]:
    return [(one.kind, one.agent_id, one.content) for one in told(document) if isinstance(one, Prompt | Response)]


@pytest.mark.parametrize("key", ["title", "task_description", "prompt"])
def test_what_a_sub_agent_was_given_to_do_in_other_words(key: str) -> None:
    document = multi()
    expected = conversation(document)
    document["sub_sessions"][0]["task"] = {"id": "task-001", key: "the work of sub-001"}

    assert expected == conversation(document)


@pytest.mark.parametrize("key", ["", "result", "message", "content"])
def test_what_a_sub_agent_answered_in_other_words(key: str) -> None:
    document = multi()
    expected = conversation(document)
    words = document["sub_sessions"][0]["output"]["summary"]
    document["sub_sessions"][0]["output"] = {key: words} if key else words

    assert expected == conversation(document)


# -- repair ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [{"summary": "done"}, {"result": "done"}, {"status": "completed", "notes": "x"}])
def test_an_output_of_a_developer_without_changes_is_a_generic_one(output: Json) -> None:
    document = multi()
    document["sub_sessions"][0]["output"] = output
    mended = repaired(document)

    assert mended.is_valid
    assert "generic" == json.loads(mended.data)["sub_sessions"][0]["output"]["output_type"]
    assert any(one.path.endswith("output.output_type") and one.derived for one in mended.changes)


def test_files_that_stand_in_the_output_itself_are_its_changes() -> None:
    document = multi()
    document["sub_sessions"][0]["output"] = {"summary": "done", "files_created": ["a.py"], "files_deleted": []}
    mended = repaired(document)

    assert mended.is_valid
    expected = {"files_created": ["a.py"], "files_modified": [], "files_deleted": []}
    assert expected == json.loads(mended.data)["sub_sessions"][0]["output"]["changes"]


@pytest.mark.parametrize("said", ["", "N/A", "unknown", "-"])
def test_a_time_that_says_nothing_is_as_good_as_missing(said: str) -> None:
    document = multi()
    document["updated_at"] = said
    document["sub_sessions"][0]["completed_at"] = said
    mended = repaired(document)

    assert mended.is_valid
    assert "completed_at" not in json.loads(mended.data)["sub_sessions"][0]


def test_a_task_does_not_get_an_empty_id_from_its_output() -> None:
    document = multi()
    del document["sub_sessions"][0]["task"]
    document["sub_sessions"][0]["output"]["task_id"] = ""
    mended = repaired(document)
    task = json.loads(mended.data)["sub_sessions"][0]

    assert task["task"]["task_id"]
    assert task["task"]["task_id"] == task["output"]["task_id"]
    assert not repair(mended.data, f"{document['session_id']}.json").changes


@pytest.mark.parametrize("said", ["-", "", 0, True, 1e300, [], "N/A"])
def test_what_is_no_time_under_another_name_is_not_taken_for_one(said: Any) -> None:
    document = multi()
    del document["created_at"], document["messages"][0]["timestamp"], document["sub_sessions"][0]["started_at"]
    document["started_at"] = document["messages"][0]["time"] = document["sub_sessions"][0]["start_time"] = said
    document["tool_calls"][0] = {**document["tool_calls"][0], "started_at": None, "timestamp": said}
    mended = repaired(document)

    assert mended.is_valid
    assert not repair(mended.data, f"{document['session_id']}.json").changes


@pytest.mark.parametrize("key", ["ended_at", "end_time", "finished_at"])
def test_the_end_of_a_session_and_of_a_sub_session_under_another_name(key: str) -> None:
    document = multi()
    expected = {event.message_id: event.time for event in told(document)}
    total = computed_summary(document)
    for part in (document, *document["sub_sessions"]):
        part[key] = part.pop("completed_at")

    assert expected == {event.message_id: event.time for event in told(document) if event.message_id in expected}
    assert total == computed_summary(document)
    again = exported(document)
    assert all(sub["completed_at"] for sub in again["sub_sessions"])


@pytest.mark.parametrize("more", [{"sub_session_id": "sub-001"}, {"tokens_used": 15000}, {"cost_usd": 0.1}, {"x": "n"}])
def test_what_stands_beside_the_status_is_not_taken_for_the_answer(more: Json) -> None:
    """The answer of a sub-agent fills an empty result, and would not where there are words."""
    assert [("", False)] == results(with_call(output={"status": "success", **more}))


@pytest.mark.parametrize("more", [{"error_code": "ENOENT"}, {"retryable": False, "code": 403}])
def test_an_error_stays_as_it_was_beside_what_else_is_said_of_it(more: Json) -> None:
    output = {"status": "failed", "error": "no such file", **more}
    assert [("no such file", True)] == results(with_call(output=output))


@pytest.mark.parametrize(
    ("spelled", "time"),
    [
        ("Wed Mar 04 2026 18:00:00 GMT+0800 (China Standard Time)", "2026-03-04T18:00:00+08:00"),
        ("Wed, 04 Mar 2026 10:00:00 GMT", "2026-03-04T10:00:00Z"),
        ("Mar 4, 2026, 10:00:00 PM", None),
        ("4 Mar 2026 10:00 pm", None),
        ("Wed Mar 04 10:00:00 CST 2026", None),
        ("Wed, 04 Mar 2026 10:00:00 CET", None),
    ],
)
def test_a_time_in_words_is_read_where_it_has_one_reading(spelled: str, time: str | None) -> None:
    assert time == known_time(spelled)
