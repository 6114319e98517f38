"""Claude Code records in miniature, for tests that build a session line by line."""

from __future__ import annotations

import json
from typing import Any

from harken.formats.claude_code import context, messages

Record = dict[str, Any]
MODEL = "claude-sonnet-4-5-20250929"


def at(seconds: float) -> str:
    """An instant of the test's own day."""
    whole = int(seconds)
    return f"2026-01-01T00:{whole // 60:02d}:{whole % 60:02d}.{round(seconds % 1 * 1000):03d}Z"


def _record(kind: str, uuid: str, parent: str | None, seconds: float, **more: Any) -> Record:
    head = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/x", "sessionId": "S"}
    return head | {"version": "2.1.0", "type": kind, "uuid": uuid, "timestamp": at(seconds)} | more


def user(uuid: str, parent: str | None, content: Any, seconds: float = 0, **more: Any) -> Record:
    return _record("user", uuid, parent, seconds, message={"role": "user", "content": content}, **more)


def assistant(
    uuid: str, parent: str | None, content: Any, name: str, seconds: float = 0, *, model: str = MODEL, **more: Any
) -> Record:
    blocks = [text(content)] if isinstance(content, str) else content
    message = {"id": name, "type": "message", "role": "assistant", "model": model, "content": blocks}
    message |= {"usage": {"input_tokens": 1, "output_tokens": 1}}
    return _record("assistant", uuid, parent, seconds, requestId=f"req_{name}", message=message, **more)


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def thinking(words: str) -> Record:
    return {"type": "thinking", "thinking": words, "signature": f"sig-{words}"}


def call(name: str, tool: str = "Bash") -> Record:
    return {"type": "tool_use", "id": name, "name": tool, "input": {"command": "ls"}}


def result(uuid: str, parent: str | None, name: str, seconds: float = 0, **more: Any) -> Record:
    block = {"type": "tool_result", "tool_use_id": name, "content": f"out {name}"}
    return user(uuid, parent, [block], seconds, **more)


def notice(uuid: str, parent: str | None, subtype: str, seconds: float = 0, **more: Any) -> Record:
    return _record("system", uuid, parent, seconds, subtype=subtype, **{"content": "c", **more})


def progress(uuid: str, parent: str | None, seconds: float = 0, **more: Any) -> Record:
    data = {"type": "hook_progress"} | more
    return _record("progress", uuid, parent, seconds, data=data, toolUseID="x", parentToolUseID="x")


def attachment(uuid: str, parent: str | None, data: Record, seconds: float = 0, **more: Any) -> Record:
    return _record("attachment", uuid, parent, seconds, attachment=data, **more)


def boundary(uuid: str, seconds: float = 20, **metadata: Any) -> Record:
    more = {"logicalParentUuid": None, "compactMetadata": {"trigger": "auto", "preTokens": 100} | metadata}
    return _record("system", uuid, None, seconds, subtype="compact_boundary", content="Conversation compacted", **more)


def summary(uuid: str, parent: str, seconds: float = 21) -> Record:
    return user(uuid, parent, "SUMMARY", seconds, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def last_prompt(leaf: str) -> Record:
    return {"type": "last-prompt", "lastPrompt": "p", "leafUuid": leaf, "sessionId": "S"}


def dump(*records: Record | bytes) -> bytes:
    """The records as a file; bytes go in as they are."""
    return b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records)


def sent(*records: dict[str, Any] | bytes, model: str | None = MODEL) -> list[str]:
    """The request for the records, which is the same from the file and from its context."""
    data = dump(*records)
    assert messages(data, model=model) == messages(context(data), model=model)
    return [line_of(message) for message in messages(data, model=model)]


def line_of(message: dict[str, Any]) -> str:
    return " | ".join(
        [message["role"][0].upper() + " " + _block(message["content"][0])] + [_block(b) for b in message["content"][1:]]
    )


def _block(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return f"+{block['id']}"
        case "tool_result":
            return f"{'!' if block.get('is_error') else '='}{block['tool_use_id']}"
        case "thinking":
            return f"~{block['thinking']}"
        case other:
            return f"({other})"
