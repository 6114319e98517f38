"""Events as chat messages: how a conversation of any origin is told to a model behind OpenAI's chat completions.

The API wants every call answered by the messages right behind the one that makes it, which is Anthropic's rule too:
`Arranger` puts the events in turn, and here its turns become messages. Reasoning goes into the fields in which LiteLLM
and several providers take it back; OpenAI itself has none for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from harken import ids
from harken.events import Event, Image, Output, System, Thinking, ToolCall
from harken.events.base import clean
from harken.events.messages import is_redacted
from harken.formats.base import Loss

from .anthropic import PDF, Block
from .anthropic_writing import WHY, Arranger, Said
from .chat import FIELDS, KEPT, PART_EXTRAS, SOUNDS, is_sendable
from .jsonl import Record, parse
from .openai import is_openai, reply_id, url_of

LONGEST_ID = 40
"""The API refuses calls whose ids are longer."""
PICTURES = "Pictures of the result:"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALLS = "tool_calls"
_MEDIA = ("image_url", "file", "input_audio")
_PART = None
"""In the place of a field's name: a whole part of the message."""


def _message_key(event: Event) -> str:
    """What the events of one message have in common. Calls that nobody answered between them are one message's, since
    the answers have to follow it: records of their own tell nothing else."""
    return reply_id(event) or ("" if isinstance(event, ToolCall) else event.message_id)


class ChatArranger(Arranger):
    """The rules of chat completions, where they are not those of Anthropic's messages."""

    longest_name = 64
    needs_signature = False
    message_of = staticmethod(_message_key)
    why = {  # noqa: RUF012
        **WHY,
        "thinking": "a message has words or calls, and none of the model's came behind it",
        "names of tools": "one has at most 64 characters: letters, digits, `_` and `-`",
        "damaged pictures": "the API would refuse them, and with them everything else",
        "files": "a message holds pictures, sounds and PDF documents alone",
        "pictures of results": "a result holds words alone; they are in a message behind it",
        "error marks": "a failed call is told by its text alone",
        "ids of calls": f"one has at most {LONGEST_ID} characters",
        "fields of messages": "the API takes them in answers alone, or not in these words",
    }

    def instructions(self, event: System) -> None:
        if not event.message.strip():
            self.lost["blank texts"] += 1
            return
        told = parse(event.metadata) or {}
        role = "developer" if told.get("role") == "developer" else "system"
        self.add(Said(role, [event], [{"type": "text", "text": event.message}]))

    def picture(self, image: Image) -> Block | None:
        """The picture or document as a part of a message."""
        if image.data and image.media_type == PDF:
            return {"type": "file", "file": {"filename": "document.pdf", "file_data": url_of(image)}}
        sound = image.media_type.removeprefix("audio/")
        if image.data and sound in SOUNDS and sound != image.media_type:
            return {"type": "input_audio", "input_audio": {"data": image.data, "format": sound}}
        if image.media_type and not image.media_type.startswith("image/"):
            self.lost["files"] += 1
            return None
        if not image.data and image.url.startswith(KEPT):
            return {"type": "file", "file": {"file_id": image.url}}
        if not image.data and not image.url:
            self.lost["pictures without content"] += 1
            return None
        if why := _why_refused(image):
            self.lost["damaged pictures"] += 1
            return {"type": "text", "text": f"[picture left out: {why}]"}
        return {"type": "image_url", "image_url": {"url": clean(url_of(image))}}


def _why_refused(image: Image) -> str:
    if not image.data:
        return "" if image.is_public else "its address cannot be reached"
    from .pictures import is_picture  # most conversations have none

    return "" if is_picture(image.data) else "it is damaged"


def to_messages(events: Sequence[Event]) -> tuple[list[Record], tuple[Loss, ...]]:
    """The messages of the conversation, and what could not be said."""
    return _ChatComposer().run(events)


