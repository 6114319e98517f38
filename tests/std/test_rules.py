"""Every rule for session documents, broken once: a rule without a document that breaks it fails here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harken.formats.std.checking.rules import RULES, validate, validate_bytes
from harken.formats.std.document import parse_session
from support.std_documents import call, multi, single

Json = dict[str, Any]
Break = Callable[[Json], object]
SINGLE_NAME, MULTI_NAME = "2026-03-04-001-mend-the-clock.json", "2026-03-04-002-two-hands-multi.json"


def finding(number: int, **more: Any) -> Json:
    return {
        "finding_id": f"f-{number}",
        "severity": "minor",
        "category": "style",
        "file": "src/clock.py",
        "description": "a name could be better",
        **more,
    }


def annotation(number: int, start: str, end: str) -> Json:
    return {
        "annotation_id": f"a-{number}",
        "phase_type": "explore",
        "tool_call_range": {"start_call_id": start, "end_call_id": end},
        "annotated_by": "auto",
        "annotated_at": "2026-03-04T11:00:00Z",
        "confidence": "low",
    }


def full() -> Json:
    """The multi-agent document with everything in it that rules speak of."""
    data = multi()
    data["phase_annotations"] = [annotation(1, "tool-001", "tool-002"), annotation(2, "tool-003", "tool-003")]
    review = data["sub_sessions"][1]["output"]
    review["findings"] = [finding(1), finding(2, location={"file": "src/clock.py", "line_start": 3}, file=None)]
    change = {"priority": "consider", "related_findings": ["f-1"], "description": "another name"}
    review["required_changes"] = [{"change_id": "c-1", **change}, {"change_id": "c-2", **change}]
    data["messages"][1]["reply_to"] = "msg-001"
    data["messages"].insert(1, telling("msg-010", "task_progress", {"task_id": "task-001"}, data))
    for number, message in enumerate(data["messages"]):
        message["sequence_number"] = number
    return data


def telling(name: str, kind: str, payload: object, data: Json) -> Json:
    """A message from the builder to the planner."""
    return {**data["messages"][1], "message_id": name, "message_type": kind, "payload": payload, "reply_to": None}


def put(*path: Any) -> Break:
    """Puts the last word at the place that the others name."""

    def change(data: Json) -> None:
        place: Any = data
        for key in path[:-2]:
            place = place[key]
        place[path[-2]] = path[-1]

    return change


def drop(*path: Any) -> Break:
    def change(data: Json) -> None:
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


def nested(data: Json) -> None:
    """The checker's call is the builder's, but the checker's parent is still the session."""
    data["tool_calls"][2]["x_harken_owner"] = "builder"
    copy = {key: value for key, value in data["tool_calls"][2].items() if key != "x_harken_owner"}
    data["sub_sessions"][0]["tool_calls"].append(copy)


def both_from_one_call(data: Json) -> None:
    """Both sub-sessions name the same call, which names the first; nothing names the second."""
    data["sub_sessions"][1]["triggered_by_call_id"] = "tool-002"
    del data["tool_calls"][2]["subagent_info"]


def parents_of_each_other(data: Json) -> None:
    data["sub_sessions"][0]["parent_session_id"] = "sub-002"
    data["sub_sessions"][1]["parent_session_id"] = "sub-001"


def assigned_three_times(data: Json) -> None:
    for place in (1, 2):
        data["messages"][place].update(data["messages"][0], message_id=f"again-{place}", sequence_number=place)


def phase(**more: Any) -> Json:
    """A phase of generation v2."""
    return {
        "phase_id": "p-1", "phase_type": "explore", "status": "success", "input": {}, "output": {},
        "tool_call_ids": ["tool-001"], "context_used": [], "decisions": [], **more,
    }  # fmt: skip


