"""Events as Anthropic's messages: who speaks in turn, and every call answered.

Both writers (`claude-code-v1`, `anthropic-messages-v1`) start from here. What an event says that this shape cannot
say is counted as a loss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from harken.events import Error, Event, Image, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats.base import Loss

Block = dict[str, Any]
STAND_IN = "No result of this call was recorded."
_BAD = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 128

WHY = {
    "thinking": "it is sealed for the model and the session that made it",
    "calls without a result": "each was answered with a stand-in, since a call must have a result",
    "repeated calls": "the record is there twice",
    "results without a call": "a result must follow its call",
    "system instructions": "the runtime that goes on brings its own",
    "notices": "they are for people, not for the model",
    "pictures without content": "only a reference to them is known",
    "names of tools": "a character that is not allowed was replaced",
    "blank texts": "an empty text is not sent",
    "records of other agents": "a context holds what one agent knew",
    "usage figures": "they stay with the session they were paid in",
    "records that are no conversation": "they say nothing to the model",
}
"""What can be lost, and why."""


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
    return _Arranger(thinking).run(events)


class _Arranger:
    def __init__(self, thinking: bool) -> None:
        self._thinking = thinking
        self._said: list[Said] = []
        self._current: Said | None = None
        self._open: dict[str, tuple[Said, str]] = {}
        """Calls by the id their result will name: the message they are in, and the id they were given."""
        self._used: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._lost: Counter[str] = Counter()

    def run(self, events: Sequence[Event]) -> Turns:
        whose = next((e.agent_id for e in events if isinstance(e, Prompt | Response | ToolCall)), "")
        for event in events:
            if event.agent_id != whose and isinstance(event, Prompt | Response | ToolCall | ToolResult | Thinking):
                self._lost["records of other agents"] += 1
            else:
                self._take(event)
        for said, call in self._open.values():
            self._lost["calls without a result"] += 1
            said.results.append((call, _result(call, STAND_IN, is_error=True), None))
        losses = tuple(Loss(what=what, count=count, why=WHY[what]) for what, count in self._lost.items())
        return Turns([said for said in self._said if said.blocks], losses)

    def _take(self, event: Event) -> None:
        match event:
            case Prompt():
                self._prompt(event)
            case Response():
                if event.content.strip():
                    self._assistant(event).blocks.append({"type": "text", "text": event.content})
                else:
                    self._lost["blank texts"] += 1
            case Thinking() if self._thinking:
                self._assistant(event).blocks.append(_thought(event))
            case Thinking():
                self._lost["thinking"] += 1
            case ToolCall():
                self._call(event)
            case ToolResult():
                self._answer(event)
            case System(subtype="instructions"):
                self._lost["system instructions"] += 1
            case System() | Error():
                self._lost["notices"] += 1
            case Metric():
                self._lost["usage figures"] += 1
            case _:
                self._lost["records that are no conversation"] += 1

    def _prompt(self, event: Prompt) -> None:
        blocks: list[Block] = [{"type": "text", "text": event.content}] if event.content.strip() else []
        blocks += self._pictures(event.images)
        self._current = None
        if not blocks:
            self._lost["blank texts"] += 1
            return
        kind = (event.origin or "injected") if event.source == "injected" else ""
        self._said.append(Said("user", [event], blocks, injected=kind))

    def _assistant(self, event: Event) -> Said:
        """The message this belongs to: the one being said, unless tools answered since or the API says otherwise."""
        current = self._current
        same = current is not None and bool(event.api_id) and event.api_id == current.api_id
        other = current is not None and bool(event.api_id) and event.api_id != current.api_id
        # Words behind a call are a new message's, whether or not the call was answered.
        later = current is not None and (current.results or (_has_calls(current) and not isinstance(event, ToolCall)))
        if current is None or (not same and (later or other)):
            current = self._current = Said("assistant", [], [], [], api_id=event.api_id)
            self._said.append(current)
        current.events.append(event)
        return current

    def _call(self, event: ToolCall) -> None:
        if event.id and event.api_id and (event.api_id, event.id) in self._told:
            # The same call of the same message: a copy of the record, not a second call.
            self._lost["repeated calls"] += 1
            return
        self._told.add((event.api_id, event.id))
        said = self._assistant(event)
        call = _BAD.sub("_", event.id) or "call"
        number = 2
        while call in self._used:
            call, number = f"{_BAD.sub('_', event.id) or 'call'}_{number}", number + 1
        self._used.add(call)
        name = _BAD.sub("_", event.name)[:_LONGEST_NAME] or "tool"
        if name != event.name:
            self._lost["names of tools"] += 1
        said.blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments(event.input)})
        self._open[event.id] = (said, call)

    def _answer(self, event: ToolResult) -> None:
        found = self._open.pop(event.id, None)
        if found is None:
            self._lost["results without a call"] += 1
            return
        said, call = found
        content: str | list[Block] = event.output
        if pictures := self._pictures(event.images):
            content = [{"type": "text", "text": event.output}] * bool(event.output) + pictures
        said.results.append((call, _result(call, content, is_error=event.is_error), event))

    def _pictures(self, images: Sequence[Image]) -> list[Block]:
        blocks: list[Block] = []
        for image in images:
            if image.data:
                source = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
            elif image.url:
                source = {"type": "url", "url": image.url}
            else:
                self._lost["pictures without content"] += 1
                continue
            blocks.append({"type": "image", "source": source})
        return blocks


def _has_calls(said: Said) -> bool:
    return any(block["type"] == "tool_use" for block in said.blocks)


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
