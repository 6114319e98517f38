"""Builders of small Copilot CLI sessions, in the shape that version 1.0.102 writes."""

from __future__ import annotations

import json
import uuid
from typing import Any

SESSION = "0b9c1f2e-6a1d-4c3b-9e55-0a1b2c3d4e5f"


class CopilotSession:
    """A file that grows line by line."""

    def __init__(self, session: str = SESSION) -> None:
        self.lines: list[bytes] = []
        self.parent: str | None = None
        about = {"sessionId": session, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102"}
        self.add("session.start", {**about, "startTime": "2026-11-15T10:00:00.000Z", "context": {"cwd": "/work"}})

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def add(self, kind: str, data: dict[str, Any], agent: str = "") -> str:
        """A line; the answer is its id."""
        number = len(self.lines)
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"copilot {number}"))
        stamp = f"2026-11-15T10:{number // 60:02d}:{number % 60:02d}.000Z"
        record = {"type": kind, "data": data, **({"agentId": agent} if agent else {}), "id": name}
        self.lines.append(json.dumps(record | {"timestamp": stamp, "parentId": self.parent}).encode() + b"\n")
        self.parent = name
        return name

    def prompt(self, text: str, agent: str = "", **more: Any) -> str:
        """What somebody says."""
        dated = f"<current_datetime>2026-11-15T10:00:00.000+00:00</current_datetime>\n\n{text}"
        source = {"source": f"agent-{SESSION}"} if agent else {}
        return self.add("user.message", {"content": text, "transformedContent": dated, **source, **more}, agent)

    def answer(self, text: str, *calls: str, agent: str = "", tokens: int = 7, **more: Any) -> str:
        """What the model says, with calls of those ids, and what the request used."""
        api = f"msg_{len(self.lines):06d}"
        usage = {"model": "m-1", "inputTokens": 160, "outputTokens": tokens, "cacheReadTokens": 40}
        self.add("session.usage_record", {"usage": {**usage, "cacheWriteTokens": 20, "apiCallId": api}}, agent)
        asked = [{"toolCallId": call, "name": "bash", "arguments": {"command": call}} for call in calls]
        said = {"messageId": api, "model": "m-1", "content": text, "toolRequests": asked, "apiCallId": api}
        return self.add("assistant.message", said | more, agent)

    def result(self, call: str, text: str = "done", agent: str = "", *, failed: bool = False) -> str:
        """What a tool answers."""
        self.add("tool.execution_start", {"toolCallId": call, "toolName": "bash"}, agent)
        told = {"error": {"message": text, "code": "failure"}} if failed else {"result": {"content": text}}
        return self.add("tool.execution_complete", {"toolCallId": call, "success": not failed, **told}, agent)

    def compaction(self, summary: str, *, success: bool = True) -> str:
        """The conversation is folded."""
        self.add("session.compaction_start", {"trigger": "manual"})
        self.add(
            "model.messages_snapshot", {"kind": "messages_snapshot", "messages": [{"role": "user", "content": "x"}]}
        )
        used = {"model": "m-1", "inputTokens": 100, "outputTokens": 11, "cacheReadTokens": 0, "cacheWriteTokens": 0}
        data = {"success": success, "compactionTokensUsed": used}
        return self.add("session.compaction_complete", data | ({"summaryContent": summary} if success else {}))


def everything() -> CopilotSession:
    """A session with a bit of everything."""
    session = CopilotSession()
    session.add(
        "session.binary_asset", {"assetId": "sha256:aa", "type": "image", "mimeType": "image/png", "data": "iVBO"}
    )
    seen = {
        "type": "file",
        "path": "/work/a.png",
        "displayName": "a.png",
        "assetId": "sha256:aa",
        "mimeType": "image/png",
    }
    session.prompt("What is in it?", attachments=[seen])
    session.add("system.message", {"role": "system", "content": "You are an assistant."})
    session.answer("I will look.", "c1", "c2", reasoningText="hm", reasoningOpaque="sig")
    session.result("c2", "second")
    session.result("c1", "first", failed=True)
    session.answer("A dot.")
    session.prompt("Have it checked.")
    session.answer("", "t1")
    session.add("subagent.started", {"toolCallId": "t1", "agentName": "general-purpose"}, "agent-1")
    session.prompt("Check it.", "agent-1")
    session.answer("Checking.", "c3", agent="agent-1")
    session.result("c3", "checked", "agent-1")
    session.answer("It is right.", agent="agent-1")
    session.add("subagent.completed", {"toolCallId": "t1"}, "agent-1")
    session.result("t1", "It is right.")
    session.answer("It was checked.")
    return session
