"""Messages in whatever words an instrumentation has for them, as events.

The conventions have had several shapes, and frameworks write the messages of their provider or their own: parts with a
`type`, blocks of Anthropic, parts of Gemini, chat messages with `tool_calls`, items of OpenAI's Responses API. All are
a role and parts, and a part is words, a thought, a call, a result or a picture, by the names that any of them uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from harken.events import Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, join_parts, yes_or_no
from harken.events.messages import signed_thought
from harken.formats.kit.jsonl import NotJson, Record, encode, parse_document
from harken.formats.kit.openai import image_of

from .spans import text_of

ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "tool": "tool", "function": "tool", "chatbot": "assistant",
}  # fmt: skip
DEEP = 6
"""Lists and objects around messages; what is deeper is told as JSON."""
_TEXT = frozenset({"text", "input_text", "output_text", "refusal", "compaction"})
_THOUGHT = frozenset({"reasoning", "thinking", "redacted_thinking", "thought"})
_CALL = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "server_tool_call", "server_tool_use"})
_RESULT = frozenset(
    {
        "tool_call_response", "tool-result", "tool_result", "function_call_output", "function_response",
        "server_tool_call_response",
    }
)  # fmt: skip
_PICTURE = frozenset({"blob", "uri", "image", "image_url", "input_image"})


def loaded(value: Any) -> Any:
    """A value that may be JSON in a text."""
    if not isinstance(value, str) or value[:64].lstrip()[:1] not in ("[", "{", '"'):
        return value
    data = value.encode("utf-8", "replace")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return parse_document(data)
    except NotJson:
        return value


def messages_in(value: Any, role: str, depth: int = 0) -> list[Record]:
    """The messages in a value: a list of them, one, a request or a response that holds them, or words alone."""
    value = loaded(value)
    if value is None or value == "":
        return []
    if isinstance(value, list) and depth < DEEP:
        return [one for item in value for one in messages_in(item, role, depth + 1)]
    if not isinstance(value, dict) or depth >= DEEP:
        return [{"role": role, "content": value if isinstance(value, str) else encode(value).decode()}]
    if isinstance(name := value.get("event.name"), str) and name.startswith("gen_ai."):
        return [message_of_event(name, value)]
    if "role" in value or "parts" in value or value.get("type") in _CALL | _RESULT | {"reasoning"}:
        return [value]
    return _wrapped(value, role, depth + 1)


def _wrapped(value: Record, role: str, depth: int) -> list[Record]:
    """What an object that is no message itself holds: a provider's request or response."""
    found: list[Record] = []
    config = value.get("config")
    for said in (value.get("system"), value.get("system_instruction"), value.get("instructions")):
        found += messages_in(said, "system", depth) if role == "user" else []
    if isinstance(config, dict) and role == "user":
        found += messages_in(config.get("system_instruction"), "system", depth)
    for key in ("messages", "contents", "prompt", "message", "output", "choices", "content", "candidates"):
        if value.get(key) not in (None, "", []):
            return found + messages_in(value[key], role, depth)
    if isinstance(kind := value.get("type"), str) and kind in ROLES:
        return [*found, {**value, "role": ROLES[kind]}]
    if isinstance(kind, str) and kind in _TEXT | _PICTURE:
        return [*found, {"role": role, "parts": [value]}]
    return [*found, {"role": role, "content": encode(value).decode()}]


def message_of_event(name: str, said: Record) -> Record:
    """The message that an event tells of (`gen_ai.user.message`, `gen_ai.choice`)."""
    inner = loaded(said.get("message"))
    about = {key: value for key, value in said.items() if "." not in key and key != "message"}
    about.update(inner if isinstance(inner, dict) else {} if inner is None else {"content": inner})
    role = "assistant" if name == "gen_ai.choice" else name.split(".")[1]
    about["role"] = about.get("role") or role
    about["content"] = loaded(about.get("content"))
    about["tool_calls"] = loaded(about.get("tool_calls"))
    return about


