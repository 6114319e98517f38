"""Interactions: the steps that a host sends and a model makes, as events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harken.events import Error, Event, Image, Output, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import clean, join_parts
from harken.formats.kit.gemini import FIELDS, media_of, text, usage_of
from harken.formats.kit.jsonl import NotJson, Record, encode, parse_document

from .replies import MEDIA, GoogleReply

UNFINISHED = ("queued", "in_progress")
"""How an interaction stands that is made in the background."""
_OWN = ("status", "service_tier", "previous_interaction_id", "agent", "environment_id", "errors")
"""What an interaction says of itself; the rest of it repeats the request."""


def records(value: object) -> list[Record]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def steps_in(given: Any) -> list[Any]:
    """The input of an interaction as steps: a text, contents, turns with roles, or steps."""
    found: list[Any] = []
    for one in given if isinstance(given, list) else [] if given is None else [given]:
        kind = one.get("type") if isinstance(one, dict) else None
        if isinstance(one, str) or kind == "text" or kind in MEDIA:
            content = {"type": "text", "text": one} if isinstance(one, str) else one
            if found and found[-1].get("given"):
                found[-1]["content"].append(content)
            else:
                found.append({"type": "user_input", "content": [content], "given": True})
        elif isinstance(one, dict) and kind is None and "role" in one:
            found += _turn(one)
        else:
            found.append(one if isinstance(one, dict) else {"type": "unknown", "value": one})
    return [{key: value for key, value in one.items() if key != "given"} for one in found]


def _turn(turn: Record) -> list[Any]:
    """What one side said, where the input is a list of turns."""
    made = text(turn, "role") in ("model", "assistant")
    content = turn.get("content")
    parts = content if isinstance(content, list) else [content]
    if any(isinstance(part, dict) and part.get("type") not in ("text", *MEDIA) for part in parts):
        return parts
    return [{"type": "model_output" if made else "user_input", "content": parts}]


# -- a step as events --------------------------------------------------------------------------------------------------


def step_events(step: Any, model: str = "") -> Iterator[Event]:
    """What a step says; one that nobody can read is an `Output` with the reason."""
    kind = text(step, "type") if isinstance(step, dict) else ""
    if kind in _STEPS:
        yield from _STEPS[kind](step, model)
    elif kind.endswith("_call"):
        yield ToolCall(id=text(step, "id"), name=_tool(step), input=encode(step.get("arguments", {})), server_tool=True)
    elif kind.endswith("_result"):
        yield from _result(step, model)
    else:
        yield Output(raw=encode(step), why=f"unknown step of an interaction: {kind[:80]!r}")


def _tool(step: Record) -> str:
    return text(step, "name") or text(step, "type").removesuffix("_call").removesuffix("_result")


def _contents(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _shown(content: Any) -> str | Image | None:
    if isinstance(content, str):
        return clean(content)
    if not isinstance(content, dict):
        return None
    if text(content, "type") in MEDIA:
        return media_of({**content, "fileUri": content.get("uri")})
    return text(content, "text") if content.get("type") == "text" or content.keys() == {"text"} else None


def _input(step: Record, model: str) -> Iterator[Event]:
    shown = [(content, _shown(content)) for content in _contents(step.get("content"))]
    words, images = join_parts(said for _, said in shown if said is not None)
    if words or images or not shown:
        yield Prompt(content=words, images=images)
    for content, said in shown:
        if said is None:
            yield Output(raw=encode(content), why="unknown content of an interaction")


def _output(step: Record, model: str) -> Iterator[Event]:
    words = ""
    for content in _contents(step.get("content")):
        said = _shown(content)
        if isinstance(said, str):
            words += said
            continue
        if words:
            yield Response(content=words, model=model)
        words = ""
        why = "media that the model made" if said else "unknown content of an interaction"
        yield Output(raw=encode(content), why=why)
    if words:
        yield Response(content=words, model=model)
    if isinstance(error := step.get("error"), dict):
        yield Error(message=text(error, "message") or "the provider reports an error")


def _thought(step: Record, model: str) -> Iterator[Event]:
    words = "".join(text(one, "text") for one in records(step.get("summary")))
    yield Thinking(content=words)
    if step.get("signature"):
        yield Output(raw=encode({FIELDS: {"signature": step["signature"]}}))


def _call(step: Record, model: str) -> Iterator[Event]:
    given = step.get("arguments", {})
    asked = clean(given).encode() if isinstance(given, str) else encode(given)
    yield ToolCall(id=text(step, "id"), name=text(step, "name"), input=asked)


def _result(step: Record, model: str) -> Iterator[Event]:
    answer = step.get("result")
    shown = [_shown(one) for one in answer] if isinstance(answer, list) else [_shown(answer)]
    if any(one is None for one in shown):
        shown = [encode(answer).decode()]
    words, images = join_parts(one for one in shown if one is not None)
    failed = step.get("is_error") is True
    yield ToolResult(id=text(step, "call_id"), name=_tool_of(step), output=words, is_error=failed, images=images)


def _tool_of(step: Record) -> str:
    return text(step, "name") if text(step, "type") == "function_result" else _tool(step)


_STEPS: dict[str, Callable[[Record, str], Iterator[Event]]] = {
    "user_input": _input,
    "model_output": _output,
    "thought": _thought,
    "function_call": _call,
    "function_result": _result,
}


# -- replies -----------------------------------------------------------------------------------------------------------


def join_events(events: Iterable[Any]) -> tuple[Record, bool, Any]:
    """The interaction that the events of a stream are, whether it came to its end, and what went wrong."""
    body: Record = {}
    steps: dict[int, Record] = {}
    whole, error = False, None
    for event in records(list(events)):
        kind, index = event.get("event_type"), event.get("index")
        if isinstance(said := event.get("interaction"), dict):
            body |= {key: value for key, value in said.items() if value is not None}
            whole = kind == "interaction.completed"
        elif kind == "interaction.status_update":
            body |= {"id": event.get("interaction_id"), "status": event.get("status")}
        elif kind == "error":
            error = event.get("error") or {"message": "the provider reports an error"}
        elif type(index) is int and isinstance(step := event.get("step"), dict):
            steps[index] = {**step}
        elif type(index) is int and isinstance(delta := event.get("delta"), dict):
            _grow(steps.setdefault(index, {"type": _OF.get(text(delta, "type"), "model_output")}), delta)
        if isinstance(usage := event.get("usage"), dict):
            body["usage"] = usage
    if not body.get("steps"):
        body["steps"] = [_finished(steps[index]) for index in sorted(steps)]
    return body, whole, error


_OF = {"thought_summary": "thought", "thought_signature": "thought", "arguments_delta": "function_call"}
"""The step that a piece belongs to, where its beginning did not come."""


def _grow(step: Record, delta: Record) -> None:
    """Add a piece to a step."""
    kind = text(delta, "type")
    if kind == "thought_summary":
        step["summary"] = [*_contents(step.get("summary")), delta.get("content")]
    elif kind == "thought_signature":
        step["signature"] = text(step, "signature") + text(delta, "signature")
    elif kind == "arguments_delta":
        step["written"] = text(step, "written") + text(delta, "arguments")
    elif kind == "text" or kind in MEDIA:
        step["content"] = [*_contents(step.get("content")), delta]
    else:
        step |= {key: value for key, value in delta.items() if key != "type" and value is not None}


def _finished(step: Record) -> Record:
    """A step with the arguments that came in pieces."""
    if (written := step.pop("written", None)) is None:
        return step
    try:
        return {**step, "arguments": parse_document(written.encode())}
    except NotJson:
        return {**step, "arguments": written}


def read_interaction(
    body: Record, model: str, *, whole: bool, error: Any, problem: BaseException | None
) -> GoogleReply:
    """An interaction, or as much of it as came."""
    found = GoogleReply()
    answered = text(body, "model") or model
    name = text(body, "id")
    for step in _made(body.get("steps")):
        found.add_all(event.replace(api_id=name) for event in step_events(step, answered))
    found.metadata = {key: body.get(key) or None for key in _OWN}
    found.metadata |= {"response_id": name or None, "model": answered or None, "usage": body.get("usage") or None}
    status = text(body, "status")
    failed = error or (
        body.get("errors") or {"message": f"the interaction is {status}"} if status == "failed" else None
    )
    failed = failed[0] if isinstance(failed, list) else failed
    found.usage = usage_of(body.get("usage"), model=answered, api_id=name, stop_reason=status)
    return found.ended(problem, failed, whole=whole)


def _made(steps: object) -> list[Any]:
    """What is new: an interaction that is asked for with its input has that before it."""
    given = _contents(steps)
    kinds = [text(step, "type") if isinstance(step, dict) else "" for step in given]
    last = max((at for at, kind in enumerate(kinds) if kind in ("user_input", "function_result")), default=-1)
    return given[last + 1 :]
