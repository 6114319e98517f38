"""Every runtime that is ours passes the suite that runtimes of others pass."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path

from harken import runtimes
from harken.events import Prompt, Response, ToolCall, ToolResult
from harken.formats import get
from harken.runtimes.opencode.database import session_rows
from harken.runtimes.resume import Resumed
from harken.testing.runtimes import RuntimeContract
from support import gemini_lines, pi_lines
from support.claude_lines import assistant, call, result, user
from support.opencode_database import OpenCodeDatabase, text, tool
from support.qwen_lines import SESSION, agent_session, busy_session
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


def opencode_rows() -> bytes:
    """A session with a call, a message that was taken back, and a summary."""
    with tempfile.TemporaryDirectory() as folder:
        database = OpenCodeDatabase(Path(folder, "opencode.db"))
        session = database.session("ses_e209d7d5effeuScj3qQPfa350s")
        database.turn(session, "Run it.", text("I will."), tool("c1"), tool("c2", status="error", error="no"))
        asked, _ = database.turn(session, "And again.", text("Done again."))
        database.clean_up(session, asked)
        database.turn(session, "Thank you.", text("Gladly."))
        database.close()
        connection = sqlite3.connect(database.path)
        rows = session_rows(connection, session)
        connection.close()
    return rows


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


class TestPi(RuntimeContract):
    runtime = runtimes.get("pi")
    samples = tuple(
        (f"sessions/--home-me-proj--/{pi_lines.FILE}", made().data)
        for made in (pi_lines.conversation, pi_lines.compacted, pi_lines.branched, pi_lines.legacy)
    )
    words = (("-p", "hi"), ("--model", "x", "-p", "hi"), ("--mode", "json", "--thinking", "high", "hi"))
    lines = pi_lines.STREAM


class TestOpenClaw(RuntimeContract):
    """They are imported; the program keeps its sessions in a database now, so there is no file to resume from."""

    runtime = runtimes.get("openclaw")
    samples = ((f"agents/main/sessions/{pi_lines.SESSION}.jsonl", pi_lines.openclaw().data),)


class TestQwenCode(RuntimeContract):
    runtime = runtimes.get("qwen-code")
    samples = (
        (f"projects/-home-me-proj/chats/{SESSION}.jsonl", busy_session().data),
        (f"projects/-home-me-proj/subagents/{SESSION}/agent-general-purpose-c3.jsonl", agent_session().data),
    )
    words = (("hi",), ("--yolo", "-m", "x", "hi"), ("--allowed-tools", "edit", "-p", "hi"), ("-o", "stream-json", "hi"))
    lines = printed(init(), says("Hello."), final_result("Hello."))


class TestGeminiCli(RuntimeContract):
    runtime = runtimes.get("gemini-cli")
    samples = tuple(
        (f"tmp/orchard/chats/session-2026-01-02T00-00-0000000{number}.jsonl", data)
        for number, data in enumerate(gemini_lines.samples()[:-1])
    )
    words = (("-p", "hi"), ("--yolo", "-m", "x", "-p", "hi"), ("--output-format", "stream-json", "--prompt", "hi"))
    lines = printed(*gemini_lines.printed("Hel", "lo."))


class TestQwenCodeWithDocuments(RuntimeContract):
    runtime = runtimes.get("qwen-code-json")
    samples = (
        (
            "tmp/0a1b/chats/session-2026-11-18T08-20-66641b99.json",
            b'{"sessionId": "66641b99-a651-47e6-b0a8-a71c33f5c131", "projectHash": "0a1b", "messages": ['
            b'{"id": "m1", "timestamp": "2026-11-18T08:20:55.255Z", "type": "user", "content": "Run it."}, '
            b'{"id": "m2", "timestamp": "2026-11-18T08:20:56.000Z", "type": "qwen", "content": "It worked.", '
            b'"tokens": {"input": 100, "output": 11, "total": 111}, "model": "qwen3"}]}',
        ),
    )


class TestGeminiCliBefore040(RuntimeContract):
    """Its documents are imported; the program that resumes and runs is today's."""

    runtime = runtimes.get("gemini-cli-json")
    samples = tuple(
        (f"tmp/{gemini_lines.PROJECT}/chats/session-2026-01-02T00-00-0000000{number}.json", data)
        for number, data in enumerate(gemini_lines.documents())
    )


class _TakesIn(RuntimeContract):
    """What OpenCode's own command does: the rows of a document go into its database."""

    def prepare(self, home: Path, done: Resumed) -> None:
        [(program, command, path)] = done.prepare
        assert (self.runtime.name, "import", done.path) == (program, command, path)
        database = OpenCodeDatabase(home / f"{self.runtime.name}.db")
        database.take_in(Path(path).read_bytes())
        database.close()


def opencode_line(kind: str, **part: object) -> bytes:
    told = {"id": "prt_1", "messageID": "msg_1ecfe11d4001TMLMC2SnbFqaTw", "sessionID": "ses_1", **part}
    return json.dumps({"type": kind, "timestamp": 1794977438091, "sessionID": "ses_1", "part": told}).encode()


class TestOpenCode(_TakesIn):
    runtime = runtimes.get("opencode")
    words = (("run", "hi"), ("run", "--auto", "-m", "a/b", "hi"), ("run", "--format", "json", "-f", "a", "--", "hi"))
    lines = (
        opencode_line("step_start", type="step-start"),
        opencode_line("text", type="text", text="Hello."),
        opencode_line("step_finish", type="step-finish", tokens={"input": 1, "output": 2}, cost=0),
    )
    samples = (("opencode.db", opencode_rows()),)


class TestOpenCodeBefore12(RuntimeContract):
    runtime = runtimes.get("opencode-storage")
    samples = (
        (
            "storage/session/global/ses_1.json",
            b'{\n  "id": "ses_1",\n  "version": "1.1.11",\n  "projectID": "global",\n  "title": "A title"\n}',
        ),
    )


class TestKilo(_TakesIn):
    runtime = runtimes.get("kilo")
    words = TestOpenCode.words
    lines = TestOpenCode.lines
    samples = (("kilo.db", opencode_rows()),)


class TestOpenCodeExports(RuntimeContract):
    runtime = runtimes.get("opencode-export")
    samples = (("export.json", get("opencode-v1").write(CONVERSATION).data),)
