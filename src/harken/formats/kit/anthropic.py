"""Anthropic's messages: a content block as an event.

Claude Code's files, its stream and the Messages API itself are read with the same table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from harken.events import Event, Image, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.events.base import clean, join_parts
from harken.events.messages import signed_thought

from .jsonl import encode

Block = dict[str, Any]
HUMAN = ""
"""The kind of a prompt that a person wrote."""
Judge = Callable[[str], str]
"""Says of a text whose it is: `HUMAN`, or the kind of what a program put in the user's place."""
BLOCKS = frozenset(
    {
        "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "server_tool_use",
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use",
        "mcp_tool_result", "tool_reference", "search_result", "container_upload", "fallback", "compaction",
    }
)  # fmt: skip
"""The content blocks a message may hold."""

PDF = "application/pdf"
_SHOWN = ("image", "document", "search_result", "container_upload")
"""What stands beside words in a prompt."""
RESPONSE, THINKING, CALL, RESULT = "response", "thinking", "call", "result"
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_SAYS = {"text": RESPONSE, **dict.fromkeys(("thinking", "redacted_thinking"), THINKING), **dict.fromkeys(_CALLS, CALL)}
_STANDARD = (None, "", "standard", "default", "not_available", "global")
_WAY = re.compile(r"[A-Za-z][\w.-]{0,31}", re.ASCII)  # what looks otherwise was put there by whoever cleaned the file