SUB, OTHER = ("sub_sessions", 0), ("sub_sessions", 1)
REVIEW = (*OTHER, "output")
BREAKS: list[tuple[str, str, Break]] = [
    ("missing-field", "summary", drop("summary")),
    ("missing-field", "sub_sessions[0].tool_calls[0].input", drop(*SUB, "tool_calls", 0, "input")),
    ("missing-advised", "user_prompt", drop("user_prompt")),
    ("missing-advised", "completed_at", put("completed_at", None)),
    ("wrong-type", "tool_calls[0].output.result", put("tool_calls", 0, "output", "result", "text")),
    ("wrong-type", "sub_sessions[0].output", put(*SUB, "output", "done")),
    ("wrong-type", "summary.agents", put("summary", "agents", 3)),
    ("wrong-type", "summary.agents[0]", put("summary", "agents", ["lead"])),
    ("wrong-type", "sub_sessions[0].output.changes.files_created[0]",
     put(*SUB, "output", "changes", "files_created", 0, 3)),
    ("unknown-value", "status", put("status", "completed")),
    ("unknown-value", "messages[1].message_type", put("messages", 1, "message_type", "shouting")),
    ("unknown-value", "summary.agents[0].status", lambda data: data["summary"].update(
        agents=[{**row(data), "status": "success"}])),
    ("open-value", "collaboration.participants[0].agent_type",
     put("collaboration", "participants", 0, "agent_type", "plumber")),
    ("open-value", "messages[1].message_type", put("messages", 1, "message_type", "status_query")),
    ("open-value", "sub_sessions[1].output.findings[0].category", put(*REVIEW, "findings", 0, "category", "test")),
    ("empty-field", "task_title", put("task_title", "")),
    ("empty-field", "tool_calls[0].call_id", put("tool_calls", 0, "call_id", "")),
    ("empty-field", "collaboration.participants[0].agent_id",
     put("collaboration", "participants", 0, "agent_id", "")),
    ("empty-field", "collaboration.orchestrator.agent_id", put("collaboration", "orchestrator", "agent_id", "")),
    ("empty-field", "phase_annotations[0].tool_call_range.end_call_id",
     put("phase_annotations", 0, "tool_call_range", "end_call_id", "")),
    ("empty-field", "sub_sessions[0].triggered_by_call_id", put(*SUB, "triggered_by_call_id", "")),
    ("empty-field", "sub_sessions[0].parent_session_id", put(*SUB, "parent_session_id", "")),
    ("empty-field", "sub_sessions[0].agent.agent_id", put(*SUB, "agent", "agent_id", "")),
    ("empty-field", "sub_sessions[0].task.task_id", put(*SUB, "task", "task_id", "")),
    ("empty-field", "sub_sessions[0].tool_calls[0].call_id", put(*SUB, "tool_calls", 0, "call_id", "")),
    ("empty-field", "sub_sessions[0].output.task_id", put(*SUB, "output", "task_id", "")),
    ("empty-field", "sub_sessions[1].output.findings[0].finding_id", put(*REVIEW, "findings", 0, "finding_id", "")),
    ("empty-field", "sub_sessions[1].output.required_changes[1].change_id",
     put(*REVIEW, "required_changes", 1, "change_id", "")),
    ("empty-field", "messages[0].from_agent.agent_id", put("messages", 0, "from_agent", "agent_id", "")),
    ("empty-field", "messages[3].to_agent.agent_id", put("messages", 3, "to_agent", "agent_id", "")),
    ("empty-field", "summary.agents.architect.agent_id", put("summary", "agents", "architect", "agent_id", "")),
    ("empty-field", "summary.agents.developers[0].agent_id",
     put("summary", "agents", "developers", 0, "agent_id", "")),
    ("empty-field", "summary.agents[0].agent_id", lambda data: data["summary"].update(
        agents=[{**row(data), "agent_id": ""}])),
    ("payload-field", "messages[4].payload.task_id", drop("messages", 4, "payload", "task_id")),
    ("payload-field", "messages[0].payload.task.task_id", put("messages", 0, "payload", "task", {"what": "work"})),
    ("payload-field", "messages[1].payload", put("messages", 1, "payload", "half done")),
    ("old-phase", "phases[0].status", put("phases", [{**phase(), "status": 1}])),
    ("old-phase", "phases[1].phase_type", put("phases", [phase(), phase(phase_type="dance")])),
    ("old-phase", "phases[0].decisions", put("phases", [phase(decisions="none")])),
    ("old-phase", "phases[0].output", lambda data: (put("phases", [phase()])(data), drop("phases", 0, "output")(data))),
    ("old-phase", "phases[0].tool_call_ids[1]", put("phases", [phase(tool_call_ids=["tool-001", "gone"])])),
    ("old-phase", "phases[0]", put("phases", ["explore"])),
    ("finding-place", "sub_sessions[1].output.findings[1]", put(*REVIEW, "findings", 1, "location", None)),
    ("verification", "sub_sessions[1].output.verification.tests_passed",
     drop(*REVIEW, "verification", "tests_passed")),
    ("session-id-form", "session_id", put("session_id", "my session")),
    ("duplicate-id", "sub_sessions[0].tool_calls[0].call_id", put(*SUB, "tool_calls", 0, "call_id", "tool-001")),
    ("duplicate-id", "sub_sessions[1].sub_session_id", put(*OTHER, "sub_session_id", "sub-001")),
    ("duplicate-id", "messages[1].message_id", put("messages", 1, "message_id", "msg-001")),
    ("duplicate-id", "phase_annotations[1].annotation_id", put("phase_annotations", 1, "annotation_id", "a-1")),
    ("duplicate-id", "sub_sessions[1].output.findings[1].finding_id",
     put(*REVIEW, "findings", 1, "finding_id", "f-1")),
    ("duplicate-id", "sub_sessions[1].output.required_changes[1].change_id",
     put(*REVIEW, "required_changes", 1, "change_id", "c-1")),
    ("repeated-task", "sub_sessions[1].task.task_id", put(*OTHER, "task", "task_id", "task-001")),
    ("repeated-agent", "collaboration.participants[2].agent_id",
     lambda data: data["collaboration"]["participants"].append(data["collaboration"]["participants"][0])),
    ("no-sub-session", "sub_sessions", put("sub_sessions", [])),
    ("trigger", "sub_sessions[0].triggered_by_call_id", put(*SUB, "triggered_by_call_id", "tool-999")),
    ("trigger", "sub_sessions[0].triggered_by_call_id", put("tool_calls", 1, "tool_name", "Read")),
    ("unknown-sub-session", "tool_calls[1].subagent_info.sub_session_id",
     put("tool_calls", 1, "subagent_info", "sub_session_id", "sub-009")),
    ("links-disagree", "tool_calls[1].subagent_info.sub_session_id", put(*SUB, "triggered_by_call_id", "tool-003")),
    ("links-disagree", "sub_sessions[1].triggered_by_call_id", both_from_one_call),
    ("link-one-way", "sub_sessions[0].triggered_by_call_id",
     drop("tool_calls", 1, "subagent_info", "sub_session_id")),
    ("task-without-sub-session", "tool_calls[3]",
     lambda data: data["tool_calls"].append(call("tool-004", 200, "Task", "interaction"))),
    ("parent-session", "sub_sessions[0].parent_session_id", put(*SUB, "parent_session_id", "another")),
    ("parent-session", "sub_sessions[0].parent_session_id", put(*SUB, "parent_session_id", "sub-001")),
    ("parent-session", "sub_sessions[1].parent_session_id", nested),
    ("parent-session", "sub_sessions[0].parent_session_id", parents_of_each_other),
    ("parent-session", "sub_sessions[1].parent_session_id", parents_of_each_other),
    ("unlisted-agent", "sub_sessions[1].agent.agent_id", drop("collaboration", "participants", 1)),
    ("range-call", "phase_annotations[0].tool_call_range.start_call_id",
     put("phase_annotations", 0, "tool_call_range", "start_call_id", "tool-000")),
    ("range-order", "phase_annotations[0].tool_call_range",
     put("phase_annotations", 0, "tool_call_range", {"start_call_id": "tool-003", "end_call_id": "tool-001"})),
    ("range-order", "phase_annotations[0].tool_call_range",
     put("phase_annotations", 0, "tool_call_range", {"start_call_id": "tool-002", "end_call_id": "tool-001"})),
    ("unknown-agent", "messages[0].from_agent.agent_id", put("messages", 0, "from_agent", "agent_id", "nobody")),
    ("unknown-agent", "messages[0].to_agent.agent_id", put("messages", 0, "to_agent", "agent_id", "nobody")),
    ("agent-type", "messages[0].to_agent.agent_type", put("messages", 0, "to_agent", "agent_type", "reviewer")),
    ("agent-type", "sub_sessions[0].agent.agent_type", put(*SUB, "agent", "agent_type", "reviewer")),
    ("agent-type", "summary.agents.reviewer.agent_type",
     put("summary", "agents", "reviewer", "agent_type", "architect")),
    ("sequence", "messages[2].sequence_number", put("messages", 2, "sequence_number", 1)),
    ("sequence", "messages[2].sequence_number", put("messages", 2, "sequence_number", 1.0)),
    ("reply", "messages[2].reply_to", put("messages", 2, "reply_to", "msg-999")),
    ("reply", "messages[2].reply_to", put("messages", 2, "reply_to", "msg-002")),
    ("repeated-assignment", "messages[1].payload.task.task_id",
     lambda data: data["messages"][1].update(data["messages"][0], message_id="msg-010")),
    ("completion", "messages[2].payload.task_id", put("messages", 2, "payload", "task_id", "task-009")),
    ("completion", "messages[1].payload.task_id", drop("messages", 0)),
    ("review", "messages[4].payload.review_id", put("messages", 4, "payload", "review_id", "review-009")),
    ("review", "messages[3].payload.review_id", drop("messages", 3)),
    ("unknown-task", "messages[1].payload.task_id", put("messages", 1, "payload", "task_id", "task-009")),
    ("unknown-task", "sub_sessions[1].output.task_id", put(*REVIEW, "task_id", "task-009")),
    ("unknown-task", "messages[1].payload.related_task_id",
     lambda data: data["messages"][1].update(message_type="feedback", payload={"related_task_id": "task-009"})),
    ("unknown-task", "messages[1].payload.target_id",
     lambda data: data["messages"][1].update(message_type="abort", payload={"scope": "task", "target_id": "task-009"})),
    ("output-task", "sub_sessions[0].output.task_id", put(*SUB, "output", "task_id", "task-009")),
    ("unknown-finding", "sub_sessions[1].output.required_changes[0].related_findings[0]",
     put(*REVIEW, "required_changes", 0, "related_findings", 0, "f-9")),
    ("unreadable-time", "created_at", put("created_at", "yesterday")),
    ("unreadable-time", "sub_sessions[0].tool_calls[0].ended_at", put(*SUB, "tool_calls", 0, "ended_at", "10:41")),
    ("unreadable-time", "messages[0].timestamp", put("messages", 0, "timestamp", "2026-02-30T10:00:00Z")),
    ("unreadable-time", "phase_annotations[0].annotated_at", put("phase_annotations", 0, "annotated_at", "")),
    ("time-zone", "created_at", put("created_at", "2026-03-04T10:00:00")),
    ("time-reversed", "tool_calls[0].ended_at", put("tool_calls", 0, "ended_at", "2026-03-04T10:00:04Z")),
    ("time-reversed", "updated_at", put("updated_at", "2026-03-04T09:00:00Z")),
    ("time-reversed", "completed_at", put("completed_at", "2026-03-04T09:00:00Z")),
    ("time-outside", "tool_calls[2].ended_at", put("tool_calls", 2, "ended_at", "2026-03-04T10:22:00Z")),
    ("time-outside", "messages[4].timestamp", put("messages", 4, "timestamp", "2026-03-04T10:22:00Z")),
    ("time-outside", "messages[4].timestamp", put("messages", 4, "timestamp", "2026-03-04T10:05:02Z")),
    ("time-outside", "sub_sessions[0].started_at", put(*SUB, "started_at", "2026-03-04T10:00:28Z")),
    ("time-outside", "sub_sessions[0].tool_calls[0].started_at",
     put(*SUB, "tool_calls", 0, "started_at", "2026-03-04T10:00:20Z")),
    ("outlives-call", "sub_sessions[0].completed_at", put(*SUB, "completed_at", "2026-03-04T10:04:00Z")),
    ("call-order", "tool_calls[1].started_at", lambda data: data["tool_calls"].insert(0, data["tool_calls"].pop(1))),
    ("message-order", "messages[3].timestamp", put("messages", 3, "timestamp", "2026-03-04T10:00:31Z")),
    ("duration", "tool_calls[0].duration_ms", put("tool_calls", 0, "duration_ms", 2001)),
    ("duration", "tool_calls[0].duration_ms", put("tool_calls", 0, "duration_ms", -1)),
    ("count", "summary.tool_calls_count", put("summary", "tool_calls_count", 5)),
    ("count", "summary.errors_encountered", put("summary", "errors_encountered", 1)),
    ("count", "summary.tasks.total", put("summary", "tasks", "total", 2)),
    ("count", "summary.review_iterations", put("summary", "review_iterations", 0)),
    ("count", "summary.agents.developers[0].tool_calls_count",
     put("summary", "agents", "developers", 0, "tool_calls_count", 8)),
    ("count", "tool_calls[1].subagent_info.tool_uses", put("tool_calls", 1, "subagent_info", "tool_uses", 8)),
    ("count", "tool_calls[1].subagent_info.tools_breakdown",
     put("tool_calls", 1, "subagent_info", "tools_breakdown", [{"tool_name": "Read", "count": 2}])),
    ("count", "summary.agent_counts.total", put("summary", "agent_counts",
     {"orchestrators": 1, "workers": 1, "validators": 1, "specialists": 0, "total": 9})),
    ("summary-duration", "summary.total_duration_ms", put("summary", "total_duration_ms", 301001)),
    ("summary-duration", "summary.agents.reviewer.duration_ms",
     put("summary", "agents", "reviewer", "duration_ms", 90000)),
    ("summary-agents", "summary.agents.reviewer.agent_id",
     put("summary", "agents", "reviewer", "agent_id", "somebody")),
    ("summary-agents", "summary.agents", drop("summary", "agents", "reviewer")),
    ("summary-verdict", "summary.final_verdict", put("summary", "final_verdict", "rejected")),
    ("summary-files", "summary", put("summary", "files_created", [])),
]  # fmt: skip
"""The rule, the path that is named, and what breaks it in `full()`."""


