"""Trajectories as programs write them, with invented content."""

from __future__ import annotations

import json
from typing import Any

AGENT = {"name": "demo", "version": "1.0", "model_name": "m-1"}


def trajectory(*steps: dict[str, Any], **fields: Any) -> bytes:
    """A document with these steps, numbered."""
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return json.dumps({"schema_version": "ATIF-v1.7", "agent": AGENT, **fields, "steps": numbered}).encode()


def asked(call: str, **more: Any) -> dict[str, Any]:
    """An agent's step with one call and its result."""
    return {
        "source": "agent",
        "timestamp": "2026-02-22T10:30:02Z",
        "message": "I will look.",
        "reasoning_content": "Perhaps a list.",
        "tool_calls": [{"tool_call_id": call, "function_name": "bash", "arguments": {"command": "ls"}}],
        "observation": {"results": [{"source_call_id": call, "content": "a.txt"}]},
        "metrics": {"prompt_tokens": 120, "completion_tokens": 8, "cached_tokens": 100, "cost_usd": 0.5},
        **more,
    }


SYSTEM = {"source": "system", "message": "Be brief."}
USER = {"source": "user", "timestamp": "2026-02-22T10:30:01Z", "message": "What is there?"}
ANSWER = {"source": "agent", "message": "One file.", "metrics": {"prompt_tokens": 130, "completion_tokens": 4}}
PLAIN = trajectory(SYSTEM, USER, asked("c1"), ANSWER, session_id="run-1")
FIRST_PART = trajectory(
    USER,
    asked("c1"),
    {
        "source": "system",
        "message": "The context was summed up.",
        "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_path": "summary.json"}]}]},
        "extra": {"context_management": {"type": "compaction", "boundary": "replace"}},
    },
    session_id="run-2",
    continued_trajectory_ref="trajectory.cont-1.json",
)
SECOND_PART = trajectory(
    {**USER, "is_copied_context": True},
    {"source": "user", "message": "So far: one file was found.", "is_copied_context": True},
    {**ANSWER, "observation": {"results": [{"content": "$ _"}]}},
    session_id="run-2",
    final_metrics={"total_prompt_tokens": 400, "total_completion_tokens": 40},
    agent={**AGENT, "extra": {"continuation_index": 1}},
)


def with_agents() -> bytes:
    """One that starts an agent, which starts another; and a third that nothing refers to."""
    deeper = json.loads(trajectory(USER, ANSWER, trajectory_id="deep"))
    ref = {"source_call_id": "c2", "content": "done", "subagent_trajectory_ref": [{"trajectory_id": "deep"}]}
    finder = json.loads(
        trajectory(
            {"source": "user", "message": "Find it."},
            asked("c2", observation={"results": [ref]}),
            trajectory_id="finder",
            subagent_trajectories=[deeper],
        )
    )
    loose = json.loads(trajectory({"source": "user", "message": "Nobody called."}, ANSWER, trajectory_id="loose"))
    shown = {"source_call_id": "c1", "content": "found", "subagent_trajectory_ref": [{"trajectory_id": "finder"}]}
    step = asked("c1", observation={"results": [shown]})
    return trajectory(USER, step, ANSWER, session_id="run-3", subagent_trajectories=[finder, loose])
