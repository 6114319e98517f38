"""A researcher's loop over Anthropic's SDK against a scripted model, and what of it went over the wire."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harken import Session
from harken.capture import TranscriptEntry
from support.anthropic_wire import block_of
from support.scripted_model import Block, Call, Cue, Say, ScriptedModel, Think

MODEL = "claude-scripted-1"
SYSTEM = "Be brief."
QUESTION = "What is in a.txt, and how large is it?"
TURNS: list[Cue] = [
    [
        Think("Two tools know."),
        Say("I look."),
        Call("read", {"path": "a.txt"}, id="toolu_a"),
        Call("size", {"path": "a.txt", "unit": "bytes"}, id="toolu_b"),
    ],
    [Say("It says hello, in 5 bytes.")],
]
"""A turn with thinking and two calls, and the answer."""
RESULTS = {"toolu_a": "hello", "toolu_b": "5"}
TOOLS: list[Any] = [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "size")]
ASKED: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "system": SYSTEM, "tools": TOOLS}
"""What each request of the loop says beside its messages."""
Line = tuple[str, str, str | None, str | None]
"""An entry as far as the wire tells it: role, content, tool and call."""


@contextmanager
def scripted(*turns: Cue) -> Iterator[tuple[ScriptedModel, str]]:
    """A model on loopback with these turns, and the address of its API."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    model = ScriptedModel(asides=False)
    model.play(*turns)
    model.serve(listener)
    try:
        yield model, f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        model.close()


def question(words: str = QUESTION) -> list[Any]:
    return [{"role": "user", "content": words}]


def results(message: Any) -> list[Any]:
    """What the host sends after a message: the message itself and the results of its calls."""
    found = [
        {"type": "tool_result", "tool_use_id": block.id, "content": RESULTS[block.id]}
        for block in message.content
        if block.type == "tool_use"
    ]
    return [{"role": "assistant", "content": message.content}, {"role": "user", "content": found}]


def captured(session: Session, source: str = "primary") -> list[Line]:
    """The entries of a session."""
    entries = session[TranscriptEntry].where(lambda entry: entry.source == source)
    assert list(range(len(entries))) == [entry.sequence for entry in entries]
    return [(one.role, one.content, one.tool_name, one.tool_call_id) for one in entries]


def metadata(session: Session) -> list[dict[str, Any]]:
    return [entry.metadata or {} for entry in session[TranscriptEntry].all()]


def on_the_wire(model: ScriptedModel) -> list[Line]:
    """What the model heard last, which is everything, and what it answered."""
    body = model.requests[-1].body
    names: dict[str, str] = {}
    lines: list[Line] = [("system", body["system"], None, None)] if "system" in body else []
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            lines.append(_line(message["role"], block, names))
    said = [part for part in model.played[-1] if isinstance(part, Say | Think | Call | Block)]
    return lines + [_line("assistant", block_of(model, part), names) for part in said]


def _line(role: str, block: dict[str, Any], names: dict[str, str]) -> Line:
    match block["type"]:
        case "text":
            return role, block["text"], None, None
        case "thinking":
            return role, block["thinking"], None, None
        case "tool_use" | "server_tool_use":
            names[block["id"]] = block["name"]
            return role, json.dumps(block["input"], indent=2), block["name"], block["id"]
        case "tool_result":
            return "tool", block["content"], names[block["tool_use_id"]], block["tool_use_id"]
    raise AssertionError(block)