class _ChatComposer:
    def __init__(self) -> None:
        self._arranger = ChatArranger()
        self._lost = self._arranger.lost
        self._fields: dict[str, list[dict[str | None, Any]]] = {}
        """What else a message says, by the record that it was read from."""
        self._ids: dict[str, str] = {}

    def run(self, events: Sequence[Event]) -> tuple[list[Record], tuple[Loss, ...]]:
        turns = self._arranger.run([event for event in events if not self._is_field(event)])
        messages = [message for said in _whole(turns.messages) for message in self._said(said)]
        self._lost["fields of messages"] += sum(map(len, self._fields.values()))
        return messages, self._arranger.losses()

    def _is_field(self, event: Event) -> bool:
        """Whether it says more of a message; then it is kept until that message is written."""
        if not isinstance(event, Output) or not event.message_id:
            return False
        told = parse(event.raw) or {}
        more = {_PART: told} if is_sendable(told) else told.get(FIELDS) if len(told) == 1 else None
        if not isinstance(more, dict):
            return False
        self._fields.setdefault(event.message_id, []).append(more)
        return True

    def _said(self, said: Said) -> Iterator[Record]:
        if said.role == "assistant":
            yield from self._assistant(said)
            return
        message: Record = {"role": said.role, "content": _content(_on_lines(said.blocks))}
        self._add_fields(message, said.events)
        yield message

    def _assistant(self, said: Said) -> Iterator[Record]:
        pairs = list(zip(said.events, said.blocks, strict=True))
        thoughts = [event for event, _ in pairs if isinstance(event, Thinking)]
        texts = [block for _, block in pairs if block["type"] == "text"]
        calls = [(event.id, self._call(event, block)) for event, block in pairs if isinstance(event, ToolCall)]
        if not texts and not calls:
            self._lost["thinking"] += len(thoughts)
            return
        message: Record = {"role": "assistant", "content": _content(texts) if texts else None}
        if calls:
            message[_CALLS] = [call for _, call in calls]
        message |= _reasoning(thoughts)
        self._add_fields(message, said.events, calls)
        yield message
        yield from self._results(said)

    def _call(self, event: ToolCall, block: Block) -> Record:
        call, name, given = self._id(block["id"]), block["name"], event.input.decode(errors="replace")
        if _is_free_text(event.input):
            return {"id": call, "type": "custom", "custom": {"name": name, "input": given}}
        return {"id": call, "type": "function", "function": {"name": name, "arguments": given or "{}"}}

    def _id(self, call: str) -> str:
        """The id, or a shorter one that no other call has; a call and its result ask alike."""
        if (short := self._ids.get(call)) is None:
            short = call
            if len(call) > LONGEST_ID:
                short = f"{call[: LONGEST_ID - 17]}_{ids.short_digest(call.encode())}"
                self._lost["ids of calls"] += 1
            self._ids[call] = short
        return short

    def _results(self, said: Said) -> Iterator[Record]:
        shown: list[Block] = []
        for call, block, event in said.results:
            content = block["content"]
            if isinstance(content, list):
                pictures = [part for part in content if part["type"] != "text"]
                self._lost["pictures of results"] += len(pictures)
                shown += [{"type": "text", "text": f"{PICTURES} {self._id(call)}"}, *pictures] if pictures else []
                content = "\n".join(part["text"] for part in content if part["type"] == "text")
            self._lost["error marks"] += event is not None and block.get("is_error") is True
            message: Record = {"role": "tool", "tool_call_id": self._id(call), "content": clean(content)}
            self._add_fields(message, [event] if event else [])
            yield message
        if shown:
            yield {"role": "user", "content": shown}

    def _add_fields(self, message: Record, events: Sequence[Event], calls: Sequence[tuple[str, Record]] = ()) -> None:
        """Puts what else was said with the message back into it."""
        by_id = dict(calls) if self._fields else {}
        for name in dict.fromkeys(event.message_id for event in events):
            for more in self._fields.pop(name, ()) if self._fields else ():
                for key, value in more.items():
                    put = _PUT.get(key)
                    done = put(message, value) if put else key == _CALLS and _put_calls(by_id, value)
                    self._lost["fields of messages"] += not done


def _whole(turns: Sequence[Said]) -> Iterator[Said]:
    """The turns, with reasoning, words and calls that came as records of their own in one message. Words behind words
    are another message."""
    begun: Said | None = None
    worded = False
    for said in turns:
        words = _has_words(said)
        if begun and said.role == "assistant" and not begun.results and not (worded and words):
            worded = worded or words
            begun.events += said.events
            begun.blocks += said.blocks
            begun.results = said.results
            continue
        if begun:
            yield begun
        begun, worded = (said, words) if said.role == "assistant" else (None, False)
        if begun is None:
            yield said
    if begun:
        yield begun


def _has_words(said: Said) -> bool:
    return any(block["type"] == "text" for block in said.blocks)


