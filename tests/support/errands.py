"""A session of Claude Code whose sub-agents were each called in a few words, one of them in the background."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "5e551011-0000-4000-8000-000000000001"
SPEED, NAMES = "Review the speed", "Review the names"
LAST = "Nothing is slow."
LAUNCHED = "Async agent launched successfully."
FILE = f"projects/-w-shop/{SESSION}.jsonl"


def _at(seconds: float) -> str:
    return f"2026-01-01T09:00:{int(seconds):02d}.{round(seconds % 1 * 1000):03d}Z"


class _File:
    def __init__(self, agent: str = "") -> None:
        self.agent = agent
        self.lines: list[str] = []
        self.parent: str | None = None

    def add(self, kind: str, seconds: float, content: Any, **more: Any) -> None:
        record = f"{self.agent or 'main'}-{len(self.lines)}"
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"msg_{record}", "model": "claude-opus-4-5-20251101"}
            message |= {"usage": {"input_tokens": 10, "output_tokens": 5}}
            more |= {"requestId": f"req_{record}"}
        head = {"type": kind, "uuid": record, "parentUuid": self.parent, "sessionId": SESSION, "version": "2.1.0"}
        head |= {"isSidechain": bool(self.agent), "cwd": "/w/shop", "timestamp": _at(seconds)}
        head |= {"agentId": self.agent} if self.agent else {}
        self.lines.append(json.dumps(head | {"message": message} | more))
        self.parent = record

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n")


def _task(name: str, description: str, prompt: str) -> list[dict[str, Any]]:
    given = {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}
    return [{"type": "tool_use", "id": name, "name": "Task", "input": given}]


def _result(name: str, words: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": name, "content": words}]


def write_errands(home: Path) -> Path:
    """Write it below a home of Claude Code; the session's file."""
    main, speed, names = _File(), _File("a0000001"), _File("a0000002")
    main.add("user", 0, "Have the shop reviewed.")
    main.add("assistant", 1, _task("t1", SPEED, "Look for slow code in the shop."))
    main.add("user", 2, _result("t1", LAUNCHED), toolUseResult={"status": "async_launched", "agentId": "a0000001"})
    main.add("assistant", 3, _task("t2", NAMES, "Look at the names in the shop."))
    # The two speak at the same instants.
    for agent, words in ((speed, "slow code"), (names, "the names")):
        agent.add("user", 4, f"Look {'for' if agent is speed else 'at'} {words} in the shop.")
        agent.add("assistant", 6, [{"type": "text", "text": f"I look {words} up."}])
        agent.add("assistant", 8, [{"type": "text", "text": "All names are good."}])
    speed.add("assistant", 9, [{"type": "tool_use", "id": "s1", "name": "Bash", "input": {"command": "time make"}}])
    speed.add("user", 10, [{"type": "tool_result", "tool_use_id": "s1", "content": "no make", "is_error": True}])
    speed.add("assistant", 30, [{"type": "text", "text": LAST}])
    main.add("user", 9, _result("t2", "All names are good."), toolUseResult={"agentId": "a0000002"})
    overloaded = {"type": "system", "subtype": "api_error", "level": "error", "error": {"status": 529}}
    main.add("system", 30, "", **overloaded)
    main.add("assistant", 31, [{"type": "text", "text": "It was reviewed."}])
    main.write(home / FILE)
    for agent in (speed, names):
        agent.write(home / FILE.removesuffix(".jsonl") / "subagents" / f"agent-{agent.agent}.jsonl")
    return home / FILE
