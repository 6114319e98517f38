"""A line of the log as events.

`events_of` never raises on what a file may hold: a line that is an object but makes no sense as an event becomes an
`Output` with the reason. Which other things are odd about a line (a link that leads nowhere, substance and cause on
one line) is for the log to find, since it sees the whole file.

Older dialects are read with the keys of v2. Three kinds of log exist: v2 (what Harken writes), v1 (`content_id`,
`caused_by`, text made for others without an agent) and smallchat's (`agent`, `fragment`, decimal ids,
causes of the form `<message>.<call>`, and `user` where no agent is meant). The dialect is told line by line.
"""

from __future__ import annotations

import base64
import binascii
import json
import reprlib
from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from harken.clock import SECOND, in_calendar, parse_instant
from harken.events import (
    KINDS,
    Event,
    Image,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.events.base import yes_or_no
from harken.formats.kit.jsonl import encode_slowly
from harken.text import text_of as text_of  # for whoever takes values from here

from .lines import LogLine

Envelope = dict[str, Any]

ENTRY = "transcript_entry"
INSTRUCTIONS = "instructions"
ROLES = ("system", "user", "assistant", "tool")

PLAIN = {
    kind: tuple(name for name in cls.__struct_fields__ if name not in Event.__struct_fields__)
    for kind, cls in KINDS.items()
    if kind not in {"prompt", "response", "thinking", "tool_call", "tool_result", "output"}
}
"""Kinds that are a line each, and the keys they take over as they are."""
EMBEDDED = frozenset({"metadata", "attributes"})
"""Keys whose value is JSON text in the event and an object on the line."""


def events_of(data: LogLine, raw: bytes | None = None) -> list[Event]:
    """The events on one line (with the keys of v2); at least one. `raw` is kept where the line makes no sense."""
    kind = data.get("event_type")
    envelope = envelope_of(data)
    if kind == ENTRY:
        role = data.get("role")
        read = _BY_ROLE.get(role) if isinstance(role, str) else None
        if read is None:
            return [_opaque(data, raw, envelope, f"unknown role {shown(role)}")]
        return read(data, envelope)
    if kind == "output":
        return [_output(data, envelope)]
    if not isinstance(kind, str) or kind not in PLAIN:
        return [_opaque(data, raw, envelope, f"unknown event type {shown(kind)}")]
    try:
        return [_plain(kind, data, envelope)]
    except (msgspec.ValidationError, OverflowError, ValueError) as problem:
        return [_opaque(data, raw, envelope, f"a {kind} line does not fit: {problem}")]


def envelope_of(data: LogLine) -> Envelope:
    """What every kind has in common. Where a line has both links, substance stands: it implies the other."""
    # Nearly every field is the text it should be; only the others are looked at more closely.
    message_id, agent_id, stamp = data.get("message_id"), data.get("agent_id"), data.get("timestamp")
    envelope: Envelope = {
        "message_id": message_id if type(message_id) is str else as_id(message_id) or "",
        "agent_id": agent_id if type(agent_id) is str else as_id(agent_id) or "",
        "time": parse_instant(stamp) if type(stamp) is str else instant_of(stamp),
    }
    if "substance" in data and (substance := as_id(data["substance"])) is not None:
        envelope["substance"] = substance
    elif "cause" in data:
        envelope["cause"] = as_cause(data["cause"])
    if "index" in data:
        index = data["index"]
        envelope["index"] = index if type(index) is int and index >= 0 else 0
    if "api_id" in data:
        api_id = data["api_id"]
        envelope["api_id"] = api_id if isinstance(api_id, str) else ""
    return envelope


def as_id(value: Any) -> str | None:
    """An id: text as it is, a whole number as its digits, anything else none."""
    if isinstance(value, str):
        return value
    if type(value) is int and abs(value) < 2**63:
        return str(value)
    return None


def as_cause(value: Any) -> str | tuple[str, ...] | None:
    """One cause, several, or none."""
    return as_ids(value) if isinstance(value, list) else as_id(value)


def as_ids(values: list[Any]) -> tuple[str, ...]:
    """The ids in a list; what is none is left out."""
    return tuple(one for item in values if (one := as_id(item)) is not None)


def instant_of(stamp: Any) -> int | None:
    """The instant a `timestamp` names: RFC 3339 text, or a number of seconds."""
    if isinstance(stamp, str):
        return parse_instant(stamp)
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        try:
            instant = round(stamp * SECOND)
        except (ValueError, OverflowError):
            return None
        return instant if in_calendar(instant) else None
    return None


def content_text(content: Any) -> str:
    """The words of a message: text, or the text parts of a list of parts; anything else as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [
            part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, (str, dict))
        ]
        return "\n".join(text for text in texts if isinstance(text, str))
    return as_json(content).decode()


TEXTS = ("origin", "hook", "label", "point", "call_id")
"""What may be told of a prompt in a word."""
_EXTRAS = frozenset({"source", "recipients", "images", *TEXTS})
"""Keys that a prompt may have beside its words."""


def _user(data: LogLine, envelope: Envelope) -> list[Event]:
    content = data.get("content")
    if type(content) is str and _EXTRAS.isdisjoint(data):
        return [Prompt(content=content, **envelope)]
    source, recipients = data.get("source"), data.get("recipients")
    return [
        Prompt(
            content=content_text(content),
            source=source if isinstance(source, str) else "user",
            recipients=as_ids(recipients) if isinstance(recipients, list) else (),
            images=_images(data),
            **{key: data[key] for key in TEXTS if isinstance(data.get(key), str)},
            **envelope,
        )
    ]


def _system(data: LogLine, envelope: Envelope) -> list[Event]:
    return [
        System(
            subtype=INSTRUCTIONS,
            message=content_text(data.get("content")),
            metadata=embedded_bytes(data.get("metadata")),
            **envelope,
        )
    ]


def _tool(data: LogLine, envelope: Envelope) -> list[Event]:
    name = data.get("name")
    return [
        ToolResult(
            id=as_id(data.get("tool_call_id")) or "",
            output=content_text(data.get("content")),
            is_error=data.get("is_error") is True,
            name=name if isinstance(name, str) else "",
            images=_images(data),
            **envelope,
        )
    ]


def _assistant(data: LogLine, envelope: Envelope) -> list[Event]:
    if isinstance(call_id := data.get("call_id"), str):
        envelope["call_id"] = call_id
    if "thinking" not in data and "tool_calls" not in data:  # as nearly all are that only say something
        model = data.get("model")
        name = model if isinstance(model, str) else ""
        return [Response(content=content_text(data.get("content")), model=name, **envelope)]
    index = envelope.pop("index", 0)
    parts: list[Callable[..., Event]] = []
    parts.extend(_thoughts(data.get("thinking")))
    calls = data.get("tool_calls")
    calls = calls if isinstance(calls, list) else [calls] if calls else []
    content, model = data.get("content"), data.get("model")
    if content is not None or not (parts or any(map(is_call, calls))):
        text, name = content_text(content), model if isinstance(model, str) else ""
        parts.append(lambda **rest: Response(content=text, model=name, **rest))
    parts.extend(_call(call) for call in calls)
    return [make(index=index + at, **envelope) for at, make in enumerate(parts)]


def _thoughts(value: Any) -> list[Callable[..., Event]]:
    if value is None:
        return []
    return [_thought(item) for item in (value if isinstance(value, list) else [value])]


def _thought(item: Any) -> Callable[..., Event]:
    if isinstance(item, dict):
        content = content_text(item.get("content", item.get("thinking")))
        signature = item.get("signature")
        return lambda **rest: Thinking(
            content=content,
            signature=signature if isinstance(signature, str) else "",
            redacted=yes_or_no(item.get("redacted")),
            **rest,
        )
    return lambda **rest: Thinking(content=content_text(item), **rest)


def is_call(call: Any) -> bool:
    """Whether an item of `tool_calls` is one."""
    return isinstance(call, dict) and isinstance(call.get("function"), dict)


def _call(call: Any) -> Callable[..., Event]:
    if not is_call(call):
        return lambda call_id="", **rest: Output(raw=as_json(call), why="not a tool call", **rest)
    function = call["function"]
    name, text = function.get("name"), function.get("arguments")
    if isinstance(encoded := function.get("arguments_base64"), str):
        given = _unbase64(encoded)
    elif isinstance(text, str):
        given = text.encode("utf-8", "replace")
    else:
        given = b"" if text is None else as_json(text)
    return lambda **rest: ToolCall(
        id=as_id(call.get("id")) or "",
        name=name if isinstance(name, str) else "",
        input=given,
        server_tool=call.get("server_tool") is True,
        **rest,
    )


_BY_ROLE: dict[str, Callable[[LogLine, Envelope], list[Event]]] = {
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "system": _system,
}


def _images(data: LogLine) -> tuple[Image, ...]:
    items = data.get("images")
    found = [_image(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    parts = data.get("content")
    if isinstance(parts, list):
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "image_url":
                address = part.get("image_url")
                url = address.get("url") if isinstance(address, dict) else address
                found.append(Image(url=url if isinstance(url, str) else ""))
    return tuple(found)


def _image(item: LogLine) -> Image:
    place = item.get("at")
    return Image(
        **{key: item[key] for key in ("media_type", "data", "url") if isinstance(item.get(key), str)},
        at=place if isinstance(place, int) and not isinstance(place, bool) else None,
    )


def _plain(kind: str, data: LogLine, envelope: Envelope) -> Event:
    fields = {name: data[name] for name in PLAIN[kind] if data.get(name) is not None}
    if kind == "transcript_edit":
        fields.setdefault("action", "")  # one that does not say what it does changes nothing
    if not isinstance(fields.get("call_id", ""), str):
        del fields["call_id"]
    for name in EMBEDDED & fields.keys():
        fields[name] = embedded_bytes(fields[name])
    for name in ("cost_usd", "duration_seconds"):
        if isinstance(text := fields.get(name), str):
            fields[name] = float(text)  # JSON has no infinity, so it is written as text
    return msgspec.convert(envelope | fields, KINDS[kind])


def _output(data: LogLine, envelope: Envelope) -> Event:
    raw, encoded = data.get("raw"), data.get("raw_base64")
    why, media_type = data.get("why"), data.get("media_type")
    if isinstance(encoded, str):
        kept = _unbase64(encoded)
    else:
        kept = b"" if raw is None else raw.encode("utf-8", "replace") if isinstance(raw, str) else as_json(raw)
    return Output(
        raw=kept,
        why=why if isinstance(why, str) else "",
        media_type=media_type if isinstance(media_type, str) else "",
        **envelope,
    )


def _opaque(data: LogLine, raw: bytes | None, envelope: Envelope, why: str) -> Event:
    return Output(raw=as_json(data) if raw is None else raw, why=why, **envelope)


def embedded_bytes(value: Any) -> bytes:
    """JSON text that stands on the line as an object, or as text where an object could not say it exactly."""
    if value is None:
        return b""
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        return _unbase64(value["base64"])
    return value.encode("utf-8", "replace") if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> bytes:
    """A decoded value as JSON text again, whatever it holds."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError:
        return encode_slowly(value)


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "replace")


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def shown(value: Any) -> str:
    """A value in a few words, however large or deep it is."""
    try:
        return _REPR.repr(value)[:80]
    except ValueError:  # a number of more digits than Python writes
        return type(value).__name__


def object_of(value: Any) -> dict[str, Any]:
    """An object, or the text of one."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return value if isinstance(value, dict) else {}
