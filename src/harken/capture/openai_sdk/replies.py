"""Replies of OpenAI's APIs as events, with what else they say: usage, why they ended, ids."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from harken.events import Error, Event, Metric, Output, Response, ToolResult
from harken.events.base import clean, text_at
from harken.formats import openai_chat, openai_responses
from harken.formats.kit.jsonl import Record, encode

from .streams import WholeReply

_CHAT = frozenset({"id", "object", "created", "model", "choices", "usage"})
"""What of a completion is said by its events, or by its metadata under another name."""
_OWN = ("status", "incomplete_details", "service_tier", "conversation", "background")
"""What a response says of itself; the rest of it repeats the request."""


@dataclass
class ReadReply:
    """A reply, as an exchange takes it."""

    events: list[Event] = field(default_factory=list)
    each: list[dict[str, Any]] = field(default_factory=list)
    """For each event what else is known of its entry."""
    entries: dict[int, dict[str, Any]] = field(default_factory=dict)
    """For events that are no entry by themselves, by their number: the entry they are."""
    usage: Metric | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def add(self, event: Event, about: dict[str, Any] | None = None, entry: dict[str, Any] | None = None) -> None:
        """The next event."""
        if entry is not None:
            self.entries[len(self.events)] = entry
        self.events.append(event)
        self.each.append(about or {})


def read_chat(reply: WholeReply) -> ReadReply:
    """A chat completion."""
    body = reply.body
    found = ReadReply(metadata={key: value for key, value in body.items() if key not in _CHAT})
    choices = [one for one in _list(body.get("choices")) if isinstance(one, dict)]
    first = choices[0] if choices else {}
    refusal = _inner(first, "message").get("refusal")
    for event in openai_chat.events_in({**body, "choices": choices[:1], "messages": []}):
        if isinstance(event, Metric):
            found.usage = event
        else:
            refused = isinstance(event, Response) and bool(refusal) and event.content == refusal
            found.add(event, {"kind": "refusal"} if refused else None)
    for other in choices[1:]:
        about = {"kind": "choice", "choice": other.get("index"), "finish_reason": other.get("finish_reason")}
        found.add(Output(raw=encode(other), api_id=text_at(body, "id")), about, _offered(other))
    found.metadata |= _names(body) | {"finish_reason": first.get("finish_reason")}
    return _ended(found, reply._replace(error=reply.error or body.get("error")))  # OpenRouter's come with status 200


def _offered(choice: Record) -> dict[str, Any]:
    """A choice beside the first: an entry of its own, and no part of the conversation."""
    message = _inner(choice, "message")
    words = message.get("content") or message.get("refusal")
    return {"role": "assistant", "content": words if isinstance(words, str) else _pretty(message)}


def read_response(reply: WholeReply) -> ReadReply:
    """A response of the Responses API."""
    body = reply.body
    found = ReadReply(metadata={key: body.get(key) for key in _OWN})
    items = _list(body.get("output"))
    document = {key: body.get(key) for key in ("id", "model", "created_at", "usage")}
    for event in openai_responses.events_in({**document, "output": items}):
        if isinstance(event, Metric):
            found.usage = event
            continue
        item = items[int(event.message_id[1:])]
        if isinstance(event, Output) and isinstance(item, dict):
            _add_unknown(found, event, item)
        else:
            found.add(event, _about(event, item))
    found.metadata |= _names(body)
    if found.usage is not None:
        reason = _inner(body, "incomplete_details").get("reason") or body.get("status")
        tier = text_at(body, "service_tier")
        served = "" if tier in ("auto", "default") else tier
        found.usage = found.usage.replace(stop_reason=clean(reason) if isinstance(reason, str) else "", served=served)
    error = reply.error or body.get("error")
    return _ended(found, reply._replace(error=error))


def _about(event: Event, item: Record) -> dict[str, Any] | None:
    if isinstance(event, ToolResult):
        return {"kind": "server_tool"}  # the host's own come in requests
    return {"kind": "refusal"} if isinstance(event, Response) and _is_refusal(item) else None


def _is_refusal(item: Record) -> bool:
    parts = [part for part in _list(item.get("content")) if isinstance(part, dict)]
    return bool(parts) and all(part.get("type") == "refusal" for part in parts)


def _add_unknown(found: ReadReply, event: Output, item: Record) -> None:
    """An item that no event has a place for is an entry with what it says."""
    kind = text_at(item, "type")
    entry: dict[str, Any] = {"role": "assistant", "content": _pretty(item)}
    if served := kind.endswith("_call"):
        entry |= {"tool_name": kind.removesuffix("_call"), "tool_call_id": text_at(item, "id") or None}
    found.add(event, {"kind": "server_tool" if served else "item", "type": kind}, entry)


def _ended(found: ReadReply, reply: WholeReply) -> ReadReply:
    """What went wrong, if anything did."""
    if reply.error:
        found.metadata["error"] = reply.error
        words = reply.error.get("message") if isinstance(reply.error, dict) else reply.error
        found.add(Error(message=clean(str(words or "the provider reports an error"))))
    elif not found.events and not reply.whole:
        found.add(Error(message="the reply ended before anything came"))
    found.metadata["partial"] = None if reply.whole else True
    return found


def unreadable(body: bytes) -> ReadReply:
    """A reply that is none of the API."""
    found = ReadReply()
    found.add(Error(message=f"the reply is not JSON: {clean(body[:2000].decode(errors='replace'))}"))
    return found


def _names(body: Record) -> dict[str, Any]:
    return {"response_id": body.get("id"), "model": body.get("model"), "usage": body.get("usage")}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _inner(value: Record, key: str) -> Record:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _pretty(value: Any) -> str:
    return clean(json.dumps(value, indent=2, ensure_ascii=False))
