"""Messages of a small API of our own, for tests of what every captured SDK has in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken.events import Event, Prompt, Response, System, ToolCall, ToolResult

Message = dict[str, Any]


def read(message: Message) -> Iterator[Event]:
    """Messages of a small API of our own."""
    words = message.get("content", "")
    match message["role"]:
        case "system":
            yield System(subtype="instructions", message=words)
        case "user":
            yield Prompt(content=words)
        case "tool":
            yield ToolResult(id=message["id"], output=words)
        case _:
            if words:
                yield Response(content=words)
            for call in message.get("calls", ()):
                yield ToolCall(id=call, name="look", input=b'{"at": 1}')


def user(words: str) -> Message:
    return {"role": "user", "content": words}


def assistant(words: str, *calls: str) -> Message:
    return {"role": "assistant", "content": words, "calls": list(calls)}
