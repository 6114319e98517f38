"""Sessions for what the page asks: a day of Claude Code by hand, written where an import finds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.claude_lines import assistant, call, notice, result, text, thinking, user

DAY = "2026-01-01"
SUMMARY = (
    "This session is being continued. The user asked: please mend the parser in parse.py today. Then it was built."
)


def failing(uuid: str, parent: str, name: str, seconds: float) -> dict[str, Any]:
    made = result(uuid, parent, name, seconds)
    made["message"]["content"][0]["is_error"] = True
    return made


def edit(name: str, path: str) -> dict[str, Any]:
    given = {"file_path": path, "old_string": "a", "new_string": "b"}
    return {"type": "tool_use", "id": name, "name": "Edit", "input": given}


def working_day() -> list[dict[str, Any]]:
    """A prompt, an edit, a command that fails three times, a compaction, a pause, a question."""
    boundary = {"compactMetadata": {"trigger": "auto", "preTokens": 120_000}, "logicalParentUuid": "a5"}
    return [
        user("p1", None, "please mend the parser in parse.py today", 0),
        assistant("t1", "p1", [thinking("hm")], "m1", 2),
        assistant("a1", "t1", [edit("c1", "/x/parse.py")], "m2", 5),
        result("r1", "a1", "c1", 6),
        assistant("a2", "r1", [call("c2")], "m3", 8),
        failing("r2", "a2", "c2", 18),
        assistant("a3", "r2", [call("c3")], "m4", 20),
        failing("r3", "a3", "c3", 30),
        assistant("a4", "r3", [call("c4")], "m5", 31),
        failing("r4", "a4", "c4", 41),
        user("p2", "r4", "forget the colour of the old button", 50),
        assistant("a5", "p2", "I have mended it.", "m6", 55),
        notice("k1", None, "compact_boundary", 60, **boundary),
        user("s1", "k1", SUMMARY, 61, isCompactSummary=True, isVisibleInTranscriptOnly=True),
        user("p3", "s1", "and now?", 1000),
        assistant("a6", "p3", [text("Shall I write a test?")], "m7", 1005),
    ]


def renamed(records: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """The same records under other names: another session says the same, and is no copy."""
    text = json.dumps(records)
    for key in ("uuid", "parentUuid", "logicalParentUuid", "id", "requestId", "tool_use_id"):
        text = text.replace(f'"{key}": "', f'"{key}": "{prefix}')
    found: list[dict[str, Any]] = json.loads(text)
    return found


def write_session(home: Path, records: list[dict[str, Any]], session: str = "S", project: str = "/x") -> Path:
    folder = home / ".claude" / "projects" / project.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session}.jsonl"
    lines = [record | {"sessionId": session, "cwd": project} for record in records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
