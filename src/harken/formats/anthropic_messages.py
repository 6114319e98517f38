"""`anthropic-messages-v1`: what would go to Anthropic's Messages API, as `{"system": …, "messages": […]}`.

From Claude Code's own files `claude_code.messages` makes it word for word as the program would; this writer makes it
from events, whatever they came from. Reasoning is kept with its signature, since the API takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harken.errors import BadRecord
from harken.events import Event, Output, System
from harken.events.base import clean, of_one_agent

from .base import Format, Written
from .claude_code.records import by_text
from .kit.anthropic import BLOCKS, Block, assistant_event, user_events
from .kit.anthropic_writing import Said, arrange
from .kit.claims import NO_CLAIM, Claim
from .kit.jsonl import NotJson, Record, encode, parse_beginning, parse_document

INSTRUCTIONS = "instructions"
"""The subtype under which a system message is an event."""


def write(events: Sequence[Event]) -> Written:
    """The conversation as a request; instructions go to `system`, results into the user's next message."""
    turns = arrange(events, thinking=True)
    system = [
        {"type": "text", "text": e.message}
        for e in of_one_agent(events)[0]
        if isinstance(e, System) and e.subtype == INSTRUCTIONS
    ]
    body: Record = {"system": system} if system else {}
    losses = tuple(loss for loss in turns.losses if loss.what != "system instructions")
    return Written(data=encode(body | {"messages": _alternate(turns.messages)}), losses=losses)


def _alternate(said: Sequence[Said]) -> list[Record]:
    """User and assistant in turn: neighbours are joined, and results come first in the message that answers."""
    messages: list[Record] = []
    for one in said:
        _add(messages, one.role, one.blocks)
        if one.results:
            _add(messages, "user", [block for _, block, _ in one.results])
    return messages


def _add(messages: list[Record], role: str, blocks: list[Block]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": list(blocks)})


def read(data: bytes) -> Iterator[Event]:
    """The events of a request, of a bare list of messages, or of a single message or response."""
    body = _load(data)
    if body is None:
        yield Output(raw=data, why="not a JSON object with messages")
        return
    for index, text in enumerate(instructions_in(body.get("system"))):
        yield System(subtype=INSTRUCTIONS, message=clean(text), message_id="@system", index=index)
    messages = body.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else []):
        made = list(message_events(message))
        name = message.get("id") if isinstance(message, dict) else None
        api = clean(name) if isinstance(name, str) else ""
        for place, event in enumerate(made):
            yield event.replace(message_id=f"@{number}", index=place, api_id=api)


def join(deltas: Iterable[bytes]) -> bytes:
    """One request with the messages of all; a single one is left as it is."""
    parts = list(deltas)
    if len(parts) == 1:
        return parts[0]
    bodies = [body for part in parts if (body := _load(part)) is not None]
    if len(bodies) < len(parts):
        raise BadRecord("not a JSON object with messages")
    system = next((body["system"] for body in bodies if body.get("system")), None)
    messages = [message for body in bodies for message in body["messages"]]
    return encode(({"system": system} if system else {}) | {"messages": messages})


def _load(data: bytes) -> Record | None:
    try:
        value = parse_document(data)
    except NotJson:
        return None
    if isinstance(value, list):
        return {"messages": value}
    if isinstance(value, dict):
        return value if isinstance(value.get("messages"), list) else {"messages": [value]} if "role" in value else None
    return None


def instructions_in(system: Any) -> list[str]:
    """The texts of `system`, which is one text or blocks."""
    if isinstance(system, str):
        return [system]
    blocks = system if isinstance(system, list) else []
    return [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]


def message_events(message: Any) -> Iterator[Event]:
    """What one message says."""
    content = message.get("content") if isinstance(message, dict) else None
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(content, str | list) or role not in ("user", "assistant", "system"):
        yield Output(raw=encode(message), why="a message without a role or content")
    elif role == "user":
        yield from user_events(content, None, by_text)
    elif role == "system":
        for text in instructions_in(content):
            yield System(subtype=INSTRUCTIONS, message=clean(text))
    else:
        model = message.get("model")
        for block in [content] if isinstance(content, str) else content:
            yield assistant_event(block, clean(model) if isinstance(model, str) else "")


_REQUEST = frozenset(
    {
        "model", "messages", "max_tokens", "system", "tools", "tool_choice", "metadata", "stop_sequences", "stream",
        "temperature", "top_k", "top_p", "thinking", "container", "context_management", "mcp_servers", "service_tier",
        "betas", "anthropic_version", "anthropic_beta", "output_config", "output_format", "cache_control", "speed",
        "inference_geo",
    }
)  # fmt: skip
"""The fields of a request; a document with others is somebody's own."""
_MESSAGE = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "container"})
"""The fields of a message, of one that was a response too."""


def claim(head: bytes, path: str = "") -> Claim:
    """Whether a whole document is a request of this API, with nothing of anybody else's in it."""
    body = parse_beginning(head)
    if (
        not isinstance(body, dict)
        or not body.keys() <= _REQUEST
        or not isinstance(messages := body.get("messages"), list)
    ):
        return NO_CLAIM
    if not messages:
        return Claim(score=60, reason="it is a request without messages")
    # The last message may be cut: then it has no content yet.
    if not all(map(_is_turn, messages[:-1])) or not (
        isinstance(last := messages[-1], dict) and last.keys() <= _MESSAGE
    ):
        return NO_CLAIM
    if "max_tokens" in body or "system" in body or any(map(_has_blocks, messages)):
        return Claim(score=90, reason="it is a request of Anthropic's Messages API")
    return NO_CLAIM


def _is_turn(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.keys() <= _MESSAGE
        and message.get("role") in ("user", "assistant", "system")
        and isinstance(message.get("content"), str | list)
    )


def _has_blocks(message: Record) -> bool:
    """Whether the content is made of Anthropic's blocks; a plain text may be for any API."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") in BLOCKS for block in blocks)


FORMAT = Format(
    name="anthropic-messages-v1",
    media_type="application/json",
    description="The body of a request to Anthropic's Messages API: `system` and `messages` with content blocks.",
    empty=b'{"messages":[]}',
    join=join,
    claim=claim,
    reader=read,
    writer=write,
    places=lambda data: len((_load(data) or {}).get("messages", ())),
    pairs_calls=True,
)
