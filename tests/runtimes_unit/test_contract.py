"""Every runtime that is ours passes the suite that runtimes of others pass."""

from __future__ import annotations

import json

from harken import runtimes
from harken.events import Prompt, Response, ToolCall, ToolResult
from harken.formats import get
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


CONVERSATION = [
    Prompt(content="Run it.", message_id="m1", agent_id="root", time=1_794_738_000_000_000),
    ToolCall(id="c1", name="Read", input=b'{"path":"x"}', message_id="m2", agent_id="root"),
    ToolResult(id="c1", output="nothing", message_id="m3", agent_id="root", cause="m2"),
    Response(content="Done.", message_id="m4", agent_id="root", time=1_794_738_001_000_000),
    Prompt(content="And again.", message_id="m5", agent_id="root"),
]


def printed(*steps: Line) -> tuple[bytes, ...]:
    return tuple(json.dumps(step["line"]).encode() for step in steps)


class TestClaudeCode(RuntimeContract):
    runtime = runtimes.get("claude-code")
    samples = (("projects/-x/S.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in CLAUDE_LINES)),)
    words = (("-p", "--model", "x", "hi"), ("--allowedTools", "Bash", "Edit", "-p", "hi"), ("-p", "--", "-hi"))
    lines = printed(init(), says("Hello."), final_result("Hello."))


class TestHarkensOwnLogs(RuntimeContract):
    """They are imported; agents go on from them by `harken chat`, so there is nothing to resume or to run."""

    runtime = runtimes.get("harken")
    samples = (("sessions/cafe.jsonl", get("session-log-v2").write(CONVERSATION).data),)


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
