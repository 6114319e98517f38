"""Requests of OpenAI's APIs: what they give the model, and each message of it as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harken.capture.exchange import CapturedRequest
from harken.events import Event, Output, Prompt
from harken.formats.kit.chat import message_events
from harken.formats.kit.openai import Speaker
from harken.formats.openai_responses import read_item


def chat_request(body: Mapping[str, Any]) -> CapturedRequest:
    """What a request of chat completions says."""
    messages = body.get("messages")
    return CapturedRequest(
        messages=list(messages) if isinstance(messages, list | tuple) else [],
        read=heard_message,
        model=str(body.get("model") or ""),
        settings={key: value for key, value in body.items() if key not in ("messages", "model")},
    )


def responses_request(body: Mapping[str, Any]) -> CapturedRequest:
    """What a request of the Responses API says."""
    told = body.get("instructions")
    thread = body.get("conversation")
    thread = thread.get("id") if isinstance(thread, Mapping) else thread
    follows = body.get("previous_response_id") or thread
    return CapturedRequest(
        messages=messages_in(body),
        read=item_events,
        instructions=[told] if isinstance(told, str) and told else [],
        model=str(body.get("model") or ""),
        settings={key: value for key, value in body.items() if key not in ("input", "instructions", "model")},
        follows=follows if isinstance(follows, str) else "",
    )


def messages_in(body: Mapping[str, Any]) -> list[Any]:
    """What a request of the Responses API gives the model."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(given) if isinstance(given, Iterable) else []


def item_events(item: Any) -> Iterator[Event]:
    """One item of a request as events."""
    if isinstance(item, dict) and item.get("type") in _SAID_BY_HOST:
        yield Prompt(content=f"[{item['type']}]", message_id="@")
    yield from read_item(item, {"message_id": "@"}, _SPEAKER)


_SAID_BY_HOST = ("mcp_approval_response", "program_output")
"""Items that no event has a place for, and that no reply holds: they are an entry at least."""
_SPEAKER = Speaker()


def heard_message(message: Any) -> Iterator[Event]:
    """One chat message as events; of what is neither words nor media, at least that it was there."""
    content = message.get("content") if isinstance(message, dict) else None
    events = list(message_events(message))
    kept = [event for event in events if isinstance(event, Output)]
    if content and len(kept) == len(events) and message.get("role") == "user":
        kinds = (part.get("type") for part in content if isinstance(part, dict))
        yield Prompt(content="\n".join(f"[{kind}]" for kind in kinds))
    yield from events
