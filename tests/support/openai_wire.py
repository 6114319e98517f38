"""The Responses API as OpenAI's SDK wants it: a response in one piece, and every step of its stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.scripted_model import ScriptedModel, Turn

Json = dict[str, Any]


def response_object(model: ScriptedModel, body: Json, turn: Turn) -> Json:
    """One turn as a response."""
    given, made = model.input_tokens, 10 + len(turn)
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": given + made,
    }
    thread = body.get("conversation")
    return {
        "id": f"resp_{model.number():06d}",
        "object": "response",
        "created_at": 1_794_738_000,
        "model": body.get("model", "scripted"),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "output": [_item(model, part) for part in turn],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "service_tier": "default",
        "conversation": {"id": thread} if isinstance(thread, str) else thread,
        "usage": usage,
    }


def compacted(model: ScriptedModel, body: Json, turn: Turn) -> Json:
    """A conversation with its user messages and a sealed summary of the rest."""
    users = [item for item in body["input"] if isinstance(item, dict) and item.get("role") == "user"]
    kept = [
        {
            "type": "message",
            "id": f"msg_{model.number():06d}",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_text", "text": item["content"]}],
        }
        for item in users
    ]
    sealed = {"type": "compaction", "id": f"cmp_{model.number():06d}", "encrypted_content": "gAAAAsealed"}
    whole = response_object(model, body, turn)
    return {key: whole[key] for key in ("id", "created_at", "usage")} | {
        "object": "response.compaction",
        "output": [*kept, sealed],
    }


def _item(model: ScriptedModel, part: Any) -> Json:
    number = model.number()
    match type(part).__name__:
        case "Say":
            content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
            return {
                "type": "message",
                "id": f"msg_{number:06d}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case "Think":
            summary = [{"type": "summary_text", "text": part.text}]
            sealed = part.signature
            return {"type": "reasoning", "id": f"rs_{number:06d}", "summary": summary, "encrypted_content": sealed}
    return {
        "type": "function_call",
        "id": f"fc_{number:06d}",
        "call_id": part.id or f"call_{number:06d}",
        "name": part.name,
        "arguments": json.dumps(part.input),
        "status": "completed",
    }


def response_steps(whole: Json) -> Iterator[Json]:
    """A response as the events of its stream; texts and arguments in two halves."""
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun, "sequence_number": 0}
    yield {"type": "response.in_progress", "response": begun, "sequence_number": 1}
    number = 2
    for at, item in enumerate(whole["output"]):
        for step in _item_steps(at, item):
            yield {**step, "sequence_number": number}
            number += 1
    yield {"type": "response.completed", "response": whole, "sequence_number": number}


def _item_steps(at: int, item: Json) -> Iterator[Json]:
    of: Json = {"output_index": at, "item_id": item["id"]}
    if item["type"] == "message":
        yield {"type": "response.output_item.added", "output_index": at, "item": item | {"content": []}}
        text = item["content"][0]["text"]
        part: Json = {"content_index": 0, "part": item["content"][0] | {"text": ""}}
        yield {"type": "response.content_part.added", **of, **part}
        for half in _halves(text):
            yield {"type": "response.output_text.delta", **of, "content_index": 0, "delta": half, "logprobs": []}
        yield {"type": "response.output_text.done", **of, "content_index": 0, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **of, "content_index": 0, "part": item["content"][0]}
    elif item["type"] == "function_call":
        yield {"type": "response.output_item.added", "output_index": at, "item": item | {"arguments": ""}}
        for half in _halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **of, "delta": half}
        said = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **of, **said}
    else:
        yield {"type": "response.output_item.added", "output_index": at, "item": item | {"summary": []}}
        text = item["summary"][0]["text"]
        empty = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **of, "summary_index": 0, "part": empty}
        for half in _halves(text):
            yield {"type": "response.reasoning_summary_text.delta", **of, "summary_index": 0, "delta": half}
        yield {"type": "response.reasoning_summary_text.done", **of, "summary_index": 0, "text": text}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
