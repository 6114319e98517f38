"""Session documents of every kind, for laws: `documents()` and what it is made of.

All of them satisfy the standards (`valid_single`, `valid_multi`), and may have fields that nobody knows at every level
(`with_unknown_fields`). `older()` makes the generations before.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from harken.formats.std.models import AGENT_TYPES
from harken.formats.std.summary import computed_summary

from .std_documents import call

Json = dict[str, Any]

texts = st.text(max_size=12) | st.sampled_from(
    ["\ud800", "a\udc00b", "\x1b[31m", "\u202eab", "\x00", "修复 login", "\\", '"']
)
"""Texts, some of them hostile. Lone surrogates are never neighbours: a pair of them is one character."""
numbers = (
    st.integers(-9, 9) | st.sampled_from([2**63, -(2**64), 10**400]) | st.floats(allow_nan=False, allow_infinity=False)
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=6,
)
"""Any value of JSON."""


def objects_in(value: Any) -> list[Json]:
    """Every object in a value, the outermost first."""
    found: list[Json] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            found.append(one)
        below = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        todo += list(below)
    return found


@st.composite
def with_unknown_fields(draw: st.DrawFn, documents: st.SearchStrategy[Json]) -> Json:
    """A document with fields that nobody knows, anywhere in it and anywhere among the other fields."""
    document = draw(documents)
    places = objects_in(document)
    for _ in range(draw(st.integers(0, 4))):
        place = places[draw(st.integers(0, len(places) - 1))]
        fields = list(place.items())
        fields.insert(draw(st.integers(0, len(fields))), (f"x_{draw(texts)}", draw(json_values)))
        place.clear()
        place.update(fields)
    return document


@st.composite
def calls(draw: st.DrawFn, prefix: str, start: int = 1) -> list[Json]:
    """Calls of one agent, one after another, from that second on."""
    count = draw(st.integers(0, 3))
    return [_call(draw, f"{prefix}-{number:03}", start + 2 * number) for number in range(count)]


def _call(draw: st.DrawFn, name: str, second: int) -> Json:
    tool, category, params = draw(
        st.sampled_from(
            [
                ("Read", "perception", {"file_path": "src/a.py"}),
                ("Edit", "action", {"file_path": "src/b.py", "old_string": "1", "new_string": "2"}),
                ("Bash", "action", {"command": "make"}),
                ("TodoWrite", "task_management", {"todos": []}),
            ]
        )
    )
    made = call(name, second, tool, category, input={"params": dict(params)})
    if draw(st.booleans()):
        made["output"] = {"status": "failed", "error": draw(texts)}
    return made


@st.composite
def valid_single(draw: st.DrawFn) -> Json:
    """A session of one agent."""
    document: Json = {
        "session_id": "2026-03-04-001-mend-the-clock",
        "task_title": draw(texts.filter(str.strip)),
        "user_prompt": draw(texts.filter(str.strip)),
        "created_at": "2026-03-04T10:00:00Z",
        "completed_at": "2026-03-04T10:30:00Z",
        "status": draw(st.sampled_from(["success", "failed"])),
        "agent": {"model_id": "claude-sonnet-4-5"},
        "tool_calls": draw(calls("tool")),
    }
    if document["tool_calls"] and draw(st.booleans()):
        ids = [made["call_id"] for made in document["tool_calls"]]
        document["phase_annotations"] = [
            {
                "annotation_id": "phase-001",
                "phase_type": "execute",
                "tool_call_range": {"start_call_id": ids[0], "end_call_id": ids[-1]},
                "annotated_by": "agent",
                "annotated_at": "2026-03-04T10:30:00Z",
                "confidence": "high",
            }
        ]
    return document | {"summary": computed_summary(document)}


@st.composite
def valid_multi(draw: st.DrawFn) -> Json:
    """A session in which an agent has work done by others, one after another."""
    lead = {"agent_id": "lead", "agent_type": "architect"}
    workers = [
        {"agent_id": f"worker-{number}", "agent_type": draw(st.sampled_from(AGENT_TYPES[1:]))}
        for number in range(draw(st.integers(1, 3)))
    ]
    document: Json = {
        "session_id": "2026-03-04-002-two-hands-multi",
        "task_title": draw(texts.filter(str.strip)),
        "user_prompt": draw(texts.filter(str.strip)),
        "created_at": "2026-03-04T10:00:00Z",
        "completed_at": "2026-03-04T10:30:00Z",
        "status": "success",
        "agent": {"model_id": "claude-opus-4-5"},
        "collaboration": {
            "mode": "multi_agent",
            "pattern": "master_worker",
            "orchestrator": lead,
            "participants": workers,
        },
        "tool_calls": draw(calls("tool")),
        "sub_sessions": [],
        "messages": [],
    }
    for number, worker in enumerate(workers):
        _add_work(draw, document, worker, number)
    return document | {"summary": computed_summary(document)}


def _add_work(draw: st.DrawFn, document: Json, worker: Json, number: int) -> None:
    """What one agent was told to do, did and answered."""
    start = 60 * (number + 1)
    begun, ended = f"2026-03-04T10:{start // 60:02}:00Z", f"2026-03-04T10:{start // 60:02}:30Z"
    own = draw(calls(worker["agent_id"], start + 1))
    task = {"task_id": f"task-{number}", "description": "the work", "priority": draw(st.sampled_from(["high", "low"]))}
    output = {"output_type": "generic", "task_id": task["task_id"], "status": "completed", "summary": draw(texts)}
    kind = worker["agent_type"]
    document["tool_calls"].append(
        call(
            f"spawn-{number}", start, "Task", "interaction", ended_at=ended, duration_ms=30000,
            input={"params": {"subagent_type": kind, "prompt": draw(texts)}},
            subagent_info={"subagent_type": kind, "sub_session_id": f"sub-{number}", "tool_uses": len(own)},
        )
    )  # fmt: skip
    document["sub_sessions"].append(
        {
            "sub_session_id": f"sub-{number}",
            "parent_session_id": document["session_id"],
            "agent": dict(worker),
            "triggered_by_call_id": f"spawn-{number}",
            "task": task,
            "started_at": begun,
            "completed_at": ended,
            "status": "success",
            "tool_calls": own,
            "output": output,
        }
    )
    lead = document["collaboration"]["orchestrator"]
    for sender, hearer, message, time, payload in (
        (lead, worker, "task_assignment", begun, {"task": dict(task), "priority": task["priority"]}),
        (worker, lead, "task_completion", ended, {"task_id": task["task_id"], "status": "completed"}),
    ):
        sequence = len(document["messages"]) + 1
        document["messages"].append(
            {
                "message_id": f"msg-{sequence:03}",
                "timestamp": time,
                "sequence_number": sequence,
                "from_agent": dict(sender),
                "to_agent": dict(hearer),
                "message_type": message,
                "payload": payload,
            }
        )


def documents() -> st.SearchStrategy[Json]:
    """A document of either kind, with fields that nobody knows."""
    return with_unknown_fields(valid_single() | valid_multi())


@st.composite
def steps(draw: st.DrawFn) -> Json:
    """A document of the first generation."""
    names = st.sampled_from(["requirement_input", "code_generation", "debug_fix", "result_verification", "a step"])
    made = [
        {
            "step_id": draw(st.sampled_from([f"step-{number}", "step-0", "tool-001", ""])),
            "step_name": draw(names),
            "status": draw(st.sampled_from(["pending", "running", "success", "failed", "skipped"])),
            "input": draw(json_values),
            "output": draw(json_values),
            "domain_matching_score": 0.5,
        }
        for number in range(draw(st.integers(0, 3)))
    ]
    return {
        "session_id": "s",
        "created_at": "2026-01-25T10:00:00Z",
        "updated_at": "2026-01-25T11:00:00Z",
        "steps": made,
    }


@st.composite
def early_phases(draw: st.DrawFn) -> Json:
    """A document of the second generation's first form."""
    entries = st.fixed_dictionaries(
        {"tool": st.sampled_from(["Read", "Bash", "探索"]), "target": texts, "action": texts},
        optional={"details": json_values},
    )
    phases = st.fixed_dictionaries(
        {"phase": st.sampled_from(["understand", "execute"])},
        optional={"tool_calls": st.lists(entries, max_size=3), "context_references": st.lists(json_values, max_size=2)},
    )
    return {"title": draw(texts), "phases": draw(st.lists(phases, min_size=1, max_size=3)), "artifacts": [draw(texts)]}


@st.composite
def phases(draw: st.DrawFn) -> Json:
    """A document of the second generation; some have annotations as well."""
    document = draw(valid_single())
    ids = [made["call_id"] for made in document["tool_calls"]]
    named = st.lists(st.sampled_from([*ids, "tool-gone"]), max_size=2)
    document["phases"] = [
        {
            "phase_id": f"p-{number}",
            "phase_type": draw(st.sampled_from(["explore", "verify"])),
            "status": "success",
            "input": {},
            "output": {},
            "tool_call_ids": draw(named),
            "context_used": [],
            "decisions": [],
        }
        for number in range(draw(st.integers(1, 3)))
    ]
    return document


def older() -> st.SearchStrategy[Json]:
    """A document of an older generation, with fields that nobody knows."""
    return with_unknown_fields(steps() | early_phases() | phases())
