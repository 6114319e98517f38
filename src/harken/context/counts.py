"""How much a delta holds: messages, and tokens as far as anybody can tell.

A message is a record, or several that share the provider's id of one message. Tokens are what the provider counted
for what the model wrote, and a quarter of the characters for everything else; the second kind is marked approximate.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.events import Error, Event, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult

CHARACTERS_PER_TOKEN = 4

SAID_BY_THE_MODEL = (Response, Thinking, ToolCall)
CONVERSATION = (Prompt, Response, Thinking, ToolCall, ToolResult, System)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a stretch of conversation."""

    messages: int = 0
    tokens: int = 0
    approximate: bool = False
    """Whether some of the tokens are estimated from characters."""


def count(events: Iterable[Event]) -> Counts:
    """What the events amount to."""
    named: set[str] = set()
    unnamed = written = heard = 0
    usage: dict[tuple[str, str], int] = {}
    for event in events:
        if isinstance(event, Metric):
            # One message may be reported several times while it grows; the largest report is the last.
            key = (event.api_id, event.request_id) if event.api_id or event.request_id else (str(len(usage)), "@")
            usage[key] = max(usage.get(key, 0), event.output_tokens or 0)
        if not isinstance(event, CONVERSATION):
            continue
        if key_of := message_key(event):
            named.add(key_of)
        else:
            unnamed += not event.index
        if isinstance(event, SAID_BY_THE_MODEL):
            written += characters(event)
        else:
            heard += characters(event)
    counted = sum(usage.values())
    guessed = heard if counted else heard + written
    return Counts(
        messages=len(named) + unnamed,
        tokens=counted + guessed // CHARACTERS_PER_TOKEN,
        approximate=guessed > 0,
    )


def message_key(event: Event) -> str:
    """What the events of one message have in common; empty where the source has no ids."""
    return event.api_id or event.message_id


def characters(event: Event) -> int:
    """How much text the event puts before the model."""
    match event:
        case Prompt(content=text) | Response(content=text) | Thinking(content=text):
            return len(text)
        case ToolCall():
            return len(event.name) + len(event.input)
        case ToolResult():
            return len(event.output)
        case System() | Error():
            return len(event.message)
    return 0
