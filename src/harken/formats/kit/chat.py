"""Chat messages: a message of OpenAI's chat completions as events, with what LiteLLM adds to it.

Messages of a request, of a list and of a response are read with the same table. What a message says besides the
conversation (a participant's name, marks for a cache, a provider's own fields, a file's name) is an `Output` behind
its events, whose one key is `FIELDS`; the writer puts it back where the message is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harken.events import Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, join_parts, text_at
from harken.events.messages import signed_thought

from .anthropic import image_of as picture_of_block
from .jsonl import Record, encode
from .openai import image_of, sound_of, url_of

FIELDS = "message_fields"
"""The key of an `Output` that holds what else a message says."""
_READ = frozenset(
    {
        "role", "content", "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning",
        "thinking_blocks", "reasoning_items", "parsed",
    }
)  # fmt: skip
"""Fields of a message that events have a place for; the last is the content again, as OpenAI's SDK has read it. Any
other is kept beside them; a refusal and what was spoken are there as words as well."""
PART_EXTRAS = {"image_url": "detail", "file": "filename"}
"""What parts of each kind say that no event has a place for."""
CALL_EXTRAS = ("cache_control", "provider_specific_fields", "extra_content")
"""The last is Google's: without the signature in it, Gemini refuses the call when it is sent back."""
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal", "video_url", "document"})
"""What the content of a message is made of; a text alone may be for any API."""
SOUNDS = ("wav", "mp3")
KEPT = "file-"
"""What the id of a file begins with that OpenAI keeps."""


def message_events(message: Any, model: str = "") -> Iterator[Event]:
    """What a message says, in order; one that nobody can read is an `Output` with the reason."""
    role = message.get("role") if isinstance(message, dict) else None
    handler = _HANDLERS.get(role) if isinstance(role, str) else None
    if handler is None:
        yield Output(raw=encode(message), why=_why_not(message))
        return
    yield from handler(message, model)
    if said := _besides(message):
        yield Output(raw=encode({FIELDS: said}))


def _why_not(message: Any) -> str:
    if not isinstance(message, dict):
        return "not a message"
    role = message.get("role")
    return f"a message of {clean(role)[:80]!r}" if isinstance(role, str) else "a message without a role"