def row(data: Json) -> Json:
    found: Json = data["summary"]["agents"]["architect"]
    return found


BYTES: list[tuple[str, bytes]] = [
    ("invalid-json", b'{"session_id": "a",}'),
    ("not-a-session", b"[1, 2]"),
    ("not-a-session", b'{"name": "a program", "version": "1.0"}'),
    ("not-a-session", b'{"name": "CI", "steps": [{"name": "build", "run": "make"}]}'),
    ("not-a-session", b'{"title": "Cake", "steps": ["mix", "bake"]}'),
    ("not-a-session", b'{"title": "Plan", "phases": [{"phase": "1", "tasks": []}]}'),
    ("duplicate-key", json.dumps(single()).replace('"status"', '"status": "failed", "status"', 1).encode()),
]
"""Rules about the text of a file."""
NAMES: list[tuple[str, str, Callable[[], Json]]] = [
    ("file-name", "2026-03-04-009-another-multi.json", multi),
    ("file-suffix", "2026-03-04-002-two-hands.json", lambda: {**multi(), "session_id": "2026-03-04-002-two-hands"}),
    ("file-suffix", "2026-03-04-001-one-multi.json", lambda: {**single(), "session_id": "2026-03-04-001-one-multi"}),
]
"""Rules about a file's name."""
OLD = {"session_id": "s", "created_at": "2026-03-04T10:00:00Z", "steps": [{"step_id": "1", "step_name": "debug_fix"}]}


