"""Parts of messages as events: Gemini's parts, with what Qwen Code means by them.

A result's words stand under `output`, those of a failure under `error`; pictures that a tool answered with stand inside
the result, or behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken.events import Event, Image, Output, Prompt, ToolResult
from harken.events.base import clean, join_parts
from harken.formats.kit.gemini import MODEL, media_of, part_events
from harken.formats.kit.jsonl import Record, encode

from .records import HUMAN, PartsOfOneKind, stretches, text

BESIDE_RESULT = "beside_result"


def said_events(parts: list[Any], model: str) -> Iterator[Event]:
    """What the model said."""
    for part in parts:
        yield from part_events(part, model)


def heard_events(found: list[PartsOfOneKind]) -> Iterator[Event]:
    """What stands in the user's place, each kind of text as a prompt of its own."""
    for kind, parts in found:
        yield from _heard(parts, kind)


def history_events(history: list[Any]) -> Iterator[Event]:
    """The contents that a compaction left, or that a sub-agent began with."""
    for content in history:
        parts = content.get("parts") if isinstance(content, dict) else None
        if not isinstance(parts, list):
            yield Output(raw=encode(content), why="not a content of a conversation")
        elif content.get("role") == MODEL:
            yield from said_events(parts, "")
        else:
            yield from heard_events(stretches(parts, None))


def result_events(parts: list[Any], failed: bool) -> Iterator[Event]:
    """What tools answered; words beside a result are the harness's."""
    return _heard(parts, BESIDE_RESULT, failed)


def _heard(parts: list[Any], kind: str, failed: bool = False) -> Iterator[Event]:
    said: list[str | Image] = []
    result: ToolResult | None = None
    for part in parts:
        shown = _shown(part)
        if result is not None and isinstance(shown, Image):
            result = result.replace(images=(*result.images, shown))
            continue
        if result is not None:
            yield result
            result = None
        if shown is not None:
            said.append(shown)
            continue
        yield from _prompt(said, kind)
        said = []
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(answer, dict):
            result = _result(answer, failed)
        else:
            yield from part_events(part, "")
    if result is not None:
        yield result
    yield from _prompt(said, kind)


def _prompt(said: list[str | Image], kind: str) -> Iterator[Event]:
    if said:
        content, images = join_parts(said)
        source = "user" if kind == HUMAN else "injected"
        yield Prompt(content=content, images=images, source=source, origin=kind)


def _shown(part: Any) -> str | Image | None:
    if not isinstance(part, dict):
        return None
    for kind in ("inlineData", "fileData"):
        if isinstance(part.get(kind), dict):
            return media_of(part[kind])
    return clean(part["text"]) if isinstance(part.get("text"), str) else None


def _result(answer: Record, failed: bool) -> ToolResult:
    response = answer.get("response")
    words, is_error = _words(response)
    inside = answer.get("parts")
    shown = map(_shown, inside if isinstance(inside, list) else ())
    return ToolResult(
        id=clean(text(answer, "id")),
        name=clean(text(answer, "name")),
        output=words,
        is_error=failed or is_error,
        images=tuple(image for image in shown if isinstance(image, Image)),
    )


def _words(response: Any) -> tuple[str, bool]:
    """The words of a response, and whether they are those of a failure."""
    if isinstance(response, str):
        return clean(response), False
    if not isinstance(response, dict):
        return "" if response is None else encode(response).decode(), False
    for key in ("output", "error"):
        if len(response) == 1 and isinstance(said := response.get(key), str):
            return clean(said), key == "error"
    return (encode(response).decode() if response else ""), "error" in response and "output" not in response
