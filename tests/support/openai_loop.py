"""A researcher's loop over OpenAI's SDK against a scripted model, and what of it went over the wire."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from openai import AsyncOpenAI, OpenAI

from harken import Session
from harken.capture import TranscriptEntry
from support.scripted_model import Call, Cue, Say, ScriptedModel, Think

SYSTEM = "Be brief."
QUESTION = "What is in a.txt, and how large is it?"
TURNS: list[Cue] = [
    [Call("read", {"path": "a.txt"}, id="call_a"), Call("size", {"path": "a.txt", "unit": "bytes"}, id="call_b")],
    [Say("It says hello, in 5 bytes.")],
]
"""A turn with two calls, and the answer."""
TOOLS = ("read", "size")
RESULTS = {"call_a": "hello", "call_b": "5"}
_NOTHING = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
Line = tuple[str, str, str | None, str | None]
"""An entry as far as the wire tells it: role, content, tool and call."""


@contextmanager
def scripted(*turns: Cue) -> Iterator[tuple[ScriptedModel, str]]:
    """A model on loopback with these turns, and the address of its API."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    model = ScriptedModel()
    model.play(*turns)
    model.serve(listener)
    try:
        yield model, f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        model.close()


def client_of(url: str, **options: Any) -> OpenAI:
    """A client of that address; certificates, which take long to load, are none of its business."""
    return OpenAI(api_key="k", base_url=url, http_client=httpx.Client(verify=False), **options)


def async_client_of(url: str, **options: Any) -> AsyncOpenAI:
    """The same for tasks."""
    return AsyncOpenAI(api_key="k", base_url=url, http_client=httpx.AsyncClient(verify=False), **options)


def chat_tools() -> list[Any]:
    return [{"type": "function", "function": {"name": name, "parameters": _NOTHING, "strict": True}} for name in TOOLS]


def response_tools() -> list[Any]:
    return [{"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False} for name in TOOLS]


def captured(session: Session, source: str = "primary") -> list[Line]:
    """The entries of a session."""
    entries = session[TranscriptEntry].where(lambda entry: entry.source == source)
    assert list(range(len(entries))) == [entry.sequence for entry in entries]
    return [(one.role, one.content, one.tool_name, one.tool_call_id) for one in entries]


def metadata(session: Session) -> list[dict[str, Any]]:
    return [entry.metadata or {} for entry in session[TranscriptEntry].all()]


def on_the_wire(model: ScriptedModel) -> list[Line]:
    """What the model heard last, which is everything, and what it answered."""
    request = model.requests[-1]
    names: dict[str, str] = {}
    lines = [*_instructions(request.body)]
    items = request.body["messages"] if request.api == "chat" else request.body["input"]
    for item in items if isinstance(items, list) else [{"role": "user", "content": items}]:
        lines += _given(item, names)
    for part in model.played[-1]:
        if isinstance(part, Say | Think):
            lines.append(("assistant", part.text, None, None))
        elif isinstance(part, Call):
            lines.append(_call(part.name, part.id, part.input))
    return lines


def _instructions(body: dict[str, Any]) -> Iterator[Line]:
    if body.get("instructions"):
        yield "system", body["instructions"], None, None


def _given(item: dict[str, Any], names: dict[str, str]) -> Iterator[Line]:
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call":
        names[item["call_id"]] = item["name"]
        yield _call(item["name"], item["call_id"], json.loads(item["arguments"]))
    elif kind == "function_call_output" or role == "tool":
        call = item.get("call_id") or item.get("tool_call_id") or ""
        yield "tool", item.get("output") or item.get("content") or "", names[call], call
    elif kind == "reasoning":
        yield "assistant", item["summary"][0]["text"], None, None
    else:
        words = item.get("content")
        if isinstance(words, list):
            words = "".join(part["text"] for part in words)
        if words:
            yield "system" if role in ("system", "developer") else str(role), words, None, None
        for call in item.get("tool_calls") or ():
            asked = call["function"]
            names[call["id"]] = asked["name"]
            yield _call(asked["name"], call["id"], json.loads(asked["arguments"]))


def _call(name: str, call_id: str, given: Any) -> Line:
    return "assistant", json.dumps(given, indent=2), name, call_id