def rules_of(data: Json, name: str = "") -> set[str]:
    return {one.rule for one in validate(parse_session(data), name)}


def test_every_rule_is_broken_here() -> None:
    broken = {rule for rule, *_ in (*BREAKS, *BYTES, *NAMES)} | {"old-generation", "not-in-generation"}
    assert RULES.keys() == broken


@pytest.mark.parametrize(("rule", "path", "change"), BREAKS, ids=[f"{rule}:{path}" for rule, path, _ in BREAKS])
def test_a_document_that_breaks_a_rule_is_told_so_at_its_place(rule: str, path: str, change: Break) -> None:
    data = full()
    change(data)
    found = [one for one in validate(parse_session(data), "") if one.rule == rule]
    assert path in [one.path for one in found]
    assert {RULES[rule].level} == {one.level for one in found}


@pytest.mark.parametrize(("name", "make"), [(SINGLE_NAME, single), (MULTI_NAME, multi), (MULTI_NAME, full)])
def test_a_document_that_is_right_is_told_nothing(name: str, make: Callable[[], Json]) -> None:
    assert [] == validate_bytes(json.dumps(make()).encode(), name).findings


@pytest.mark.parametrize(("rule", "data"), BYTES)
def test_what_is_wrong_with_the_text_of_a_file_is_told(rule: str, data: bytes) -> None:
    assert {rule} == {one.rule for one in validate_bytes(data).findings}