def message_events(message: Record, model: str = "") -> list[Event]:
    """What a message says, in order."""
    role = ROLES.get(text_of(message.get("role")) or text_of(message.get("type")), "")
    if not role:
        role = "tool" if message.get("type") in _RESULT else "assistant" if message.get("type") else "user"
    parts = _parts(message)
    if role == "system":
        words = "\n".join(text for part in parts if (text := _words(part)) is not None)
        return [System(subtype="instructions", message=words)]
    if role == "tool":
        return list(_results(message, parts))
    return list(_said(parts, role, model))


def _parts(message: Record) -> list[Any]:
    """The parts of a message, whatever they are called."""
    if message.get("type") in _CALL | _RESULT | {"reasoning"}:
        return [message]
    parts: list[Any] = []
    for key in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(thought := message.get(key), str) and thought:
            parts.append({"type": "reasoning", "content": thought})
            break
    content = message.get("parts")
    content = message.get("content", message.get("contents")) if content is None else content
    content = loaded(content) if isinstance(content, str) and content.startswith('[{"') else content
    if isinstance(content, list):
        parts += content
    elif isinstance(content, dict) and "parts" in content:
        parts += content["parts"] if isinstance(content["parts"], list) else []
    elif content is not None and content != "":
        parts.append(content)
    calls = message.get("tool_calls")
    calls = [*(calls if isinstance(calls, list) else []), *([message["function_call"]] if _has_call(message) else [])]
    return parts + [{"type": "tool_call", **call} if isinstance(call, dict) else call for call in map(_call_of, calls)]


def _has_call(message: Record) -> bool:
    return isinstance(message.get("function_call"), dict)


def _call_of(call: Any) -> Any:
    """A call of a chat message as a part."""
    inner = call.get("function") if isinstance(call, dict) else None
    if not isinstance(inner, dict):
        return {key: value for key, value in call.items() if key != "type"} if isinstance(call, dict) else call
    return {"id": call.get("id"), "name": inner.get("name"), "arguments": inner.get("arguments")}


def _kind(part: Any) -> str:
    """What a part is: by its type, or by the key that Gemini has for it."""
    if not isinstance(part, dict):
        return "text"
    kind = part.get("type")
    if isinstance(kind, str) and kind:
        return kind
    if part.get("thought") is True:
        return "reasoning"
    for key, name in _KEYS.items():
        if key in part:
            return name
    return ""


_KEYS = {
    "function_call": "function_call", "functionCall": "function_call", "function_response": "function_response",
    "functionResponse": "function_response", "inline_data": "blob", "inlineData": "blob", "text": "text",
    "content": "text", "toolCallId": "tool-call",
}  # fmt: skip


def _words(part: Any) -> str | None:
    """The words of a part; None where it is none of words."""
    if isinstance(part, str):
        return clean(part)
    if not isinstance(part, dict):
        return encode(part).decode()
    if _kind(part) not in _TEXT:
        return None
    for key in ("content", "text", "refusal"):
        if isinstance(found := part.get(key), str):
            return clean(found)
    return None


def _said(parts: list[Any], role: str, model: str) -> Iterator[Event]:
    """What a user or a model says."""
    waiting: list[str | Image] = []
    for part in parts:
        words = _words(part)
        shown = picture(part) if words is None else None
        if role == "user" and (words is not None or shown is not None):
            waiting.append(words if words is not None else shown or "")
            continue
        yield from _prompt(waiting)
        waiting = []
        if words is not None:
            yield Response(content=words, model=model)
        else:
            yield _other(part)
    yield from _prompt(waiting)


def _prompt(said: list[str | Image]) -> Iterator[Event]:
    if said:
        content, images = join_parts(said)
        yield Prompt(content=content, images=images)


def _other(part: Record) -> Event:
    """A part that is no words: a thought, a call, a result, or what nobody knows."""
    kind = _kind(part)
    if kind in _THOUGHT:
        found = _first(part, "content", "thinking", "text", "reasoning")
        words = found if isinstance(found, str) else _summary(part)
        if kind == "redacted_thinking":
            return signed_thought(clean(words), text_of(part.get("data")), redacted=True)
        if kind == "thinking":
            return signed_thought(clean(words), text_of(part.get("signature")), redacted=False)
        return Thinking(
            content=clean(words), signature=text_of(part.get("signature")), redacted=yes_or_no(part.get("redacted"))
        )
    if kind in _CALL:
        return _call(part, kind.startswith("server"))
    if kind in _RESULT:
        return _result(part)
    shown = picture(part)
    why = "a picture that the model made" if shown else f"unknown part of a message: {clean(kind)[:80]!r}"
    return Output(raw=encode(part), why=why)


