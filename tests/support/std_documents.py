"""Documents that satisfy the standards, to be broken one way at a time."""

from __future__ import annotations

from typing import Any

from harken.formats.std.summary import computed_summary

Json = dict[str, Any]

PLANNER: Json = {"agent_id": "lead", "agent_type": "architect"}
BUILDER: Json = {"agent_id": "builder", "agent_type": "developer"}
CHECKER: Json = {"agent_id": "checker", "agent_type": "reviewer"}


def call(name: str, second: int, tool: str = "Read", category: str = "perception", **more: Any) -> Json:
    """A call of one second, `second` seconds after ten o'clock."""
    minute, start = divmod(second, 60)
    return {
        "call_id": name,
        "tool_name": tool,
        "tool_category": category,
        "started_at": f"2026-03-04T10:{minute:02}:{start:02}Z",
        "ended_at": f"2026-03-04T10:{(second + 1) // 60:02}:{(second + 1) % 60:02}Z",
        "duration_ms": 1000,
        "input": {"params": {"file_path": f"src/{name}.py"}},
        "output": {"status": "success", "result": {"display": f"what {name} found"}},
        **more,
    }


def single() -> Json:
    """A session of one agent."""
    return {
        "session_id": "2026-03-04-001-mend-the-clock",
        "task_title": "Mend the clock",
        "user_prompt": "The clock is an hour late, mend it.",
        "created_at": "2026-03-04T10:00:00Z",
        "completed_at": "2026-03-04T10:02:00Z",
        "status": "success",
        "agent": {"model_id": "claude-sonnet-4-5"},
        "tool_calls": [
            call("tool-001", 5),
            call("tool-002", 20, "Edit", "action", input={"params": {"file_path": "src/clock.py"}}),
        ],
        "summary": {
            "total_duration_ms": 120000,
            "tool_calls_count": 2,
            "files_created": [],
            "files_modified": ["src/clock.py"],
        },
    }


def task_call(name: str, second: int, sub: str, kind: str) -> Json:
    """A `Task` call of a minute that starts a sub-session."""
    return call(
        name,
        second,
        "Task",
        "interaction",
        ended_at=f"2026-03-04T10:{(second + 60) // 60:02}:{(second + 60) % 60:02}Z",
        duration_ms=60000,
        input={"params": {"subagent_type": kind, "prompt": f"the work of {sub}"}},
        subagent_info={"subagent_type": kind, "sub_session_id": sub, "tool_uses": 1},
    )


def sub_session(name: str, agent: Json, trigger: str, task: str, second: int, work: Json, output: Json) -> Json:
    """A sub-session of a minute with one call."""
    return {
        "sub_session_id": name,
        "parent_session_id": "2026-03-04-002-two-hands-multi",
        "agent": dict(agent),
        "triggered_by_call_id": trigger,
        "task": {"task_id": task, "description": f"the work of {name}", "priority": "medium"},
        "started_at": f"2026-03-04T10:{second // 60:02}:{second % 60:02}Z",
        "completed_at": f"2026-03-04T10:{(second + 60) // 60:02}:{(second + 60) % 60:02}Z",
        "status": "success",
        "tool_calls": [work],
        "output": output,
    }


def message(number: int, second: int, sender: Json, hearer: Json, kind: str, payload: Json) -> Json:
    """What one agent tells another, `second` seconds after ten o'clock."""
    return {
        "message_id": f"msg-{number:03}",
        "timestamp": f"2026-03-04T10:{second // 60:02}:{second % 60:02}Z",
        "sequence_number": number,
        "from_agent": dict(sender),
        "to_agent": dict(hearer),
        "message_type": kind,
        "payload": payload,
    }


def multi() -> Json:
    """A session in which one agent has work done by a second, and has it reviewed by a third."""
    return {
        "session_id": "2026-03-04-002-two-hands-multi",
        "task_title": "Two hands",
        "user_prompt": "Have the clock mended, and have it checked.",
        "created_at": "2026-03-04T10:00:00Z",
        "completed_at": "2026-03-04T10:05:00Z",
        "status": "success",
        "agent": {"model_id": "claude-opus-4-5"},
        "collaboration": {
            "mode": "multi_agent",
            "pattern": "master_worker",
            "orchestrator": dict(PLANNER),
            "participants": [dict(BUILDER), dict(CHECKER)],
        },
        "tool_calls": [
            call("tool-001", 5),
            task_call("tool-002", 30, "sub-001", "developer"),
            task_call("tool-003", 120, "sub-002", "reviewer"),
        ],
        "sub_sessions": [
            sub_session(
                "sub-001", BUILDER, "tool-002", "task-001", 30,
                call("b-001", 40, "Write", "action", input={"params": {"file_path": "src/clock.py"}}),
                {
                    "task_id": "task-001",
                    "status": "completed",
                    "changes": {"files_created": [{"path": "src/clock.py"}], "files_modified": [], "files_deleted": []},
                    "summary": "The clock is right.",
                },
            ),
            sub_session(
                "sub-002", CHECKER, "tool-003", "review-001", 120,
                call("c-001", 130),
                {
                    "review_id": "review-001",
                    "task_id": "task-001",
                    "verdict": "approved",
                    "findings": [],
                    "verification": {"tests_passed": True, "type_check_passed": True},
                    "summary": "It is.",
                },
            ),
        ],
        "messages": [
            message(1, 30, PLANNER, BUILDER, "task_assignment", {"task": {"task_id": "task-001"}}),
            message(2, 90, BUILDER, PLANNER, "task_completion", {"task_id": "task-001", "status": "completed"}),
            message(3, 120, PLANNER, CHECKER, "review_request", {"review_id": "review-001", "task_id": "task-001"}),
            message(
                4, 180, CHECKER, PLANNER, "review_result",
                {"review_id": "review-001", "task_id": "task-001", "verdict": "approved"},
            ),
        ],
        "summary": {
            "total_duration_ms": 300000,
            "tool_calls_count": 3,
            "files_created": ["src/clock.py"],
            "files_modified": [],
            "agents": {
                "architect": {**PLANNER, "tool_calls_count": 3, "duration_ms": 121000, "status": "completed"},
                "developers": [{**BUILDER, "tool_calls_count": 1, "duration_ms": 60000, "status": "completed"}],
                "reviewer": {**CHECKER, "tool_calls_count": 1, "duration_ms": 60000, "status": "completed"},
            },
            "tasks": {"total": 1, "completed": 1, "failed": 0},
            "review_iterations": 1,
            "final_verdict": "approved",
        },
    }  # fmt: skip


def with_second(second: int, **more: Any) -> Json:
    """The builder is called once more, and hands in another output."""
    given = multi()
    given["tool_calls"].append(task_call("tool-004", second, "sub-003", "developer"))
    changes = {"files_created": [], "files_modified": [{"path": "src/bell.py"}], "files_deleted": []}
    output = {"task_id": "task-002", "status": "partial", "changes": changes, "summary": "The bell rings."}
    work = call("b-002", second + 10, "Edit", "action", input={"params": {"file_path": "src/bell.py"}})
    sub = sub_session("sub-003", BUILDER, "tool-004", "task-002", second, work, output) | more
    given["sub_sessions"].append(sub)
    given["messages"] += [
        message(5, 200, PLANNER, BUILDER, "task_assignment", {"task": {"task_id": "task-002"}}),
        message(6, 260, BUILDER, PLANNER, "task_completion", {"task_id": "task-002", "status": "completed"}),
    ]
    given["tool_calls"].sort(key=lambda one: str(one["started_at"]))
    given["summary"] = computed_summary(given)
    return given
