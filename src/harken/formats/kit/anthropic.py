"""Anthropic's messages: a content block as an event, and events as messages in turn with every call answered.

Claude Code's files, its stream and the Messages API itself are read with the same table. What an event says that a
message cannot say is counted as a loss.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import orjson

from harken.events import Error, Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, join_parts, split_parts
from harken.formats.base import Loss

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
STAND_IN = "No result of this call was recorded."
_STANDARD = (None, "", "standard", "default", "not_available", "global")
_BAD = re.compile(r"[^A-Za-z0-9_-]")
_WAY = re.compile(r"[A-Za-z][\w.-]{0,31}", re.ASCII)  # what looks otherwise was put there by whoever cleaned the file

WHY = {
    "thinking": "it is sealed for the model and the session that made it",
    "calls without a result": "each was answered with a stand-in, since a call must have a result",
    "repeated calls": "the record is there twice",
    "results without a call": "a result must follow its call",
    "system instructions": "the runtime that goes on brings its own",
    "notices": "they are for people, not for the model",
    "pictures without content": "only a reference to them is known",
    "files": "a message holds pictures and PDF documents alone",
    "names of tools": "a character that is not allowed was replaced",
    "blank texts": "an empty text is not sent",
    "records of other agents": "a context holds what one agent knew",
    "usage figures": "they stay with the session they were paid in",
    "records that are no conversation": "they say nothing to the model",
}
"""What can be lost, and why."""


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
        return Thinking(content=clean(_text(block, "thinking")), signature=clean(signature))
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


class Said(msgspec.Struct):
    """A message: a user's, or an assistant's with the results of its calls."""

    role: str
    events: list[Event] = []
    """Those it was made of, the first one giving time and model."""
    blocks: list[Block] = []
    results: list[tuple[str, Block, Event | None]] = []
    """By call id, in the order they came."""
    injected: str = ""
    """What kind of injected text a user's message is."""
    api_id: str = ""


class Turns(msgspec.Struct):
    """The conversation, and what it could not hold."""

    messages: list[Said]
    losses: tuple[Loss, ...]


def arrange(events: Sequence[Event], *, thinking: bool = False) -> Turns:
    """The events as messages in turn. Reasoning is left out unless asked for."""
    return Arranger(thinking).run(events)