@pytest.mark.parametrize(("rule", "name", "make"), NAMES)
def test_what_is_wrong_with_the_name_of_a_file_is_told(rule: str, name: str, make: Callable[[], Json]) -> None:
    assert rule in rules_of(make(), name)


def test_an_older_generation_is_read_and_told() -> None:
    findings = validate_bytes(json.dumps(OLD).encode()).findings
    assert "old-generation" in {one.rule for one in findings}
    assert "not-in-generation" in {one.rule for one in findings}
    assert "error" not in {one.level for one in findings}


@pytest.mark.parametrize("name", ["session_id", "created_at"])
def test_what_an_older_generation_had_is_asked_of_it(name: str) -> None:
    lacking = {key: value for key, value in OLD.items() if key != name}
    errors = [one for one in validate(parse_session(lacking), "") if one.level == "error"]
    assert [("missing-field", name)] == [(one.rule, one.path) for one in errors]


WARNINGS = {
    "duplicate-key", "missing-advised", "not-in-generation", "payload-field", "file-name", "file-suffix",
    "repeated-task", "repeated-agent", "link-one-way", "task-without-sub-session", "unlisted-agent", "agent-type",
    "unknown-task", "output-task", "old-phase", "time-outside", "call-order", "message-order", "duration", "count",
    "summary-duration", "summary-agents", "summary-verdict", "summary-files",
}  # fmt: skip
NOTES = {"old-generation", "open-value", "session-id-form", "time-zone", "outlives-call"}


