"""The Messages API: a message in one piece, and every event of its stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.scripted_model import ScriptedModel, Turn

Json = dict[str, Any]
_DELTAS = {
    "text": (("text_delta", "text"),),
    "thinking": (("thinking_delta", "thinking"), ("signature_delta", "signature")),
    "compaction": (("compaction_delta", "content"),),
}
"""What of a block comes in pieces."""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def message_object(model: ScriptedModel, body: Json, turn: Turn) -> Json:
    """One turn as a message."""
    content = [block_of(model, part) for part in turn]
    calls = any(block["type"] == "tool_use" for block in content)
    usage = {"input_tokens": model.input_tokens, "output_tokens": 10 + len(turn)}
    return {
        "id": f"msg_{model.number():06d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": usage | {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0} | model.usage,
        **model.said_of_message,
    }


def block_of(model: ScriptedModel, part: Any) -> Json:
    """What the model says, as a content block."""
    from support.scripted_model import Block, Say, Think

    if isinstance(part, Block):
        return part.content
    if isinstance(part, Say):
        return {"type": "text", "text": part.text}
    if isinstance(part, Think):
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    call_id = part.id or f"toolu_{model.number():06d}"
    return {"type": "tool_use", "id": call_id, "name": part.name, "input": part.input}


def message_steps(message: Json) -> Iterator[Json]:
    """The same as a stream of events; texts and arguments come in two pieces."""
    usage = message["usage"] | {"output_tokens": 1}
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "usage": usage}}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _begun(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in message}
    end = {"output_tokens": message["usage"]["output_tokens"]}
    more = {key: message[key] for key in ("context_management",) if key in message}
    yield {"type": "message_delta", "delta": stop, "usage": end, **more}
    yield {"type": "message_stop"}


def _begun(block: Json) -> Json:
    if block["type"] in _CALLS:
        return block | {"input": {}}
    return block | {key: None if block["type"] == "compaction" else "" for _, key in _DELTAS.get(block["type"], ())}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] in _CALLS:
        given = json.dumps(block["input"])
        for half in (given[: len(given) // 2], given[len(given) // 2 :]):
            yield {"type": "input_json_delta", "partial_json": half}
    for delta, key in _DELTAS.get(block["type"], ()):
        text = block[key]
        halves = (text[: len(text) // 2], text[len(text) // 2 :]) if key in ("text", "thinking") else (text,)
        yield from ({"type": delta, key: half} for half in halves)