def _summary(part: Record) -> str:
    """The words of a reasoning item, which has them in parts."""
    parts = part.get("summary")
    return "\n".join(text for one in parts if (text := _words(one))) if isinstance(parts, list) else ""


def _inner(part: Record) -> Record:
    """What a part of Gemini or a provider's own tool holds."""
    for key in ("function_call", "functionCall", "function_response", "functionResponse", "server_tool_call"):
        if isinstance(found := part.get(key), dict):
            return {**part, **found}
    return part


def _first(part: Record, *keys: str) -> Any:
    return next((part[key] for key in keys if part.get(key) is not None), None)


def _id(part: Record) -> str:
    return text_of(_first(part, "call_id", "tool_call_id", "tool_use_id", "toolCallId", "id"))


def _call(part: Record, server: bool) -> ToolCall:
    inner = _inner(part)
    name = text_of(_first(inner, "name", "toolName", "tool_name"))
    given = _first(inner, "arguments", "args", "input")
    return ToolCall(id=_id(inner) or _nameless(name), name=name, input=arguments(given), server_tool=server)


def _nameless(name: str) -> str:
    """The id of a call that has none: call and answer know each other by the name of the tool."""
    return f"function_{name}" if name else ""


def arguments(given: Any) -> bytes:
    """The arguments of a call as text, just as they were written; many keep them parsed."""
    if isinstance(given, str):
        return clean(given).encode()
    return b"" if given is None else encode(given)


def _result(part: Record, call: str = "", name: str = "") -> ToolResult:
    inner = _inner(part)
    name = text_of(_first(inner, "name", "toolName", "tool_name")) or name
    said = _first(inner, "response", "result", "output", "server_tool_call_response", "content", "text")
    output, images = result_of(said)
    failed = inner.get("is_error") is True or inner.get("isError") is True
    known = call or _id(inner) or _nameless(name)
    return ToolResult(id=known, output=output, name=name, images=images, is_error=failed)


def _results(message: Record, parts: list[Any]) -> Iterator[Event]:
    """The results in a message of a tool: each part that is one, or all of it together."""
    call, name = _id(message), text_of(message.get("name"))
    found = [part for part in parts if isinstance(part, dict) and _kind(part) in _RESULT]
    for part in found:
        yield _result(part, _id(part) or call, name)
    if not found:
        output, images = result_of(parts)
        yield ToolResult(id=call or _nameless(name), output=output, name=name, images=images)


def result_of(said: Any, depth: int = 0) -> tuple[str, tuple[Image, ...]]:
    """The words and pictures of a result: a text, parts, or any value, which is told as JSON."""
    if isinstance(said, str):
        return clean(said), ()
    if isinstance(said, dict) and isinstance(said.get("content"), list) and said["content"]:
        said = said["content"]
    if isinstance(said, dict) and "value" in said and said.get("type") in ("text", "json", "error-text") and not depth:
        return result_of(said["value"], depth + 1)
    if isinstance(said, list):
        parts = [_words(part) if _words(part) is not None else picture(part) for part in said]
        if said and all(part is not None for part in parts) and all(isinstance(one, str | dict) for one in said):
            return join_parts(part for part in parts if part is not None)
        if not said:
            return "", ()
    return ("", ()) if said is None else (encode(said).decode(), ())


def picture(part: Any) -> Image | None:
    """The picture in a part; None where it has none."""
    if not isinstance(part, dict) or _kind(part) not in _PICTURE:
        return None
    for key in ("inline_data", "inlineData", "source", "image"):
        if isinstance(inner := part.get(key), dict):
            part = {**inner, "type": part.get("type")}
    media = text_of(_first(part, "mime_type", "mimeType", "media_type"))
    url = _first(part, "uri", "image_url", "url")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str) and url:
        found = image_of(clean(url))
        return Image(media_type=found.media_type or media, data=found.data, url=found.url)
    data = text_of(_first(part, "content", "data"))
    return Image(media_type=media, data=data) if data else None