class Arranger:
    """Puts events in turn, one at a time; an API with other rules changes the methods that have no underscore."""

    longest_name, why = 128, WHY
    message_of: Callable[[Event], str] = staticmethod(attrgetter("api_id"))

    def __init__(self, thinking: bool = True) -> None:
        self._thinking = thinking
        self._said: list[Said] = []
        self._current: Said | None = None
        self._open: dict[str, list[tuple[Said, deque[str]]]] = {}
        """Calls by the id their result will name: the messages they are in, and the ids they were given."""
        self._used: set[str] = set()
        self._alike: Counter[str] = Counter()  # by the id that several calls have, how often one was made of it
        self._told: set[tuple[str, str]] = set()
        self.lost: Counter[str] = Counter()

    def run(self, events: Sequence[Event]) -> Turns:
        whose = next((e.agent_id for e in events if isinstance(e, Prompt | Response | ToolCall)), "")
        for event in events:
            if event.agent_id != whose and isinstance(event, Prompt | Response | ToolCall | ToolResult | Thinking):
                self.lost["records of other agents"] += 1
            else:
                self._take(event)
        for said, call in ((said, call) for alike in self._open.values() for said, calls in alike for call in calls):
            self.lost["calls without a result"] += 1
            said.results.append((call, _result(call, STAND_IN, is_error=True), None))
        return Turns([said for said in self._said if said.blocks], self.losses())

    def losses(self) -> tuple[Loss, ...]:
        return tuple(Loss(what=what, count=count, why=self.why[what]) for what, count in self.lost.items() if count)

    def add(self, said: Said) -> None:
        """A message that is no part of the one being said."""
        self._current = None
        self._said.append(said)

    def _take(self, event: Event) -> None:
        match event:
            case Prompt():
                self._prompt(event)
            case Response():
                if event.content.strip():
                    self._assistant(event).blocks.append({"type": "text", "text": event.content})
                else:
                    self.lost["blank texts"] += 1
            case Thinking() if self._thinking:
                self._assistant(event).blocks.append(_thought(event))
            case Thinking():
                self.lost["thinking"] += 1
            case ToolCall():
                self._call(event)
            case ToolResult():
                self._answer(event)
            case System(subtype="instructions"):
                self.instructions(event)
            case System() | Error():
                self.lost["notices"] += 1
            case Metric():
                self.lost["usage figures"] += 1
            case _:
                self.lost["records that are no conversation"] += 1

    def instructions(self, event: System) -> None:
        self.lost["system instructions"] += 1

    def _prompt(self, event: Prompt) -> None:
        blocks = self._blocks(event.content, event.images)
        self._current = None
        if not blocks:
            self.lost["blank texts"] += 1
            return
        kind = (event.origin or "injected") if event.source == "injected" else ""
        self.add(Said("user", [event], blocks, injected=kind))

    def _assistant(self, event: Event) -> Said:
        """The message this belongs to: the one being said, unless tools answered since or the API says otherwise."""
        current = self._current
        key = self.message_of(event)
        same = current is not None and bool(key) and key == current.api_id
        other = current is not None and bool(key) and key != current.api_id
        if current is None or (not same and (other or _is_over(current, event))):
            current = self._current = Said("assistant", [], [], [], api_id=key)
            self._said.append(current)
        current.events.append(event)
        return current

    def _call(self, event: ToolCall) -> None:
        if event.id and event.api_id and (event.api_id, event.id) in self._told:
            # The same call of the same message: a copy of the record, not a second call.
            self.lost["repeated calls"] += 1
            return
        self._told.add((event.api_id, event.id))
        said = self._assistant(event)
        call = named = _BAD.sub("_", event.id) or "call"
        while call in self._used:
            self._alike[named] += 1
            call = f"{named}_{self._alike[named] + 1}"
        self._used.add(call)
        name = _BAD.sub("_", event.name)[: self.longest_name] or "tool"
        if name != event.name:
            self.lost["names of tools"] += 1
        said.blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments(event.input)})
        alike = self._open.setdefault(event.id, [])
        if not alike or alike[-1][0] is not said:
            alike.append((said, deque()))
        alike[-1][1].append(call)

    def _answer(self, event: ToolResult) -> None:
        if not (alike := self._open.get(event.id)):
            self.lost["results without a call"] += 1
            return
        said, calls = alike[-1]  # of calls with one id the last message's are answered, in their order
        call = calls.popleft()
        if not calls:
            alike.pop()
        blocks = self._blocks(event.output, event.images)
        content = blocks if any(block["type"] != "text" for block in blocks) else event.output
        said.results.append((call, _result(call, content, is_error=event.is_error), event))

    def _blocks(self, text: str, images: Sequence[Image]) -> list[Block]:
        blocks: list[Block] = []
        for part in split_parts(text, images):
            if isinstance(part, str):
                blocks += [{"type": "text", "text": part}] if part.strip() else []
            elif block := self.picture(part):
                blocks.append(block)
        return blocks

    def picture(self, image: Image) -> Block | None:
        """The picture or document as a block of a message."""
        if not image.data and not image.is_public:
            self.lost["pictures without content"] += 1
            return None
        media = image.media_type or "image/png"
        if media != PDF and not media.startswith("image/"):
            self.lost["files"] += 1
            return None
        inside = {"type": "base64", "media_type": media, "data": image.data}
        kind = "document" if media == PDF else "image"
        return {"type": kind, "source": inside if image.data else {"type": "url", "url": image.url}}


def _is_over(said: Said, event: Event) -> bool:
    """Words behind a call are a new message's, whether or not the call was answered."""
    if isinstance(event, ToolCall):
        return bool(said.results)
    return bool(said.results) or any(block["type"] == "tool_use" for block in said.blocks)


def arguments(text: bytes) -> dict[str, Any]:
    """A call's arguments as the object the API wants; anything else is put inside one."""
    try:
        value = orjson.loads(text or b"{}")
    except orjson.JSONDecodeError:
        return {"input": text.decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"input": value}


def _thought(event: Thinking) -> Block:
    if event.content or not event.signature:
        return {"type": "thinking", "thinking": event.content, "signature": event.signature}
    return {"type": "redacted_thinking", "data": event.signature}


def _result(call: str, content: str | list[Block], *, is_error: bool) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return block | {"is_error": True} if is_error else block