def _text(block: Block, key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""


def blocks_of(content: object) -> list[Block]:
    """The blocks of a message's content, as far as they are some; plain text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return [b for b in blocks if isinstance(b, dict) and (b.get("type") != "text" or isinstance(b.get("text"), str))]


def says(block: object) -> str:
    """What a block of this type is when the model writes it; empty for one that is none of the four."""
    if not isinstance(block, str):
        return ""
    return _SAYS.get(block) or (RESULT if block.endswith("_tool_result") else "")


SAYS: dict[str | None, str] = {block: says(block) for block in BLOCKS}
"""The same as a table, for whoever goes through many known blocks."""


def served_as(usage: Block) -> str:
    """How a request was served that has another price for it, as its `usage` says; empty for the standard way."""
    told = (usage.get("service_tier"), usage.get("speed"), usage.get("inference_geo"))
    return ", ".join(how for how in told if isinstance(how, str) and how not in _STANDARD and _WAY.fullmatch(how))


def assistant_event(block: Any, model: str) -> Event:
    """A block of an assistant message."""
    if isinstance(block, str):
        return Response(content=clean(block), model=model)
    if not isinstance(block, dict):
        return Output(raw=encode(block), why=_why_block(block))
    kind = block.get("type")
    said = says(kind)
    if said == RESPONSE:
        return Response(content=clean(_text(block, "text")), model=model)
    if said == THINKING:
        # The sealed kind has nothing but `data`.
        signature = _text(block, "data" if kind == "redacted_thinking" else "signature")
        words = clean(_text(block, "thinking"))
        return signed_thought(words, clean(signature), redacted=kind == "redacted_thinking")
    if said == CALL:
        return ToolCall(
            id=clean(_text(block, "id")),
            name=clean(_text(block, "name")),
            input=encode(block.get("input", {})),
            server_tool=kind != "tool_use",
        )
    if said == RESULT:
        return tool_result(block)
    if kind == "compaction" and (summary := _text(block, "content")):
        return System(subtype="compact_summary", message=clean(summary), metadata=encode(block))
    return Output(raw=encode(block), why=_why_block(block))


def _why_block(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return "" if isinstance(kind, str) and kind in BLOCKS else f"unknown content block {kind!r}"


def user_events(content: Any, fixed: str | None, judge: Judge, *, cause: str | None = None) -> Iterator[Event]:
    """What a user message says: prompts (texts of one kind together) and results, in order.

    `fixed` is the kind of all its texts, where something else than the texts says it; else `judge` tells it of each.
    """
    blocks: list[Any] = [content] if isinstance(content, str) else [one for block in content for one in opened(block)]
    if not blocks:
        yield from _prompts([(fixed or HUMAN, "", None)])
    waiting: list[tuple[str, str, Image | None]] = []
    for block in blocks:
        if (part := _prompt_part(block, fixed, judge)) is not None:
            waiting.append(part)
            continue
        yield from _prompts(waiting)
        waiting = []
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield tool_result(block, cause)
        else:
            yield Output(raw=encode(block), why=_why_block(block))
    yield from _prompts(waiting)


def _prompt_part(block: Any, fixed: str | None, judge: Judge) -> tuple[str, str, Image | None] | None:
    """A text or a picture with its kind; None for any other block."""
    if (kind := kind_of_block(block, fixed, judge)) is None:
        return None
    if isinstance(block, str):
        return kind, block, None
    return (kind, block["text"], None) if block["type"] == "text" else (kind, "", image_of(block))


def _prompts(parts: list[tuple[str, str, Image | None]]) -> Iterator[Event]:
    """Neighbours of the same kind as one prompt."""
    while parts:
        kind = parts[0][0]
        count = next((place for place, part in enumerate(parts) if part[0] != kind), len(parts))
        content, images = join_parts(image or clean(text) for _, text, image in parts[:count])
        yield Prompt(content=content, source="injected" if kind else "user", origin=kind, images=images)
        parts = parts[count:]


def kind_of_block(block: Any, fixed: str | None, judge: Judge) -> str | None:
    """Whose words a block is, where something else than the text says it (`fixed`) or the text itself; None for one
    that is neither a text nor a picture."""
    if isinstance(block, str):
        return judge(block) if fixed is None else fixed
    if not isinstance(block, dict):
        return None
    if block.get("type") == "text" and isinstance(text := block.get("text"), str):
        return judge(text) if fixed is None else fixed
    # A picture belongs to whatever is said around it.
    return (fixed or HUMAN) if block.get("type") in _SHOWN else None


def opened(block: Any) -> list[Any]:
    """A document or a search result that is made of words (or of blocks) as what it is made of; else the block."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in ("document", "search_result"):
        return [block]
    source = block.get("source")
    inner = source if isinstance(source, dict) else {}
    made_of = {"text": inner.get("data"), "content": inner.get("content")}.get(_text(inner, "type"))
    said = block.get("content") if kind == "search_result" else made_of
    if not isinstance(said, str | list):
        return [block]
    heads = (block.get("title"), block.get("context"), source)
    return [*(one for one in heads if isinstance(one, str) and one), *([said] if isinstance(said, str) else said)]


def image_of(block: Block) -> Image:
    """The picture in an image block, the document in one that holds a file; what the provider keeps is known by its
    id."""
    source = block.get("source")
    inner = source if isinstance(source, dict) else {}
    url = _text(inner, "url")
    media = _text(inner, "media_type") or (PDF if url and block.get("type") == "document" else "")
    kept = _text(inner, "file_id") or _text(block, "file_id")
    data = "" if inner.get("type") == "text" else _text(inner, "data")
    return Image(media_type=clean(media), data=clean(data), url=clean(url or kept))


def tool_result(block: Block, cause: str | None = None) -> ToolResult:
    """A `tool_result` block."""
    content = block.get("content")
    parts = content if isinstance(content, list) else [content] if content is not None else []
    said: list[str | Image] = []
    for part in (one for given in parts for one in opened(given)):
        if isinstance(part, str):
            said.append(clean(part))
        elif isinstance(part, dict) and part.get("type") == "text":
            said.append(clean(_text(part, "text")))
        elif isinstance(part, dict) and part.get("type") in ("image", "document"):
            said.append(image_of(part))
        else:
            said.append(clean(encode(part).decode()))
    output, images = join_parts(said)
    return ToolResult(
        id=clean(_text(block, "tool_use_id")),
        output=output,
        is_error=block.get("is_error") is True,
        images=images,
        cause=cause,
    )