def _content(blocks: Sequence[Block]) -> str | list[Block]:
    """One text as it is, anything else as parts."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return clean(blocks[0]["text"])
    return [{"type": "text", "text": clean(one["text"])} if one["type"] == "text" else one for one in blocks]


def _on_lines(blocks: Sequence[Block]) -> list[Block]:
    """The parts, with texts that follow each other (a picture between them was left out) on the lines of one."""
    made: list[Block] = []
    for one in blocks:
        if made and one["type"] == made[-1]["type"] == "text":
            made[-1] = {"type": "text", "text": f"{made[-1]['text']}\n{one['text']}"}
        else:
            made.append(one)
    return made


def _is_free_text(given: bytes) -> bool:
    """Whether a call was given something else than JSON: a patch, a program. Half an object is no free text."""
    if not given or given.lstrip()[:1] == b"{":
        return False
    try:
        orjson.loads(given)
    except orjson.JSONDecodeError:
        return True
    return False


def _reasoning(thoughts: Sequence[Thinking]) -> Record:
    """The fields of a message that hold the model's reasoning, each kind in its own."""
    if not thoughts:
        return {}
    fields: Record = {}
    if words := "\n".join(clean(event.content) for event in thoughts if event.content):
        fields["reasoning_content"] = words
    items = [_item(event) for event in thoughts if is_openai(event)]
    signed = [event for event in thoughts if not is_openai(event)]
    if any(event.signature for event in signed):
        fields["thinking_blocks"] = [_block(event) for event in signed]
    if items:
        fields["reasoning_items"] = items
    return fields


def _item(event: Thinking) -> Record:
    summary = [{"type": "summary_text", "text": clean(event.content)}] if event.content else []
    named = {"id": event.api_id} if event.api_id.startswith("rs_") else {}
    return {"type": "reasoning", **named, "encrypted_content": event.signature, "summary": summary}


def _block(event: Thinking) -> Block:
    if is_redacted(event):
        return {"type": "redacted_thinking", "data": clean(event.signature)}
    signed = {"signature": clean(event.signature)} if event.signature else {}
    return {"type": "thinking", "thinking": clean(event.content), **signed}


# -- what else a message says ------------------------------------------------------------------------------------------


def _put_name(message: Record, value: Any) -> bool:
    fits = isinstance(value, str) and _NAME.fullmatch(value) is not None and message["role"] != "tool"
    if fits:
        message["name"] = value
    return fits


def _put_refusal(message: Record, value: Any) -> bool:
    """Words that are a refusal are a part of their own kind."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if not isinstance(value, str) or not any(part.get("text") == value for part in parts):
        return False
    refused = {"type": "refusal", "refusal": value}
    message["content"] = [refused if part.get("text") == value else part for part in parts]
    return True


def _put_part(message: Record, value: Any) -> bool:
    if message["role"] != "user":
        return False
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    message["content"].append(value)
    return True


def _put_media(message: Record, value: Any) -> bool:
    """How closely to look at pictures, and the names of files, where all of them are still there."""
    parts = message["content"] if isinstance(message["content"], list) else []
    media = [part for part in parts if part["type"] in _MEDIA]
    if not isinstance(value, list) or len(value) > len(media):
        return False
    pairs = [(part, told) for part, told in zip(media, value, strict=False) if told]
    if not all(isinstance(told, dict) and told.keys() == {PART_EXTRAS.get(part["type"])} for part, told in pairs):
        return False
    for part, told in pairs:
        part[part["type"]] = {**part[part["type"]], **told}
    return True


def _put_mark(message: Record, value: Any) -> bool:
    """A mark for a cache stands at the end of what is to be kept."""
    content = message["content"]
    if not isinstance(value, dict):
        return False
    if isinstance(content, list):
        content[-1] = {**content[-1], "cache_control": value}
    else:
        message["cache_control"] = value
    return True


def _put_object(key: str) -> Callable[[Record, Any], bool]:
    def put(message: Record, value: Any) -> bool:
        if isinstance(value, dict):
            message[key] = value
        return isinstance(value, dict)

    return put


def _put_details(message: Record, value: Any) -> bool:
    """OpenRouter's reasoning, with the signatures by which the model knows it again."""
    if message["role"] != "assistant" or not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return False
    message["reasoning_details"] = value
    return True


def _put_calls(calls: dict[str, Record], value: Any) -> bool:
    done = False
    for one in value if isinstance(value, list) else []:
        if isinstance(one, dict) and (call := calls.get(str(one.get("id")))) is not None:
            call |= {key: inner for key, inner in one.items() if key != "id" and isinstance(inner, dict)}
            done = True
    return done


_PUT: dict[str | None, Callable[[Record, Any], bool]] = {
    "content": _put_media,
    "name": _put_name,
    "refusal": _put_refusal,
    _PART: _put_part,
    "cache_control": _put_mark,
    "provider_specific_fields": _put_object("provider_specific_fields"),
    "extra_content": _put_object("extra_content"),
    "reasoning_details": _put_details,
}
