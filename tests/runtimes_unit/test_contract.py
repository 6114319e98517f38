"""Every runtime that is ours passes the suite that runtimes of others pass."""

from __future__ import annotations

import json

from harken import runtimes
from harken.testing.runtimes import RuntimeContract
from support.claude_lines import assistant, call, result, user
from support.rollouts import THREAD, Rollout
from support.stream_lines import Line, init, item, says, thread, turn_completed
from support.stream_lines import result as final_result

CLAUDE_LINES = (
    user("u1", None, "Run it."),
    assistant("u2", "u1", [call("t1")], "msg_1", 1),
    result("u3", "u2", "t1", 2),
    assistant("u4", "u3", "Done.", "msg_2", 3),
    user("u5", "u4", "And again.", 4),
    assistant("u6", "u5", "Done again.", "msg_3", 5),
)


def printed(*steps: Line) -> tuple[bytes, ...]:
    return tuple(json.dumps(step["line"]).encode() for step in steps)


class TestClaudeCode(RuntimeContract):
    runtime = runtimes.get("claude-code")
    samples = (("projects/-x/S.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in CLAUDE_LINES)),)
    words = (("-p", "--model", "x", "hi"), ("--allowedTools", "Bash", "Edit", "-p", "hi"), ("-p", "--", "-hi"))
    lines = printed(init(), says("Hello."), final_result("Hello."))


class TestCodex(RuntimeContract):
    runtime = runtimes.get("codex")
    samples = (
        (
            f"sessions/2026/01/02/rollout-2026-01-02T00-00-00-{THREAD}.jsonl",
            Rollout().exchange("one").call("c1").output("c1").exchange("two").data,
        ),
    )
    words = (("exec", "hi"), ("exec", "-s", "read-only", "hi"), ("exec", "--json", "-c", "a=1", "hi"))
    lines = printed(thread(), item("agent_message", 0, text="Hello."), turn_completed())