def test_only_what_a_reader_can_do_without_is_no_error() -> None:
    levels = {rule: "warning" if rule in WARNINGS else "note" if rule in NOTES else "error" for rule in RULES}
    assert levels == {rule: one.level for rule, one in RULES.items()}
    assert RULES.keys() >= WARNINGS | NOTES


def test_a_document_with_phases_that_are_right_is_told_no_more_than_its_generation() -> None:
    loop = {"attempt_number": 1, "max_attempts": 3, "is_retry": False}
    data = {**single(), "phases": [phase(loop_info=loop, started_at="2026-03-04T10:00:00Z", duration_ms=1000)]}
    assert {"old-generation"} == rules_of(data)


def test_one_call_that_two_sub_sessions_name_is_told_once() -> None:
    data = full()
    put(*OTHER, "triggered_by_call_id", "tool-002")(data)
    told = [one.path for one in validate(parse_session(data)) if one.rule == "links-disagree"]
    assert ["tool_calls[2].subagent_info.sub_session_id"] == told


def test_a_task_that_is_assigned_again_is_told_with_its_first_assignment() -> None:
    data = full()
    assigned_three_times(data)
    told = [one.message for one in validate(parse_session(data)) if one.rule == "repeated-assignment"]
    assert ['"task-001" was assigned before, by messages[0]'] * 2 == told


def test_errors_may_be_those_of_the_main_agent_or_of_all() -> None:
    data = full()
    for calls in (data["tool_calls"], data["sub_sessions"][0]["tool_calls"]):
        calls[0]["output"]["status"] = "failed"
    for said, is_right in ((0, False), (1, True), (2, True), (3, False)):
        data["summary"]["errors_encountered"] = said
        assert is_right == ("count" not in rules_of(data)), said


def test_a_call_that_goes_on_was_asked_something() -> None:
    data = {**full(), "status": "in_progress"}
    drop("tool_calls", 0, "input")(data)
    assert "missing-field" in rules_of(data)


def test_a_call_that_failed_in_other_words_is_counted_as_failed() -> None:
    data = single()
    data["tool_calls"][0]["output"]["status"] = "error"
    data["summary"]["errors_encountered"] = 1
    assert "count" not in rules_of(data)
    data["summary"]["errors_encountered"] = 2
    assert ["`errors_encountered` is 2, but 1 call failed"] == [
        one.message for one in validate(parse_session(data)) if one.rule == "count"
    ]


def test_a_time_without_a_zone_is_not_said_to_be_behind_one_that_may_be_hours_away() -> None:
    document = single() | {"created_at": "2026-03-04T10:00:00", "updated_at": "2026-03-04T10:05:00+08:00"}

    assert "time-reversed" not in rules_of(document)
    document["updated_at"] = "2026-03-03T10:05:00+08:00"
    assert "time-reversed" in rules_of(document)


def test_agents_without_a_row_are_told_in_the_order_of_the_document() -> None:
    data = multi()
    names = [f"agent-{number}" for number in range(9)]
    data["collaboration"]["participants"] += [{"agent_id": name, "agent_type": "developer"} for name in names]

    told = [one.message for one in validate(parse_session(data)) if one.rule == "summary-agents"]

    assert [f'there is no row for "{name}"' for name in names] == told
