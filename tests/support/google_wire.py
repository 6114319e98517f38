"""The Gemini API as Google's SDK wants it: contents and interactions, in one piece and in the steps of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.scripted_model import ScriptedModel, Turn

Json = dict[str, Any]


def part_of(part: Any) -> Json:
    """What the model says, as a part of a content. A call has an id only where the script gives it one."""
    match type(part).__name__:
        case "Say":
            return {"text": part.text}
        case "Think":
            return {"text": part.text, "thought": True, "thoughtSignature": part.signature}
        case "Call":
            asked = {"name": part.name, "args": part.input}
            return {"functionCall": asked | ({"id": part.id} if part.id else {})}
    content: Json = part.content
    return content


def contents_object(model: ScriptedModel, turn: Turn) -> Json:
    """One turn as a reply of `generateContent`; a `Block` with other keys than a part has stands beside it."""
    parts = [part_of(part) for part in turn]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    made = 10 + len(turn)
    usage = {"promptTokenCount": model.input_tokens, "candidatesTokenCount": made, "cachedContentTokenCount": 40}
    usage |= {"thoughtsTokenCount": 7, "totalTokenCount": model.input_tokens + made + 7, **model.usage}
    named = {"responseId": f"resp_{model.number():06d}", "modelVersion": "gemini-scripted-001"}
    return {"candidates": [candidate], "usageMetadata": usage, **named, **model.said_of_message}


def contents_chunks(whole: Json) -> Iterator[Json]:
    """The same in chunks: words in two halves, each part by itself, and why it ends in the last."""
    about = {key: value for key, value in whole.items() if key not in ("candidates", "usageMetadata")}
    usage = whole["usageMetadata"]
    for candidate in whole["candidates"]:
        for part in candidate["content"]["parts"]:
            for piece in _halves(part):
                content = {"content": {"role": "model", "parts": [piece]}, "index": candidate["index"]}
                told = {"promptTokenCount": usage["promptTokenCount"], "totalTokenCount": usage["promptTokenCount"]}
                yield {**about, "candidates": [content], "usageMetadata": told}
        if "error" in whole:
            yield {"error": whole["error"]}
            return
        ended = {key: value for key, value in candidate.items() if key != "content"}
        last = {**ended, "content": {"role": "model", "parts": [{"text": ""}]}}
        yield {**about, "candidates": [last], "usageMetadata": usage}
    if not whole["candidates"]:
        yield whole


def _halves(part: Json) -> list[Json]:
    words = part.get("text", "")
    if len(words) < 2:
        return [part]
    first = {key: value for key, value in part.items() if key != "thoughtSignature"}
    return [first | {"text": words[: len(words) // 2]}, part | {"text": words[len(words) // 2 :]}]


# -- interactions ------------------------------------------------------------------------------------------------------


def step_of(model: ScriptedModel, part: Any) -> Json:
    """What the model says, as a step."""
    match type(part).__name__:
        case "Say":
            return {"type": "model_output", "content": [{"type": "text", "text": part.text}]}
        case "Think":
            summary = [{"type": "text", "text": part.text}]
            return {"type": "thought", "signature": part.signature, "summary": summary}
        case "Call":
            call_id = part.id or f"fc_{model.number():06d}"
            return {"type": "function_call", "id": call_id, "name": part.name, "arguments": part.input}
    content: Json = part.content
    return content


def interaction_object(model: ScriptedModel, body: Json, turn: Turn) -> Json:
    """One turn as an interaction."""
    steps = [step_of(model, part) for part in turn]
    waits = any(step["type"] == "function_call" for step in steps)
    made = 10 + len(turn)
    usage = {"total_input_tokens": model.input_tokens, "total_output_tokens": made, "total_cached_tokens": 40}
    usage |= {"total_thought_tokens": 7, "total_tokens": model.input_tokens + made + 7, "total_tool_use_tokens": 0}
    return {
        "id": f"int_{model.number():06d}",
        "object": "interaction",
        "model": body.get("model", "scripted"),
        "status": "requires_action" if waits else "completed",
        "created": "2026-11-16T15:00:00Z",
        "updated": "2026-11-16T15:00:01Z",
        "role": "model",
        "steps": steps,
        "usage": usage,
        **model.said_of_message,
    }


def interaction_events(whole: Json) -> Iterator[Json]:
    """The same as the events of a stream."""
    named = {key: value for key, value in whole.items() if key not in ("steps", "usage")}
    yield {"event_type": "interaction.created", "interaction": {**named, "status": "in_progress"}}
    for index, step in enumerate(whole["steps"]):
        hollow = {key: value for key, value in step.items() if key not in ("content", "summary", "signature")}
        hollow |= {"arguments": {}} if "arguments" in step else {}
        yield {"event_type": "step.start", "index": index, "step": hollow}
        for delta in _deltas(step):
            yield {"event_type": "step.delta", "index": index, "delta": delta}
        yield {"event_type": "step.stop", "index": index}
    yield {"event_type": "interaction.completed", "interaction": {**named, "usage": whole["usage"]}}


def _deltas(step: Json) -> Iterator[Json]:
    for content in step.get("content", ()):
        yield from ({"type": "text", "text": piece["text"]} for piece in _halves(content))
    for content in step.get("summary", ()):
        for piece in _halves({"text": content["text"]}):
            yield {"type": "thought_summary", "content": {"type": "text", **piece}}
    if "signature" in step:
        yield {"type": "thought_signature", "signature": step["signature"]}
    if "arguments" in step:
        given = json.dumps(step["arguments"])
        for half in (given[: len(given) // 2], given[len(given) // 2 :]):
            yield {"type": "arguments_delta", "arguments": half}
