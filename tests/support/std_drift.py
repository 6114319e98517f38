"""Documents as people and programs really write them: each kind of drift, and what a repair makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.formats.std.document import dumps, loads
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import call, multi, single

Json = dict[str, Any]


def repaired(document: Json, name: str = "") -> tuple[Json, Repaired]:
    answer = repair(dumps(document), name)
    return loads(answer.data), answer


def annotated(**changed: Any) -> Json:
    """A session of five calls with an annotation."""
    document = single()
    document["tool_calls"] = [call(f"tool-00{number}", 5 * number) for number in range(1, 6)]
    document["summary"]["tool_calls_count"] = 5
    annotation = {
        "annotation_id": "phase-1",
        "phase_type": "explore",
        "tool_call_range": {"start_call_id": "tool-001", "end_call_id": "tool-002"},
        "annotated_by": "agent",
        "annotated_at": "2026-03-04T10:02:00Z",
        "confidence": "high",
        "decisions": [{"decision_id": "d-1", "type": "approach", "description": "look first"}],
        "mood": "calm",
    }
    document["phase_annotations"] = [{key: value for key, value in {**annotation, **changed}.items() if value != "-"}]
    return document


def played(**changed: Any) -> Json:
    """A multi-agent session as people write them who play all roles themselves."""
    document = single()
    collaboration = {
        "mode": "multi_agent",
        "pattern": "master_worker",
        "orchestrator": {"agent_id": "architect", "agent_type": "architect"},
        "participants": [{"agent_type": "architect"}, {"agent_type": "developer"}, {"agent_type": "developer"}],
    }
    document["collaboration"] = {key: value for key, value in {**collaboration, **changed}.items() if value != "-"}
    return document


def with_call(**changed: Any) -> Json:
    """A session whose first call is changed."""
    document = single()
    merged = {**document["tool_calls"][0], **changed}
    document["tool_calls"][0] = {key: value for key, value in merged.items() if value != "-"}
    return document


def without(document: Json, *path: str | int) -> Json:
    """The document without what is at a path."""
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return document


def put(document: Json, value: Any, *path: str | int) -> Json:
    """The document with something else at a path."""
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return document


_AT = "2026-03-04T10:02:00Z"


DRIFT: dict[str, tuple[Json, Callable[[Json], Any], Any]] = {
    # kind of drift: a document that has it, what to look at after the repair, what is there then
    "status completed": (put(single(), "completed", "status"), lambda d: d["status"], "success"),
    "status done": (put(single(), "Done", "status"), lambda d: d["status"], "success"),
    "status error": (put(single(), "error", "status"), lambda d: d["status"], "failed"),
    "status in-progress": (put(single(), "in-progress", "status"), lambda d: d["status"], "in_progress"),
    "status in Chinese": (put(single(), "已完成", "status"), lambda d: d["status"], "success"),
    "status cancelled": (
        put(single(), "cancelled", "status"),
        lambda d: (d["status"], d["x_harken_old_status"]),
        ("failed", "cancelled"),
    ),
    "summary as text": (
        put(single(), "All went well.", "summary"),
        lambda d: (d["summary"]["tool_calls_count"], d["summary"]["files_modified"], d["x_harken_old_summary"]),
        (2, ["src/clock.py"], "All went well."),
    ),
    "summary of several agents as text": (
        put(multi(), "All went well.", "summary"),
        lambda d: {**d["summary"], "x_harken_old_summary": d["x_harken_old_summary"]},
        {**multi()["summary"], "x_harken_old_summary": "All went well."},
    ),
    "summary missing": (without(single(), "summary"), lambda d: d["summary"]["total_duration_ms"], 120000),
    "summary without a field": (
        without(put(single(), ["be quick"], "summary", "key_decisions"), "summary", "tool_calls_count"),
        lambda d: (d["summary"]["tool_calls_count"], d["summary"]["key_decisions"]),
        (2, ["be quick"]),
    ),
    "files as objects": (
        put(single(), [{"path": "a.py", "lines": 3}], "summary", "files_created"),
        lambda d: (d["summary"]["files_created"], d["summary"]["x_harken_old_files_created"]),
        (["a.py"], [{"path": "a.py", "lines": 3}]),
    ),
    "errors as a list": (
        put(single(), ["typo"], "summary", "errors_encountered"),
        lambda d: (d["summary"]["errors_encountered"], d["summary"]["x_harken_old_errors_encountered"]),
        (1, ["typo"]),
    ),
    "created_at missing": (
        without(put(single(), "2026-03-04T09:59:00+08:00", "started_at"), "created_at"),
        lambda d: (d["created_at"], d["started_at"]),
        ("2026-03-04T09:59:00+08:00", "2026-03-04T09:59:00+08:00"),
    ),
    "created_at missing, and nothing else says it": (
        without(single(), "created_at"), lambda d: d["created_at"], "2026-03-04T10:00:05Z",
    ),
    "collaboration as text": (
        put(single(), "multi-agent", "collaboration"),
        lambda d: (d["collaboration"]["mode"], d["collaboration"]["x_harken_old_mode"]),
        ("single", "multi_agent"),
    ),
    "participants by their types": (
        played(participants={"architect": {"agent_id": "anna"}, "developer": "writes the code"}),
        lambda d: d["collaboration"]["participants"],
        [
            {"agent_id": "anna", "agent_type": "architect"},
            {"agent_id": "developer", "agent_type": "developer", "description": "writes the code"},
        ],
    ),
    "orchestrator without an id": (
        played(orchestrator={"agent_type": "product_owner"}),
        lambda d: d["collaboration"]["orchestrator"],
        {"agent_type": "product_owner", "agent_id": "product_owner"},
    ),
    "orchestrator without an id, and one of the participants": (
        played(orchestrator={"agent_type": "architect"}),
        lambda d: [d["collaboration"]["orchestrator"]["agent_id"], d["collaboration"]["participants"][0]["agent_id"]],
        ["architect", "architect"],
    ),
    "orchestrator without an id, of a type that several have": (
        played(orchestrator={"role": "developer"}),
        lambda d: (d["collaboration"]["orchestrator"]["agent_id"], d["collaboration"]["participants"][1]["agent_id"]),
        ("developer", "developer-1"),
    ),
    "orchestrator of which nothing is said": (
        played(orchestrator={}),
        lambda d: d["collaboration"]["orchestrator"],
        {"agent_id": "architect", "agent_type": "architect"},
    ),
    "phase in Chinese": (
        annotated(phase_type="验证阶段"), lambda d: d["phase_annotations"][0]["phase_type"], "verify",
    ),
    "source under another name": (
        annotated(context_used=[{"path": "CLAUDE.md", "relevance": "high"}]),
        lambda d: d["phase_annotations"][0]["context_used"][0]["type"],
        "claude_md",
    ),
    "agent as text": (put(single(), "some-model", "agent"), lambda d: d["agent"], {"model_id": "some-model"}),
    "result as text": (
        with_call(output={"status": "success", "result": "found it"}),
        lambda d: d["tool_calls"][0]["output"],
        {"status": "success", "result": {"display": "found it"}},
    ),
    "output status error": (
        with_call(output={"status": "error"}), lambda d: d["tool_calls"][0]["output"], {"status": "failed"},
    ),
    "output as text": (
        with_call(output="found it"),
        lambda d: d["tool_calls"][0]["output"],
        {"result": {"display": "found it"}, "status": "success"},
    ),
    "contribution as text": (
        with_call(context_contribution="what it is"),
        lambda d: d["tool_calls"][0]["context_contribution"],
        {"type": "file_content", "summary": "what it is"},
    ),
    "contribution without summary": (
        with_call(context_contribution={"type": "code_analysis", "lines": 7}),
        lambda d: d["tool_calls"][0]["context_contribution"],
        {"type": "code_analysis", "lines": 7, "summary": "what tool-001 found"},
    ),
    "input without params": (
        with_call(input={"file_path": "a.py", "description": "look"}),
        lambda d: d["tool_calls"][0]["input"],
        {"description": "look", "params": {"file_path": "a.py"}},
    ),
    "a category nobody knows": (
        with_call(tool_category="analysis"),
        lambda d: (d["tool_calls"][0]["tool_category"], d["tool_calls"][0]["x_harken_old_tool_category"]),
        ("perception", "analysis"),
    ),
    "a call without id": (with_call(call_id="-"), lambda d: d["tool_calls"][0]["call_id"], "tool-001"),
    "an empty id": (with_call(call_id=""), lambda d: d["tool_calls"][0]["call_id"], "tool-001"),
    "an empty title": (
        put(single(), "", "task_title"), lambda d: d["task_title"], "The clock is an hour late, mend it.",
    ),
    "a call without times": (
        with_call(started_at="-", ended_at="-", duration_ms="-"),
        lambda d: [d["tool_calls"][0][key] for key in ("started_at", "ended_at", "duration_ms")],
        ["2026-03-04T10:00:00Z", "2026-03-04T10:00:00Z", 0],
    ),
    "duration as text": (with_call(duration_ms="1.5s"), lambda d: d["tool_calls"][0]["duration_ms"], 1500),
    "ids as numbers": (with_call(call_id=7), lambda d: d["tool_calls"][0]["call_id"], "7"),
    "range {start, end}": (
        annotated(tool_call_range={"start": "tool-002", "end": "tool-004", "note": "x"}),
        lambda d: list(d["phase_annotations"][0]["tool_call_range"].items()),
        [("start_call_id", "tool-002"), ("end_call_id", "tool-004"), ("note", "x")],
    ),
    "range of one id": (
        annotated(tool_call_range=["tool-003"]),
        lambda d: d["phase_annotations"][0]["tool_call_range"],
        {"start_call_id": "tool-003", "end_call_id": "tool-003"},
    ),
    "range of two ids": (
        annotated(tool_call_range=["tool-001", "tool-004"]),
        lambda d: d["phase_annotations"][0]["tool_call_range"],
        {"start_call_id": "tool-001", "end_call_id": "tool-004"},
    ),
    "range as text": (
        annotated(tool_call_range="tool-001 - tool-003"),
        lambda d: d["phase_annotations"][0]["tool_call_range"],
        {"start_call_id": "tool-001", "end_call_id": "tool-003"},
    ),
    "range as a list with holes": (
        annotated(tool_call_range=["tool-001", "tool-002", "tool-004", "tool-005"]),
        lambda d: [
            (one["annotation_id"], *one["tool_call_range"].values(), one["mood"], "decisions" in one)
            for one in d["phase_annotations"]
        ],
        [("phase-1", "tool-001", "tool-002", "calm", True), ("phase-1-2", "tool-004", "tool-005", "calm", False)],
    ),
    "range the wrong way round": (
        annotated(tool_call_range={"start_call_id": "tool-004", "end_call_id": "tool-002"}),
        lambda d: d["phase_annotations"][0]["tool_call_range"],
        {"start_call_id": "tool-002", "end_call_id": "tool-004"},
    ),
    "range beside": (
        annotated(tool_call_range="-", tool_call_ids=["tool-002", "tool-003", "tool-004"]),
        lambda d: d["phase_annotations"][0]["tool_call_range"],
        {"start_call_id": "tool-002", "end_call_id": "tool-004"},
    ),
    "annotated_at missing": (
        annotated(annotated_at="-"), lambda d: d["phase_annotations"][0]["annotated_at"], _AT,
    ),
    "a phase nobody knows": (
        annotated(phase_type="reflection"),
        lambda d: [d["phase_annotations"][0][key] for key in ("phase_type", "x_harken_old_phase_type")],
        ["unclassified", "reflection"],
    ),
    "decisions and sources as texts": (
        annotated(decisions=["look first"], context_used=["docs/specs/a.md"]),
        lambda d: [d["phase_annotations"][0][key] for key in ("decisions", "context_used")],
        [
            [{"description": "look first", "decision_id": "decision-001", "type": "approach"}],
            [{"source": "docs/specs/a.md", "type": "spec", "relevance": "medium"}],
        ],
    ),
    "tool uses missing": (
        without(multi(), "tool_calls", 1, "subagent_info", "tool_uses"),
        lambda d: d["tool_calls"][1]["subagent_info"]["tool_uses"],
        1,
    ),
    "played by one": (
        played(),
        lambda d: (
            d["collaboration"]["mode"], d["collaboration"]["x_harken_old_mode"], d["sub_sessions"], d["messages"],
            [one["agent_id"] for one in d["collaboration"]["participants"]],
        ),
        ("single", "multi_agent", [], [], ["architect", "developer-1", "developer-2"]),
    ),
    "orchestrator missing": (
        played(orchestrator="-"),
        lambda d: d["collaboration"]["orchestrator"],
        {"agent_id": "architect", "agent_type": "architect"},
    ),
    "orchestrator as text": (
        played(orchestrator="developer", participants=[{"agent_id": "d", "agent_type": "developer"}]),
        lambda d: d["collaboration"]["orchestrator"],
        {"agent_id": "d", "agent_type": "developer"},
    ),
    "participants as texts": (
        played(participants=["developer", "tester"]),
        lambda d: d["collaboration"]["participants"][1],
        {"agent_id": "tester", "agent_type": "tester"},
    ),
    "participants missing": (
        without(multi(), "collaboration", "participants"),
        lambda d: [one["agent_id"] for one in d["collaboration"]["participants"]],
        ["builder", "checker"],
    ),
    "participants missing, and an agent": (
        without(without(multi(), "collaboration", "participants"), "sub_sessions", 0, "agent"),
        lambda d: d["sub_sessions"][0]["agent"],
        {"agent_id": "builder", "agent_type": "developer"},
    ),
    "pattern missing": (played(pattern="-"), lambda d: d["collaboration"]["pattern"], "master_worker"),
    "mode multi-agent": (
        put(multi(), "multi-agent", "collaboration", "mode"), lambda d: d["collaboration"]["mode"], "multi_agent",
    ),
    "messages missing": (without(multi(), "messages"), lambda d: d["messages"], []),
    "rows without duration and status": (
        without(
            without(multi(), "summary", "agents", "developers", 0, "duration_ms"),
            "summary", "agents", "developers", 0, "status",
        ),
        lambda d: [d["summary"]["agents"]["developers"][0][key] for key in ("duration_ms", "status")],
        [60000, "completed"],
    ),
    "summary of several agents without their part": (
        without(multi(), "summary", "tasks"),
        lambda d: d["summary"]["tasks"],
        {"total": 1, "completed": 1, "failed": 0},
    ),
    "another tool than Task": (
        put(multi(), "Agent", "tool_calls", 1, "tool_name"),
        lambda d: [d["tool_calls"][1][key] for key in ("tool_name", "x_harken_name")],
        ["Task", "Agent"],
    ),
    "parent of another name": (
        put(multi(), "elsewhere", "sub_sessions", 0, "parent_session_id"),
        lambda d: d["sub_sessions"][0]["parent_session_id"],
        "2026-03-04-002-two-hands-multi",
    ),
    "a sub-session's agent that is not listed": (
        put(multi(), [{"agent_id": "builder", "agent_type": "developer"}], "collaboration", "participants"),
        lambda d: [one["agent_id"] for one in d["collaboration"]["participants"]],
        ["builder", "checker"],
    ),
    "a sub-session without priority and link": (
        without(without(multi(), "sub_sessions", 0, "task", "priority"), "sub_sessions", 0, "triggered_by_call_id"),
        lambda d: (d["sub_sessions"][0]["task"]["priority"], d["sub_sessions"][0]["triggered_by_call_id"]),
        ("medium", "tool-002"),
    ),
    "a sub-agent's Task call that is listed twice": (
        put(
            put(multi(), [multi()["tool_calls"][2]], "sub_sessions", 0, "tool_calls"),
            "sub-001", "sub_sessions", 1, "parent_session_id",
        ),
        lambda d: d["tool_calls"][2]["x_harken_owner"],
        "builder",
    ),
    "speakers as texts": (
        put(multi(), "lead", "messages", 0, "from_agent"),
        lambda d: d["messages"][0]["from_agent"],
        {"agent_id": "lead", "agent_type": "architect"},
    ),
    "findings in words": (
        put(multi(), ["src/clock.py:7 is wrong"], "sub_sessions", 1, "output", "findings"),
        lambda d: [(one["file"], one["line"]) for one in d["sub_sessions"][1]["output"]["findings"]],
        [("src/clock.py", 7)],
    ),
    "time with slashes": (
        put(single(), "2026/3/4 10:02:00", "completed_at"), lambda d: d["completed_at"], "2026-03-04T10:02:00",
    ),
    "time in seconds": (put(single(), 1772618400, "created_at"), lambda d: d["created_at"], "2026-03-04T10:00:00Z"),
    "time as in mail": (
        put(single(), "Wed, 04 Mar 2026 10:02:00 GMT", "completed_at"), lambda d: d["completed_at"], _AT,
    ),
}  # fmt: skip