def _records(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# -- content -----------------------------------------------------------------------------------------------------------


def _parts(content: object) -> list[Any]:
    """The parts of a message's content; what is neither text nor a list of parts is told as JSON."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return content
    told = encode(content).decode()
    return [] if told == "null" else [told]  # a number that is none


def _said(part: Any) -> str | Image | Output:
    """A part as words, as a picture (a document is kept as one), or as what it is."""
    if isinstance(part, str):
        return clean(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or (kind is not None and not isinstance(kind, str)):
        return Output(raw=encode(part), why="not a part of a message")
    for key in ("text", "refusal"):
        if kind in (key, None, f"input_{key}", f"output_{key}") and isinstance(part.get(key), str):
            return clean(part[key])
    shown = _MEDIA[kind](part) if kind in _MEDIA else None
    if shown is not None:
        return shown
    why = "neither words nor a picture" if kind in PARTS else "unknown part of a message"
    return Output(raw=encode(part), why=f"{why}: {clean(kind or '')[:80]!r}")


def _image(part: Record) -> Image | None:
    found = part.get("image_url")
    url = found.get("url") if isinstance(found, dict) else found
    return image_of(clean(url)) if isinstance(url, str) else None


def _block(part: Record) -> Image | None:
    """A picture or a document as Anthropic writes it, which LiteLLM lets through."""
    found = picture_of_block(part)
    return found if found.data or found.url else None


def _file(part: Record) -> Image | None:
    """A file that is in the message itself, or that the provider keeps, whose address is then its id."""
    inner = part.get("file")
    if not isinstance(inner, dict):
        return None
    kept = text_at(inner, "file_id")
    if inner.keys() == {"file_id"} and kept.startswith(KEPT):
        return Image(url=kept)
    found = image_of(text_at(inner, "file_data"))
    return found if found.data and found.media_type else None


def _sound(part: Record) -> Image | None:
    found = sound_of(part.get("input_audio"))
    return image_of(clean(url_of(found))) if found is not None else None


_MEDIA: dict[str, Callable[[Record], Image | None]] = {
    "image_url": _image,
    "image": _block,
    "document": _block,
    "file": _file,
    "input_audio": _sound,
}


def _heard(content: object) -> tuple[str, tuple[Image, ...], list[Output]]:
    """The words of a content, the pictures with their places among them, and what is neither."""
    parts = [_said(part) for part in _parts(content)]
    text, images = join_parts(part for part in parts if not isinstance(part, Output))
    return text, images, [part for part in parts if isinstance(part, Output)]


def is_sendable(part: Record) -> bool:
    """Whether it is a part that a message takes back as it is: a sound, or a file
    that some provider keeps."""
    kind = part.get("type")
    inner = part.get(kind) if kind in ("input_audio", "file") else None
    if not isinstance(inner, dict):
        return False
    if kind == "input_audio":
        return isinstance(inner.get("data"), str) and inner.keys() == {"data", "format"} and inner["format"] in SOUNDS
    return inner.keys() <= {"file_id", "file_data", "filename"} and all(isinstance(one, str) for one in inner.values())


# -- one message of each role ------------------------------------------------------------------------------------------


def _system(message: Record, model: str) -> Iterator[Event]:
    parts = [(part, _said(part)) for part in _parts(message.get("content"))]
    text = "\n".join(said for _, said in parts if isinstance(said, str))
    yield System(subtype="instructions", message=text, metadata=encode({"role": message["role"]}))
    for part, said in parts:
        if isinstance(said, Image):
            yield Output(raw=encode(part), why="instructions are words alone")
        elif isinstance(said, Output):
            yield said


def _user(message: Record, model: str) -> Iterator[Event]:
    text, images, others = _heard(message.get("content"))
    if text or images or not others:
        yield Prompt(content=text, images=images)
    yield from others


def _result(message: Record, model: str) -> Iterator[Event]:
    text, images, others = _heard(message.get("content"))
    name = text_at(message, "name")
    # The answer to a `function_call` names the function alone.
    call = text_at(message, "tool_call_id") or (function_id(name) if message["role"] == "function" else "")
    yield ToolResult(id=call, output=text, name=name, images=images)
    yield from others


def function_id(name: str) -> str:
    """The id of a `function_call`, which has none: call and answer know each other by the function's name."""
    return f"function_{name}"


def _assistant(message: Record, model: str) -> Iterator[Event]:
    events = [*_thoughts(message), *_words(message, model), *_calls(message)]
    yield from events or [Response(model=model)]


def _words(message: Record, model: str) -> Iterator[Event]:
    """Each part is a response of its own; a refusal and what was spoken aloud are words too."""
    for part in _parts(message.get("content")):
        if isinstance(part, dict) and part.get("type") in _BLOCKS:
            yield _thought(part)
            continue
        said = _said(part)
        if isinstance(said, str):
            if said:
                yield Response(content=said, model=model)
        elif isinstance(said, Image):
            yield Output(raw=encode(part), why="a picture that the model made")
        else:
            yield said
    if refusal := text_at(message, "refusal"):
        yield Response(content=refusal, model=model)
    audio = message.get("audio")
    if isinstance(audio, dict) and not message.get("content") and (spoken := text_at(audio, "transcript")):
        yield Response(content=spoken, model=model)


_BLOCKS = ("thinking", "redacted_thinking")


def _thoughts(message: Record) -> Iterator[Thinking]:
    """The reasoning, once: the blocks with their signatures, else the items, else the text alone."""
    blocks = [_thought(one) for one in _records(message.get("thinking_blocks")) if one.get("type") in _BLOCKS]
    items = [_item(one) for one in _records(message.get("reasoning_items"))]
    signed = blocks or items
    text = text_at(message, "reasoning_content") or text_at(message, "reasoning")
    if text and not any(one.content for one in signed):
        yield Thinking(content=text)
    yield from signed


def _thought(block: Record) -> Thinking:
    if block.get("type") == "redacted_thinking":
        return signed_thought("", text_at(block, "data"), redacted=True)
    words = text_at(block, "thinking") or "\n".join(text_at(part, "text") for part in _records(block.get("thinking")))
    return signed_thought(words, text_at(block, "signature"), redacted=False)


def _item(item: Record) -> Thinking:
    """What OpenAI's other API calls a reasoning item."""
    words = "\n".join(text_at(part, "text") for part in _records(item.get("summary")))
    return Thinking(content=words, signature=text_at(item, "encrypted_content"), api_id=text_at(item, "id"))


def _calls(message: Record) -> Iterator[Event]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        yield from _call(call)
    if isinstance(function := message.get("function_call"), dict):
        name = text_at(function, "name")
        yield ToolCall(id=function_id(name), name=name, input=_arguments(function.get("arguments")))


def _call(call: Any) -> Iterator[Event]:
    """A call of a function, or of a tool that takes free text."""
    for kind, given in (("function", "arguments"), ("custom", "input")):
        asked = call.get(kind) if isinstance(call, dict) else None
        if isinstance(asked, dict):
            yield ToolCall(id=text_at(call, "id"), name=text_at(asked, "name"), input=_arguments(asked.get(given)))
            more = {key: call[key] for key in CALL_EXTRAS if call.get(key)}
            if (inner := asked.get("provider_specific_fields")) and "provider_specific_fields" not in more:
                more["provider_specific_fields"] = inner
            if more:
                yield Output(raw=encode({FIELDS: {"tool_calls": [{"id": call.get("id"), **more}]}}))
            return
    yield Output(raw=encode(call), why="a call of no tool")


def _arguments(value: object) -> bytes:
    """The arguments as text, just as the model wrote them; some programs keep them parsed."""
    if isinstance(value, str):
        return clean(value).encode()
    return b"" if value is None else encode(value)


def _besides(message: Record) -> Record:
    """What else the message says, or its parts: a mark for a cache, and that some words are a refusal."""
    own = ("name",) if message["role"] in ("tool", "function") else ()
    said = {key: value for key, value in message.items() if value and key not in _READ and key not in own}
    parts = _records(message.get("content"))
    for part in parts:
        said |= {key: part[key] for key in ("cache_control", "refusal") if part.get(key)}
    if any(map(_of_part, parts)):  # pictures are long, and most say no more
        media = [_of_part(part) for part in parts if isinstance(_said(part), Image)]
        said |= {"content": media} if any(media) else {}
    return said


def _of_part(part: Record) -> Record:
    """What a picture or a file says besides its content: how closely to look, what it is called."""
    kind = text_at(part, "type")
    key = PART_EXTRAS.get(kind, "")
    inner = part.get(kind)
    value = text_at(inner, key) if isinstance(inner, dict) else ""
    return {} if value in ("", "auto") else {key: value}


_HANDLERS: dict[str, Callable[[Record, str], Iterator[Event]]] = {
    "system": _system,
    "developer": _system,
    "user": _user,
    "assistant": _assistant,
    "tool": _result,
    "function": _result,
}
