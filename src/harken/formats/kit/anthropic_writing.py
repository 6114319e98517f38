"""Events as Anthropic's messages, in turn and with every call answered. What an event says that a message cannot say is
counted as a loss."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

from harken.events import Error, Event, Image, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import of_one_agent, split_parts
from harken.events.messages import is_redacted
from harken.formats.base import Loss

from .anthropic import PDF, Block
from .openai import OTHER_AGENTS, WHY_OTHERS, is_openai, reply_id

STAND_IN = "No result of this call was recorded."
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_BAD = re.compile(r"[^A-Za-z0-9_-]")

WHY = {
    "thinking": "it is sealed for the model and the session that made it",
    "unsigned thinking": "the API takes thinking only as it has signed it",
    "foreign thinking": "another provider has sealed it, which the API would refuse",
    "calls without a result": "each was answered with a stand-in, since a call must have a result",
    "repeated calls": "the record is there twice",
    "results without a call": "a result must follow its call",
    "system instructions": "the runtime that goes on brings its own",
    "notices": "they are for people, not for the model",
    "pictures without content": "only a reference to them is known",
    "files": "a message holds pictures and PDF documents alone",
    "names of tools": "a character that is not allowed was replaced",
    "blank texts": "an empty text is not sent",
    OTHER_AGENTS: WHY_OTHERS,
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
    return Arranger(thinking).run(events)


class Arranger:
    """Puts events in turn, one at a time; an API with other rules changes the methods that have no underscore."""

    longest_name, why = 128, WHY
    needs_signature = True
    message_of: Callable[[Event], str] = staticmethod(reply_id)

    def __init__(self, thinking: bool = True) -> None:
        self._thinking = thinking
        self._said: list[Said] = []
        self._current: Said | None = None
        self._heard = 0
        """How often the model was told something: what it says between two times is one reply."""
        self._open: dict[str, list[tuple[int, deque[tuple[Said, str]]]]] = {}
        """Calls by the id their result will name: those of a reply together, each with its message and the id that it
        was given."""
        self._used: set[str] = set()
        self._before_numbers: set[str] = set()
        """Of those ids that end with a number: what stands before it."""
        self._alike: Counter[str] = Counter()  # by the id that several calls have, how often one was made of it
        self._told: dict[tuple[str, str], tuple[str, int]] = {}
        """Calls by their message and id: the record that told each, and its place in there."""
        self.lost: Counter[str] = Counter()

    def run(self, events: Sequence[Event]) -> Turns:
        own, self.lost[OTHER_AGENTS] = of_one_agent(events)
        for event in own:
            self._take(event)
        for said, call in (one for alike in self._open.values() for _, calls in alike for one in calls):
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
            case Thinking() if not self._thinking:
                self.lost["thinking"] += 1
            case Thinking() if self.needs_signature and not event.signature:
                self.lost["unsigned thinking"] += 1
            case Thinking() if self.needs_signature and not _is_anthropic(event):
                self.lost["foreign thinking"] += 1
            case Thinking():
                self._assistant(event).blocks.append(_thought(event))
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
        self._heard += 1
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
        if self._is_copy(event):
            self.lost["repeated calls"] += 1
            return
        said = self._assistant(event)
        call = self._free_id(_BAD.sub("_", event.id) or "call")
        name = _BAD.sub("_", event.name)[: self.longest_name] or "tool"
        if name != event.name:
            self.lost["names of tools"] += 1
        said.blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments(event.input)})
        alike = self._open.setdefault(event.id, [])
        if not alike or alike[-1][0] != self._heard:
            alike.append((self._heard, deque()))
        alike[-1][1].append((said, call))

    def _is_copy(self, event: ToolCall) -> bool:
        """Whether another record told the same call of the same message; one record may hold two calls of one id."""
        if not event.id or not event.api_id:
            return False
        here = (event.message_id, event.index)
        first = self._told.setdefault((event.api_id, event.id), here)
        return first is not here and (first[0] != event.message_id or first == here)

    def _free_id(self, named: str) -> str:
        """The id, or one with a number behind it where another call has it.

        Claude Code takes `a_2` for a second `a` where there is an `a`, and drops its result: such ids count as one."""
        call = named
        while call in self._used or call in self._before_numbers or self._is_numbered(call):
            self._alike[named] += 1
            call = f"{named}-{self._alike[named] + 1}"
        self._used.add(call)
        self._before_numbers.add(_before_number(call))
        return call

    def _is_numbered(self, call: str) -> bool:
        name = _before_number(call)
        return bool(name) and name in self._used

    def _answer(self, event: ToolResult) -> None:
        self._heard += 1
        if not (alike := self._open.get(event.id)):
            self.lost["results without a call"] += 1
            return
        _, calls = alike[-1]  # of calls with one id the last reply's are answered, in their order
        said, call = calls.popleft()
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


def _before_number(call: str) -> str:
    """What stands before the number of an id like `a_2`; empty for any other."""
    name, _, number = call.rpartition("_")
    return name if number.isdecimal() else ""


def arguments(text: bytes) -> dict[str, Any]:
    """A call's arguments as the object the API wants; anything else is put inside one."""
    try:
        value = orjson.loads(text or b"{}")
    except orjson.JSONDecodeError:
        return {"input": text.decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"input": value}


def _is_anthropic(event: Thinking) -> bool:
    """Whether Anthropic may have sealed it, in base64; some runtimes keep whole items of OpenAI's in that place."""
    return _BASE64.fullmatch(event.signature) is not None and not is_openai(event)


def _thought(event: Thinking) -> Block:
    if is_redacted(event):
        return {"type": "redacted_thinking", "data": event.signature}
    return {"type": "thinking", "thinking": event.content, "signature": event.signature}


def _result(call: str, content: str | list[Block], *, is_error: bool) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return block | {"is_error": True} if is_error else block
