"""Messages that the API answered with, as events, with what else they say: usage, why they ended, ids."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from harken.events import Error, Event, Metric, Output, Response, System, ToolCall, ToolResult
from harken.events.base import clean, text_at
from harken.formats.claude_code.read import usage_metric
from harken.formats.kit.anthropic import assistant_event
from harken.formats.kit.jsonl import Record

from .streams import INPUT, WholeMessage

_SAID = frozenset({"type", "role", "content", "id"})
"""What of a message its events say, or its metadata under another name."""


@dataclass
class ReadMessage:
    """A reply, as an exchange takes it."""

    events: list[Event] = field(default_factory=list)
    each: list[dict[str, Any]] = field(default_factory=list)
    """For each event what else is known of its entry."""
    entries: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The entries that no event says, by the number of the event that keeps them."""
    usage: Metric | None = None
    also: list[Metric] = field(default_factory=list)
    """What was used beside it: by a compaction, whose figures are not among those of the message."""
    metadata: dict[str, Any] = field(default_factory=dict)

    def add(self, event: Event, about: dict[str, Any] | None = None) -> None:
        """The next event."""
        self.events.append(event)
        self.each.append(about or {})


def read_message(reply: WholeMessage, request_id: str) -> ReadMessage:
    """The message as events."""
    body = reply.body
    model, name = text_at(body, "model"), text_at(body, "id")
    found = ReadMessage(metadata={"response_id": name, **{key: body[key] for key in body if key not in _SAID}})
    content = body.get("content", [])
    refused = body.get("stop_reason") == "refusal"
    for block in content if isinstance(content, list) else [content]:
        event = _event(block, model)
        if isinstance(event, Output):
            found.entries[len(found.events)] = _entry(block)
        found.add(event.replace(api_id=name), _about(block, event, refused=refused))
    if not found.events and refused:
        found.add(Response(api_id=name, model=model), {"kind": "refusal"})
    if isinstance(usage := body.get("usage"), dict):
        stop = text_at(body, "stop_reason")
        found.usage = usage_metric(usage, model=model, stop_reason=stop, api_id=name, request_id=request_id)
        found.also = [
            usage_metric(one, model=model, api_id=f"{name}:compaction:{number}", request_id=request_id)
            for number, one in enumerate(_compactions(usage))
        ]
    if reply.error:
        _failed(found, reply.error)
    elif not found.events and not reply.whole:
        found.add(Error(message="the reply ended before anything came"))
    found.metadata |= {"request_id": request_id or None, "partial": None if reply.whole else True}
    return found


def _compactions(usage: Record) -> list[Record]:
    iterations = usage.get("iterations")
    found = iterations if isinstance(iterations, list) else []
    return [one for one in found if isinstance(one, dict) and one.get("type") == "compaction"]


def _event(block: Any, model: str) -> Event:
    event = assistant_event(block, model)
    if isinstance(event, ToolCall) and isinstance(text := block.get(INPUT), str):
        event = event.replace(input=clean(text).encode())  # it was cut in the middle
    return event


def _about(block: Any, event: Event, *, refused: bool) -> dict[str, Any]:
    if not isinstance(block, dict):
        return {}
    match event:
        case Response():
            return {"kind": "refusal" if refused else None, "citations": block.get("citations") or None}
        case System():
            return {key: block.get(key) for key in ("encrypted_content", "signature")}
        case ToolCall() | ToolResult():
            more = {"type": block.get("type") if block.get("type") != "tool_use" else None}
            more |= {"server": block.get("server_name"), "caller": block.get("caller")}
            return {**more, "kind": "server_tool"} if isinstance(event, ToolResult) else more
    return {}


def _entry(block: Any) -> dict[str, Any]:
    """A block that no event has a place for."""
    kind = block.get("type") if isinstance(block, dict) else None
    words = clean(json.dumps(block, indent=2, ensure_ascii=False))
    return {"role": "assistant", "content": words, "metadata": {"kind": kind if isinstance(kind, str) else "block"}}


def _failed(found: ReadMessage, error: Any) -> None:
    """The provider said in the middle that something went wrong."""
    found.metadata["error"] = error
    words = error.get("message") if isinstance(error, dict) else error
    found.add(Error(message=clean(str(words or "the provider reports an error"))))


def unreadable(body: bytes) -> ReadMessage:
    """A reply that is none of the API."""
    found = ReadMessage()
    found.add(Error(message=f"the reply is no message: {clean(body[:2000].decode(errors='replace'))}"))
    return found
