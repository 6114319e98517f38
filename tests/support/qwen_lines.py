"""Qwen Code sessions in miniature, shaped as the program writes them, for tests that build one record by record."""

from __future__ import annotations

import json
from typing import Any

SESSION = "6b5b6da8-0000-4000-8000-000000000001"
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 107}
USAGE |= {"cachedContentTokenCount": 40}
Record = dict[str, Any]


def call(name: str, tool: str = "run_shell_command", **args: Any) -> Record:
    """A part in which the model asks for a tool."""
    return {"functionCall": {"id": name, "name": tool, "args": args or {"command": "ls"}}}


def answer(name: str, tool: str = "run_shell_command", **response: Any) -> Record:
    """A part in which a tool answers."""
    said = response or {"output": f"out {name}"}
    return {"functionResponse": {"id": name, "name": tool, "response": said}}


class QwenSession:
    """A file that grows: each method puts a record behind the last one."""

    def __init__(self, session: str = SESSION, *, agent: str = "") -> None:
        self.session = session
        self.agent = agent
        self.records: list[Record] = []
        self.tail: str | None = None

    @property
    def data(self) -> bytes:
        """The file."""
        return b"".join(json.dumps(record).encode() + b"\n" for record in self.records)

    def add(self, kind: str, **more: Any) -> QwenSession:
        """A record of a type."""
        number = len(self.records)
        record: Record = {"uuid": f"{number:08d}-{self.session[:4]}-4000-8000-000000000000", "parentUuid": self.tail}
        record |= {"sessionId": self.session, "timestamp": f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000Z"}
        record |= {"type": kind, "cwd": "/home/me/proj", "version": "0.24.4"}
        if self.agent:
            record |= {"agentId": self.agent, "agentName": "general-purpose", "isSidechain": True}
        self.records.append(record | more)
        self.tail = str(self.records[-1]["uuid"])
        return self

    def user(self, *said: str | Record, **more: Any) -> QwenSession:
        """What stands in the user's place."""
        parts = [{"text": part} if isinstance(part, str) else part for part in said]
        about: Record = {"provenance": "real_user", "message": {"role": "user", "parts": parts}}
        return self.add("user", **(about | more))

    def says(self, *said: str | Record, usage: Record | None = None, told: bool = True, **more: Any) -> QwenSession:
        """An answer of the model, and before it the telemetry of its request."""
        usage = USAGE if usage is None else usage
        if told and usage and not self.agent:
            self.asked(usage)
        parts = [{"text": part} if isinstance(part, str) else part for part in said]
        about: Record = {"model": "test-model", "message": {"role": "model", "parts": parts}}
        about |= {"usageMetadata": usage} if usage else {}
        return self.add("assistant", provenance="assistant_output", **about, **more)

    def asked(self, usage: Record = USAGE, prompt: str = "########0", **more: Any) -> QwenSession:
        """Telemetry of a request that was answered."""
        event: Record = {"event.name": "qwen-code.api_response", "response_id": "chatcmpl-1", "model": "test-model"}
        event |= {"input_token_count": usage.get("promptTokenCount", 0), "duration_ms": 12}
        event |= {"output_token_count": usage.get("candidatesTokenCount", 0)}
        event |= {"cached_content_token_count": usage.get("cachedContentTokenCount", 0)}
        event |= {"thoughts_token_count": usage.get("thoughtsTokenCount", 0)}
        event |= {"total_token_count": usage.get("totalTokenCount", 0), "prompt_id": self.session + prompt}
        return self.system("ui_telemetry", uiEvent=event | more)

    def result(self, *parts: Record, status: str = "success") -> QwenSession:
        """What a tool answered."""
        about = {"toolCallResult": {"callId": "", "status": status}}
        return self.add(
            "tool_result", provenance="tool_result", message={"role": "user", "parts": list(parts)}, **about
        )

    def system(self, subtype: str, **payload: Any) -> QwenSession:
        """A record of bookkeeping."""
        return self.add("system", provenance="system", subtype=subtype, systemPayload=payload)

    def compacted(self, *history: tuple[str, str]) -> QwenSession:
        """A compaction that leaves texts, each with its role."""
        left = [{"role": role, "parts": [{"text": words}]} for role, words in history]
        info = {"originalTokenCount": 36478, "newTokenCount": 17005, "compressionStatus": 1, "triggerReason": "manual"}
        return self.system("chat_compression", info=info, compressedHistory=left, completedToolCallIds=[])

    def back_to(self, uuid: str | None) -> QwenSession:
        """The next record is put behind an older one."""
        self.tail = uuid
        return self


SUMMARY = "<state_snapshot>They ran it.</state_snapshot>\n\nResume the prior task using the summary above."
GOT_IT = "Got it. Thanks for the additional context!"
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def busy_session() -> QwenSession:
    """Thinking, parallel calls with a failure, a picture, helpers, a compaction, a way that was left, a title."""
    made = QwenSession()
    made.user("Run it.").system("attribution_snapshot", snapshot={"version": 1})
    made.says({"text": "let me see", "thought": True}, "I will look.", call("c1"), call("c2", "read_file", path="x"))
    made.result(answer("c1")).result(answer("c2", "read_file", error="File not found: x"), status="error")
    made.says("It worked.")
    made.asked(USAGE, "#managed-auto-memory-extractor-1#0", subagent_id="managed-auto-memory-extractor-1")
    made.system("at_command", filesRead=["dot.png"], status="success", userText="look at @dot.png")
    made.user(
        "<system-reminder>\n1 background agent was restored.\n</system-reminder>\n\n",
        "look at @dot.png",
        "\n--- Content from referenced files ---",
        "\nContent from dot.png:\n",
        PICTURE,
        "\n--- End of content ---",
    )
    made.says("A dot.")
    left = made.tail
    made.user("Never mind.").says("Gone.").back_to(left).system("rewind", truncatedCount=2)
    made.asked(USAGE, prompt="compress").compacted(("user", SUMMARY), ("model", GOT_IT))
    made.user("Are you there?").says("Still here.", call("c3", "agent", prompt="SUB: look")).result(
        answer("c3", "agent")
    )
    made.says("Launched.").user(
        "<task-notification>done</task-notification>", subtype="notification", provenance="system"
    )
    made.says("Both are back.").system("custom_title", customTitle="Two agents", titleSource="manual")
    return made


def agent_session(agent: str = "general-purpose-c3") -> QwenSession:
    """A sub-agent's file: a record for each part of an answer."""
    made = QwenSession(agent=agent)
    made.user("SUB: look").says({"text": "hm", "thought": True}).says(call("s1"), usage={}).says(call("s2"), usage={})
    return made.result(answer("s1")).result(answer("s2")).says("SUB: done")
