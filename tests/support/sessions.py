"""Builders of small Claude Code and Codex sessions, for tests that must not depend on files of others."""

from __future__ import annotations

import json
import uuid
from typing import Any

START = 1771756200


def _time(second: int) -> str:
    minutes, seconds = divmod(second, 60)
    return f"2026-02-22T10:{30 + minutes % 30:02d}:{seconds:02d}.000Z"


class ClaudeSession:
    """A Claude Code file that grows line by line, with a real chain of uuids."""

    def __init__(self, session: str, *, agent: str = "", salt: str = "", start: int = 0) -> None:
        """`start` is the second in which it begins."""
        self.session = session
        self.agent = agent
        self.salt = salt or session
        self.lines: list[bytes] = []
        self.parent: str | None = None
        self.count = start

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def add(self, kind: str, **fields: Any) -> str:
        self.count += 1
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.salt} {self.count}"))
        record = {
            "type": kind,
            "uuid": name,
            "parentUuid": self.parent,
            "sessionId": self.session,
            "timestamp": _time(self.count),
            "isSidechain": bool(self.agent),
            "version": "2.1.0",
        } | fields
        if self.agent:
            record["agentId"] = self.agent
        self.lines.append(json.dumps(record).encode() + b"\n")
        self.parent = name
        return name

    def prompt(self, text: str, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": text}, **fields)

    def answer(self, text: str, *, tokens: int = 10, model: str = "scripted", **fields: Any) -> str:
        number = self.count + 1
        message = {
            "id": f"msg_{self.salt}_{number}",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 3, "output_tokens": tokens},
        }
        return self.add("assistant", message=message, requestId=f"req_{self.salt}_{number}", **fields)

    def call(self, name: str, result: str, *, agent: str = "", prompt: str = "") -> None:
        number = self.count + 1
        call = f"toolu_{self.salt}_{number}"
        input = {"prompt": prompt} if prompt else {"n": number}
        message = {
            "id": f"msg_{self.salt}_{number}",
            "role": "assistant",
            "model": "scripted",
            "content": [{"type": "tool_use", "id": call, "name": name, "input": input}],
            "usage": {"input_tokens": 5, "output_tokens": 7},
        }
        self.add("assistant", message=message, requestId=f"req_{self.salt}_{number}")
        extra = {"toolUseResult": {"agentId": agent, "status": "completed"}} if agent else {}
        content = [{"type": "tool_result", "tool_use_id": call, "content": result}]
        self.add("user", message={"role": "user", "content": content}, **extra)

    def compact(self, summary: str) -> None:
        self.parent = None
        self.add("system", subtype="compact_boundary", content="Conversation compacted")
        self.prompt(f"This session is being continued: {summary}", isCompactSummary=True)

    def side(self, record: dict[str, Any]) -> None:
        """A record outside the chain (a title, a snapshot), or any object at all."""
        self.lines.append(json.dumps(record).encode() + b"\n")


def conversation(session: str, turns: int = 3, **options: Any) -> ClaudeSession:
    """A session of a few turns, each a prompt, a tool call and an answer."""
    built = ClaudeSession(session, **options)
    for turn in range(turns):
        built.prompt(f"question {turn}")
        built.call("Read", f"file number {turn}")
        built.answer(f"answer {turn}")
    return built


def rollout(thread: str, turns: int = 2) -> bytes:
    """A Codex rollout of a few turns."""
    lines: list[dict[str, Any]] = [
        {
            "timestamp": _time(0),
            "type": "session_meta",
            "payload": {
                "id": thread,
                "timestamp": _time(0),
                "cwd": "/work",
                "originator": "codex_exec",
                "cli_version": "0.166.0",
                "source": "exec",
            },
        }
    ]

    def item(payload: dict[str, Any]) -> None:
        lines.append({"timestamp": _time(len(lines)), "type": "response_item", "payload": payload})

    for turn in range(turns):
        item({"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"question {turn}"}]})
        item({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": f"call_{turn}"})
        item({"type": "function_call_output", "call_id": f"call_{turn}", "output": f"output {turn}"})
        item({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"answer {turn}"}]})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
