"""The types hold everything that the standards and real documents have: a document with every field fits them, and says
in each what it says as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harken.formats.std.models import (
    PAYLOADS,
    AgentsByRole,
    AgentSession,
    AgentSummary,
    DeveloperOutput,
    GenericAgentOutput,
    MultiAgentSession,
    ReviewerOutput,
    StdObject,
    output_model,
    view,
)
from support.std_documents import multi, single

Json = dict[str, Any]

FULL_CALL: Json = {
    "call_id": "tool-001",
    "tool_name": "Task",
    "tool_category": "interaction",
    "started_at": "2026-03-04T10:00:05Z",
    "ended_at": "2026-03-04T10:00:06Z",
    "duration_ms": 1000,
    "input": {"params": {"prompt": "go"}, "description": "have it done", "raw_command": "task go"},
    "output": {"status": "failed", "result": {"display": "no"}, "error": "it would not", "truncated": True},
    "context_contribution": {"type": "knowledge", "summary": "a fact", "full_content": "the whole fact"},
    "subagent_info": {
        "subagent_type": "developer",
        "tool_uses": 3,
        "tokens_used": 900,
        "tools_breakdown": [{"tool_name": "Read", "count": 3}],
        "sub_session_id": "sub-001",
    },
}
FULL_ANNOTATION: Json = {
    "annotation_id": "phase-001",
    "phase_type": "explore",
    "tool_call_range": {"start_call_id": "tool-001", "end_call_id": "tool-001"},
    "annotated_by": "human",
    "annotated_at": "2026-03-04T11:00:00Z",
    "confidence": "low",
    "description": "looking around",
    "decisions": [
        {
            "decision_id": "d-1",
            "type": "retry",
            "description": "once more",
            "reasoning": "it was close",
            "alternatives_considered": ["give up"],
        }
    ],
    "context_used": [
        {
            "type": "file",
            "source": "a.py",
            "relevance": "high",
            "summary": "the clock",
            "quoted_content": "tick",
            "usage_mode": "read_then_modified",
        }
    ],
}
FULL_SINGLE: Json = single() | {
    "task_description": "The clock is late",
    "updated_at": "2026-03-04T12:00:00Z",
    "agent": {"model_id": "claude-opus-4-5", "capability_snapshot": "2026-03-01"},
    "tool_calls": [FULL_CALL],
    "phase_annotations": [FULL_ANNOTATION],
    "phases": [{"phase_id": "p-1"}],
    "summary": single()["summary"] | {"errors_encountered": 1},
}
OUTPUTS: list[tuple[type[StdObject], Json]] = [
    (
        DeveloperOutput,
        {
            "task_id": "task-001",
            "status": "partial",
            "changes": {
                "files_created": [
                    {"path": "a", "lines_added": 1, "lines_removed": 0, "description": "new", "change_type": "created"}
                ],
                "files_modified": ["b"],
                "files_deleted": ["c"],
            },
            "summary": "half of it",
            "implementation_notes": "by hand",
            "self_review": {
                "tests_run": True,
                "tests_passed": False,
                "type_check_passed": True,
                "known_issues": ["slow"],
            },
            "blockers": ["no key"],
            "suggestions": ["a key"],
        },
    ),
    (
        ReviewerOutput,
        {
            "review_id": "review-001",
            "task_id": "task-001",
            "verdict": "changes_requested",
            "findings": [
                {
                    "finding_id": "f-1",
                    "severity": "major",
                    "category": "logic",
                    "file": "a",
                    "line": 7,
                    "description": "wrong way round",
                    "suggestion": "turn it",
                },
                {
                    "finding_id": "f-2",
                    "severity": "minor",
                    "category": "test",
                    "location": {"file": "a", "line_start": 1, "line_end": 2, "code_snippet": "x"},
                    "description": "not tested",
                    "rationale": "it broke before",
                    "fixed_in_iteration": 2,
                },
            ],
            "verification": {"tests_passed": True, "type_check_passed": False, "custom_checks": {"lint": True}},
            "summary": "nearly",
            "required_changes": [
                {"change_id": "c-1", "priority": "must_fix", "related_findings": ["f-1"], "description": "turn it"}
            ],
            "commendations": ["short"],
        },
    ),
    (
        ReviewerOutput,
        {
            "review_id": "review-002",
            "task_id": "task-001",
            "verdict": "approved",
            "findings": [],
            "verification": {
                "tests": {"passed": True, "output": "3 passed"},
                "type_check": {"passed": False, "error": "no"},
                "lint": {"passed": True},
                "custom": {"size": {"passed": True}},
            },
            "summary": "well",
        },
    ),
    (
        GenericAgentOutput,
        {
            "output_type": "generic",
            "task_id": "t",
            "status": "completed",
            "summary": "done",
            "data": {"any": ["thing"]},
        },
    ),
]
MESSAGES: dict[str, Json] = {
    "task_assignment": {
        "task": {
            "task_id": "task-001",
            "task_description": "mend it",
            "description": "mend it",
            "context": {
                "specs": [{"path": "SPEC.md", "reason": "says how", "sections": ["2"]}],
                "reference_files": [{"path": "a.py"}],
                "previous_attempts": [{"attempt": 1}],
            },
            "constraints": {
                "scope": ["src/**"],
                "testing_required": True,
                "must_not_break": ["the bell"],
                "style_guide": "STYLE.md",
            },
            "acceptance_criteria": ["it ticks"],
            "dependencies": ["task-000"],
        },
        "priority": "high",
        "deadline": "2026-03-05T00:00:00Z",
        "max_iterations": 3,
        "dependencies": ["task-000"],
    },
    "task_progress": {
        "task_id": "task-001",
        "progress_percent": 12.5,
        "current_step": "looking",
        "files_modified_so_far": ["a"],
        "estimated_remaining": "5 minutes",
        "blockers": ["none"],
    },
    "task_completion": {"task_id": "task-001", "status": "completed"},
    "review_request": {
        "review_id": "review-001",
        "task_id": "task-001",
        "scope": {"files": ["a"], "focus_areas": ["time"], "ignore_patterns": ["*.md"]},
        "criteria": ["right"],
        "context": {"specs": []},
        "files": ["a"],
    },
    "review_result": {"review_id": "review-001", "task_id": "task-001", "verdict": "rejected"},
    "feedback": {
        "feedback_type": "question",
        "subject": "the bell",
        "content": "does it ring?",
        "action_required": True,
        "related_task_id": "task-001",
    },
    "abort": {"scope": "task", "target_id": "task-001", "reason": "too late", "cleanup_required": False},
    "acknowledgment": {"task_id": "task-001"},
    "status_query": {"task_id": "task-001"},
    "status_response": {"task_id": "task-001"},
    "status_update": {"task_id": "task-001"},
}
ROW: Json = {
    "agent_id": "lead",
    "agent_type": "architect",
    "role_category": "orchestrator",
    "tool_calls_count": 1,
    "duration_ms": 2.5,
    "status": "in_progress",
}


def full_multi() -> Json:
    """A document of STD-008 in which every field of the types is there."""
    data = multi() | {key: value for key, value in FULL_SINGLE.items() if key not in ("session_id", "summary")}
    who = {"agent_id": "lead", "agent_type": "oracle", "instance_id": "i-1", "role_category": "specialist"}
    data["collaboration"]["participants"].append(who)
    data["sub_sessions"] = [
        data["sub_sessions"][0] | {"output": output, "tool_calls": [FULL_CALL]} for _, output in OUTPUTS
    ]
    data["messages"] = [
        data["messages"][0] | {"message_type": kind, "payload": payload, "correlation_id": "c", "reply_to": "msg-001"}
        for kind, payload in MESSAGES.items()
    ]
    counts = {"orchestrators": 1, "workers": 1, "validators": 1, "specialists": 1, "total": 4}
    data["summary"] |= {"errors_encountered": 1, "agent_counts": counts}
    return data


def said(value: StdObject) -> Any:
    """What a typed object says, without the fields that are not there."""
    return _without_none(msgspec.to_builtins(value))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(below) for key, below in value.items() if below is not None}
    return [_without_none(below) for below in value] if isinstance(value, list) else value


def fields_unused(model: type[StdObject], value: Json) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(model)} - value.keys()


class TestAFullDocument:
    def test_of_one_agent_fits_and_says_the_same(self) -> None:
        session = view(AgentSession, FULL_SINGLE)

        assert session is not None
        assert said(session) == FULL_SINGLE

    def test_of_several_agents_fits_and_says_the_same(self) -> None:
        session = view(MultiAgentSession, full_multi())

        assert session is not None
        assert said(session) == full_multi()

    def test_leaves_no_field_of_the_types_out(self) -> None:
        """So that the two above are about all of them."""
        assert set() == fields_unused(MultiAgentSession, full_multi())
        assert set() == fields_unused(AgentSession, FULL_SINGLE)


class TestWhatTheTypesLeaveOpen:
    @pytest.mark.parametrize(("model", "output"), OUTPUTS)
    def test_an_output_is_of_the_type_that_it_looks_like(self, model: type[StdObject], output: Json) -> None:
        typed = view(output_model(output), output)

        assert isinstance(typed, model)
        assert said(typed) == output

    @pytest.mark.parametrize("kind", PAYLOADS)
    def test_the_payload_of_every_type_of_message_has_a_type(self, kind: str) -> None:
        typed = view(PAYLOADS[kind], MESSAGES[kind])

        assert typed is not None
        assert said(typed) == MESSAGES[kind]
        assert set() == fields_unused(PAYLOADS[kind], MESSAGES[kind])

    def test_the_agents_of_a_summary_are_told_by_role_or_one_by_one(self) -> None:
        by_role = {"architect": ROW, "developers": [ROW], "reviewer": ROW}

        assert view(AgentsByRole, by_role) is not None
        assert view(AgentSummary, ROW) is not None


class TestARequiredField:
    @pytest.mark.parametrize(
        ("where", "field"),
        [
            (lambda data: data, "session_id"),
            (lambda data: data, "status"),
            (lambda data: data["tool_calls"][0], "duration_ms"),
            (lambda data: data["tool_calls"][0]["subagent_info"], "tool_uses"),
            (lambda data: data["tool_calls"][0]["context_contribution"], "summary"),
            (lambda data: data["phase_annotations"][0], "annotated_at"),
            (lambda data: data["phase_annotations"][0]["context_used"][0], "relevance"),
            (lambda data: data["phase_annotations"][0]["decisions"][0], "decision_id"),
            (lambda data: data["summary"], "files_created"),
        ],
    )
    def test_that_is_missing_keeps_a_document_from_fitting(self, where: Any, field: str) -> None:
        data = msgspec.json.decode(msgspec.json.encode(FULL_SINGLE))
        del where(data)[field]

        assert view(AgentSession, data) is None
