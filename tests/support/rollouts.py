"""Small rollouts, built line by line as Codex writes them."""

from __future__ import annotations

import json
from typing import Any

THREAD = "019b88e5-a2e4-7b90-8953-38fce393c653"
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)


class Rollout:
    """Lines are added; `data` is the file."""

    def __init__(self, **meta: Any) -> None:
        self.lines: list[bytes] = []
        self._turns = 0
        if meta.pop("bare", False):
            return
        self.meta(**meta)

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def raw(self, line: bytes) -> Rollout:
        self.lines.append(line)
        return self

    def add(self, kind: str, **payload: Any) -> Rollout:
        stamp = f"2026-01-02T00:{len(self.lines) // 60:02d}:{len(self.lines) % 60:02d}.000Z"
        return self.raw(json.dumps({"timestamp": stamp, "type": kind, "payload": payload}).encode())

    def meta(self, **more: Any) -> Rollout:
        known = {"id": THREAD, "timestamp": "2026-01-02T00:00:00.000Z", "cwd": "/tmp", "originator": "codex_cli_rs"}
        return self.add("session_meta", **{**known, "cli_version": "0.166.0", "source": "cli", **more})

    def item(self, kind: str, **fields: Any) -> Rollout:
        return self.add("response_item", type=kind, **fields)

    def event(self, kind: str, **fields: Any) -> Rollout:
        return self.add("event_msg", type=kind, **fields)

    def user(self, *texts: str) -> Rollout:
        return self.item("message", **said("user", *texts))

    def developer(self, *texts: str) -> Rollout:
        return self.item("message", **said("developer", *texts))

    def model(self, *texts: str) -> Rollout:
        return self.item("message", **said("assistant", *texts))

    def call(self, call_id: str, name: str = "shell", arguments: str = "{}") -> Rollout:
        return self.item("function_call", name=name, arguments=arguments, call_id=call_id)

    def output(self, call_id: str, output: Any = "done") -> Rollout:
        return self.item("function_call_output", call_id=call_id, output=output)

    def turn(self, text: str, *between: tuple[str, dict[str, Any]], model: str = "gpt-5-codex") -> Rollout:
        """A whole turn, with lines of any kind between the prompt and the answer."""
        self._turns += 1
        name = f"turn-{self._turns}"
        self.event("task_started", turn_id=name)
        self.add("turn_context", turn_id=name, cwd="/tmp", model=model)
        self.user(text).event("user_message", message=text)
        for kind, payload in between:
            self.add(kind, **payload)
        self.event("agent_message", message=f"answer to {text}").model(f"answer to {text}")
        return self.event("task_complete", turn_id=name)

    def exchange(self, text: str) -> Rollout:
        """A prompt and an answer as old versions wrote them, without marks."""
        return self.user(text).model(f"answer to {text}")

    def compacted(self, *items: dict[str, Any]) -> Rollout:
        return self.add("compacted", message="", replacement_history=list(items))

    def tokens(self, given: int, output: int, cached: int = 0, last: dict[str, int] | None = None) -> Rollout:
        total = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output}
        return self.event("token_count", info={"total_token_usage": total, "last_token_usage": last or total})


def said(role: str, *texts: str) -> dict[str, Any]:
    """The fields of a message."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"role": role, "content": [{"type": kind, "text": text} for text in texts]}


def message(role: str, *texts: str) -> dict[str, Any]:
    """A message as an item."""
    return {"type": "message", **said(role, *texts)}


def texts_of(items: list[dict[str, Any]]) -> list[str]:
    """What the items say, one line each."""
    lines = []
    for item in items:
        if item["type"] == "message":
            lines.append("|".join(part.get("text", "picture") for part in item["content"]))
        else:
            lines.append(f"{item['type']} {item.get('call_id', '')} {item.get('output', '')}".strip())
    return lines
