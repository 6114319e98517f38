"""A session of Claude Code as large as one likes: prompts, thoughts, answers, calls with their results and failures."""

from __future__ import annotations

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_WORDS = """
the a session store agent test error commit file path read write build index search token value branch merge result
retry cache lock thread socket server client request answer message tool call
"""
WORDS = _WORDS.split()
MODEL = "claude-opus-4-5-20251101"


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.session = str(uuid.UUID(int=self.random.getrandbits(128)))
        self.time = datetime(2026, 11, 1, 9, tzinfo=UTC)
        self.parent: str | None = None
        self.lines: list[str] = []

    def say(self, count: int) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(count))

    def name(self, prefix: str) -> str:
        return f"{prefix}_{self.random.getrandbits(48):012x}"

    def put(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        self.time += timedelta(seconds=self.random.random() * 4)
        record = str(uuid.UUID(int=self.random.getrandbits(128)))
        line = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/project",
            "sessionId": self.session,
            "version": "2.1.0",
            "type": kind,
            "message": message,
            "uuid": record,
            "timestamp": self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **more,
        }
        self.lines.append(json.dumps(line))
        self.parent = record

    def turn(self) -> None:
        """A prompt, what was done about it, and an answer."""
        self.put("user", {"role": "user", "content": self.say(30)})
        for _ in range(self.random.randint(5, 40)):
            self.step()
        self.put("assistant", self.reply([{"type": "text", "text": self.say(60)}], "end_turn"))

    def reply(self, content: list[dict[str, Any]], stop: str = "tool_use") -> dict[str, Any]:
        usage = {"input_tokens": self.random.randint(5, 500), "output_tokens": self.random.randint(5, 900)}
        about = {"id": self.name("msg"), "type": "message", "role": "assistant", "model": MODEL}
        return {**about, "stop_reason": stop, "usage": usage, "content": content}

    def step(self) -> None:
        if self.random.random() < 0.3:
            self.put("assistant", self.reply([{"type": "thinking", "thinking": self.say(60), "signature": "x" * 40}]))
        if self.random.random() < 0.5:
            self.put("assistant", self.reply([{"type": "text", "text": self.say(40)}]))
        call, tool = self.name("toolu"), self.random.choice(["Bash", "Read", "Edit", "Grep", "Write"])
        path = f"/home/dev/project/{self.random.choice(WORDS)}.py"
        given = {
            "Bash": {"command": "ls -la " + self.say(3)},
            "Read": {"file_path": path},
            "Edit": {"file_path": path, "old_string": self.say(20), "new_string": self.say(20)},
            "Grep": {"pattern": self.say(1)},
            "Write": {"file_path": path, "content": self.say(50)},
        }[tool]
        self.put("assistant", self.reply([{"type": "tool_use", "id": call, "name": tool, "input": given}]))
        words, failed = self.say(self.random.choice([20, 80, 300])), self.random.random() < 0.01
        result = {"type": "tool_result", "tool_use_id": call, "content": words, "is_error": failed}
        self.put("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": self.say(40)})


def write_large_session(home: Path, records: int, seed: int = 7) -> tuple[str, Path, list[str]]:
    """Write a session of at least so many records below the home of Claude Code: its id, its file, its records' ids."""
    writer = _Writer(seed)
    while len(writer.lines) < records:
        writer.turn()
    path = home / "projects" / "-home-dev-project" / f"{writer.session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(writer.lines) + "\n")
    return writer.session, path, [json.loads(line)["uuid"] for line in writer.lines]
