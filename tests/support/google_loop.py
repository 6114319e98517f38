"""Calls of Google's SDK against a scripted model, and what of them went over the wire."""

from __future__ import annotations

import json
import ssl
from typing import Any

from google import genai
from google.genai import types

from harken import Session
from harken.capture import TranscriptEntry
from support.google_wire import part_of, step_of
from support.scripted_model import Block, Call, Cue, Say, ScriptedModel, Think

MODEL = "gemini-scripted"
SYSTEM = "Be brief."
QUESTION = "What is in a.txt, and how large is it?"
TURNS: list[Cue] = [
    [Think("Two tools know."), Say("I look."), Call("read", {"path": "a.txt"}), Call("size", {"path": "a.txt"})],
    [Say("It says hello, in 5 bytes.")],
]
"""A turn with thinking and two calls, which have no ids, and the answer."""
ANSWER = "It says hello, in 5 bytes."
Line = tuple[str, str, str | None]
"""An entry as far as the wire tells it: role, content and tool."""


def read(path: str) -> str:
    """What is in a file."""
    return "hello"


def size(path: str) -> int:
    """How large a file is."""
    return 5


def config(*tools: Any, **options: Any) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(system_instruction=SYSTEM, tools=list(tools) or None, **options)


_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For every client: on loopback nobody needs it, and to make three for each takes longer than a test."""


def client_for(url: str, *, vertexai: bool = False, **options: Any) -> genai.Client:
    """A client that asks the scripted model."""
    later = {"verify": _TLS, "ssl": _TLS, **options.pop("async_client_args", {})}
    http = types.HttpOptions(base_url=url, client_args={"verify": _TLS}, async_client_args=later, **options)
    return genai.Client(vertexai=vertexai, api_key="k", http_options=http)


def captured(session: Session, source: str = "primary") -> list[Line]:
    """The entries of a session; calls and results know each other."""
    entries = session[TranscriptEntry].where(lambda entry: entry.source == source)
    assert list(range(len(entries))) == [entry.sequence for entry in entries]
    return [(one.role, one.content, one.tool_name) for one in entries]


def metadata(session: Session) -> list[dict[str, Any]]:
    return [entry.metadata or {} for entry in session[TranscriptEntry].all()]


def on_the_wire(model: ScriptedModel) -> list[Line]:
    """What the model heard last, which is everything, and what it answered; what came in pieces is one."""
    body = model.requests[-1].body
    told = body.get("systemInstruction") or {}
    lines: list[Line] = [("system", part["text"], None) for part in told.get("parts", ())]
    for content in body["contents"]:
        role = {"model": "assistant"}.get(content["role"], content["role"])
        lines += [_line(role, part) for part in content["parts"]]
    said = [part for part in model.played[-1] if isinstance(part, Say | Think | Call | Block)]
    lines += [_line("assistant", part_of(part)) for part in said]
    return _joined(lines)


def _line(role: str, part: dict[str, Any]) -> Line:
    if "functionCall" in part:
        return role, json.dumps(part["functionCall"].get("args", {}), indent=2), part["functionCall"]["name"]
    if "functionResponse" in part:
        answer = part["functionResponse"]
        return "tool", json.dumps(answer["response"], separators=(",", ":")), answer["name"]
    return "thought" if part.get("thought") else role, part["text"], None


def _joined(lines: list[Line]) -> list[Line]:
    found: list[Line] = []
    for role, words, tool in lines:
        if found and tool is None and found[-1][0] == role and role in ("assistant", "thought") and not found[-1][2]:
            found[-1] = role, found[-1][1] + words, None
        elif words:
            found.append((role, words, tool))
    return [("assistant" if role == "thought" else role, words, tool) for role, words, tool in found]


def interactions_on_the_wire(model: ScriptedModel) -> list[Line]:
    """What the model heard in each interaction, and what it answered."""
    lines: list[Line] = [("system", model.requests[0].body["system_instruction"], None)]
    for request, turn in zip(model.requests, model.played, strict=True):
        given = request.body["input"]
        for step in [{"type": "user_input", "content": given}] if isinstance(given, str) else given:
            lines.append(_step_line(step))
        lines += [_step_line(step_of(model, part)) for part in turn if isinstance(part, Say | Think | Call)]
    return lines


def _step_line(step: dict[str, Any]) -> Line:
    match step["type"]:
        case "user_input":
            return "user", step["content"], None
        case "function_call":
            return "assistant", json.dumps(step["arguments"], indent=2), step["name"]
        case "function_result":
            return "tool", step["result"], step["name"]
    (content,) = step.get("content") or step["summary"]
    return "assistant", content["text"], None
