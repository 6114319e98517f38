"""Events as entries and back. An entry is one event; what the event does not say of it is its `rest`, which a line of a
session log carries beside the event. So an entry that was logged comes back as it was."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import msgspec
import orjson

from harken.clock import from_datetime, in_calendar, to_datetime
from harken.events import Error, Event, Image, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import split_parts, yes_or_no
from harken.events.session import TranscriptEdit
from harken.text import text_of

from .entry import ROLES, TranscriptEntry, TranscriptRole

INSTRUCTIONS = "instructions"
COMPACTION = "compaction"
SUMMARY = "compact_summary"
"""The subtype of the event that an entry of the kind `compaction` is."""
Rest = dict[str, Any]
EPOCH = to_datetime(0)
"""When something happened of which nobody wrote down when."""
_FIELDS = ("role", "content", "created_at", "tool_name", "tool_call_id", "tool_input", "metadata")
"""What an event may say of an entry; its id, source and number are the log's matter."""


class EntryDraft(msgspec.Struct):
    """An entry before it is known whose it is and which number it has."""

    role: TranscriptRole
    content: str
    created_at: datetime
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_input: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    def entry(self, *, entry_id: UUID, source: str, sequence: int) -> TranscriptEntry:
        """The entry that it is, there."""
        return TranscriptEntry(
            role=self.role,
            content=self.content,
            created_at=self.created_at,
            tool_name=self.tool_name,
            tool_call_id=self.tool_call_id,
            tool_input=self.tool_input,
            metadata=self.metadata,
            entry_id=entry_id,
            source=source,
            sequence=sequence,
        )


def derived_id(session: str, source: str, sequence: int) -> UUID:
    """The id of an entry for which none is stored: the same each time it is read."""
    return uuid5(_NAMESPACE, "\n".join((session, source, str(sequence))))


_NAMESPACE = UUID("6f1c8a52-3a0e-5a53-9d0c-5f4f0f4b7a11")


def draft_of(event: Event, names: Mapping[str, str]) -> EntryDraft | None:
    """The entry that an event is; None for one that nobody said or heard. `names` has the tool of each call."""
    time = to_datetime(event.time) if event.time is not None and in_calendar(event.time) else EPOCH
    match event:
        case Prompt():
            words, about = _with_media(event.content, event.images)
            told = {"kind": event.origin or event.source} if event.source == "injected" else {}
            return EntryDraft("user", words, time, metadata=_said({**told, **about}))
        case System(subtype="instructions"):
            return EntryDraft("system", event.message, time, metadata=_object(event.metadata))
        case System(subtype="compact_summary"):
            return EntryDraft("assistant", event.message, time, metadata={"kind": COMPACTION})
        case System() if event.message:
            return EntryDraft("system", event.message, time, metadata=_said({"kind": event.subtype}))
        case TranscriptEdit(action="compact") if event.content:
            return EntryDraft("user", event.content, time, metadata={"kind": COMPACTION})
        case Response():
            return EntryDraft("assistant", event.content, time, metadata=_said({"model": event.model}))
        case Thinking():
            kind = {} if event.redacted is None else {"redacted": event.redacted}
            seal = {"signature": event.signature} if event.signature else {}
            return EntryDraft("assistant", event.content, time, metadata={"kind": "thinking", **seal, **kind})
        case ToolCall():
            return _call(event, time)
        case ToolResult():
            words, about = _with_media(event.output, event.images)
            name = event.name or names.get(event.id) or None
            said = _said({"is_error": event.is_error, **about})
            return EntryDraft("tool", words, time, tool_name=name, tool_call_id=event.id or None, metadata=said)
        case Error():
            return EntryDraft("assistant", event.message, time, metadata={"kind": "error"})
    return None


def _call(event: ToolCall, time: datetime) -> EntryDraft:
    try:
        given = orjson.loads(event.input)
        words = json.dumps(given, indent=2, ensure_ascii=False)
    except (orjson.JSONDecodeError, RecursionError):
        given, words = None, event.input.decode("utf-8", "replace")
    return EntryDraft(
        "assistant",
        words,
        time,
        tool_name=event.name or None,
        tool_call_id=event.id or None,
        tool_input=given if isinstance(given, dict) else None,
        metadata={"kind": "server_tool"} if event.server_tool else None,
    )


def _with_media(text: str, images: Sequence[Image]) -> tuple[str, dict[str, Any]]:
    """The words, with a placeholder where each picture stood, and what is known of the pictures."""
    if not images:
        return text, {}
    parts = [part if isinstance(part, str) else _placeholder(part) for part in split_parts(text, images)]
    return "\n".join(parts), {"media": [_about(image) for image in images]}


def _placeholder(image: Image) -> str:
    about = _about(image)
    size = f", {about['bytes']} bytes" if "bytes" in about else ""
    named = f"file {image.url}" if image.url and not image.is_public else "picture"
    return f"[{image.media_type or named}{size}]"


def _about(image: Image) -> dict[str, Any]:
    about: dict[str, Any] = {"media_type": image.media_type} if image.media_type else {}
    if image.data:
        about["bytes"] = len(image.data) * 3 // 4 - image.data.endswith("=") - image.data.endswith("==")
    if image.url:
        about["url"] = image.url
    return about


def _said(fields: dict[str, Any]) -> dict[str, Any] | None:
    """The fields that say something."""
    return {key: value for key, value in fields.items() if value} or None


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def event_of(entry: TranscriptEntry) -> Event:
    """The event that an entry is."""
    about = entry.metadata or {}
    kind = about.get("kind")
    time = from_datetime(entry.created_at)
    if entry.role == "system":
        # One of a kind is a notice of a runtime, which no model is given again.
        return System(subtype=text_of(kind) or INSTRUCTIONS, message=entry.content, time=time)
    if entry.role == "user" and isinstance(kind, str) and kind:
        # One of a kind is what a program said in the user's place.
        return Prompt(content=entry.content, source="injected", origin="" if kind == "injected" else kind, time=time)
    if entry.role == "user":
        return Prompt(content=entry.content, time=time)
    if entry.role == "tool":
        failed = about.get("is_error") is True
        name = entry.tool_name or ""
        return ToolResult(id=entry.tool_call_id or "", output=entry.content, name=name, is_error=failed, time=time)
    if kind == "thinking":
        signature, redacted = text_of(about.get("signature")), yes_or_no(about.get("redacted"))
        return Thinking(content=entry.content, signature=signature, redacted=redacted, time=time)
    if kind in ("error", "missing"):
        return Error(message=entry.content, time=time)
    if kind == COMPACTION:
        return System(subtype=SUMMARY, message=entry.content, time=time)
    if entry.tool_input is not None or entry.tool_call_id is not None or entry.tool_name is not None:
        given = entry.content.encode("utf-8", "replace") if entry.tool_input is None else plain_json(entry.tool_input)
        server = kind == "server_tool"
        call_id, name = entry.tool_call_id or "", entry.tool_name or ""
        return ToolCall(id=call_id, name=name, input=given, server_tool=server, time=time)
    return Response(content=entry.content, model=text_of(about.get("model")), time=time)


def rest_of(entry: TranscriptEntry, event: Event) -> Rest:
    """What the event does not say of the entry, as JSON values."""
    told = draft_of(event, {})
    rest: Rest = {}
    for name in _FIELDS:
        value = getattr(entry, name)
        if told is None or value != getattr(told, name):
            rest[name] = value.isoformat() if isinstance(value, datetime) else plain(value)
    return rest


def with_rest(draft: EntryDraft, rest: Rest) -> EntryDraft:
    """The entry with what its line says beside the event; what does not fit is left as the event has it."""
    for name in _FIELDS:
        if name not in rest:
            continue
        value = rest[name]
        if name == "created_at":
            value = parse_time(value) or draft.created_at
        elif name == "metadata" and isinstance(value, dict) and draft.metadata and "entry_id" not in rest:
            value = {**draft.metadata, **value}  # of what was captured only what the event does not say is beside it
        if isinstance(value, _TYPES[name]) and (name != "role" or value in ROLES):
            setattr(draft, name, value)
    return draft


_TYPES: dict[str, Any] = {
    "role": str,
    "content": str,
    "created_at": datetime,
    "tool_name": str | None,
    "tool_call_id": str | None,
    "tool_input": dict | None,
    "metadata": dict | None,
}


def drafts_of(
    events: Sequence[Event], rests: Sequence[Rest], names: dict[str, str]
) -> Iterator[tuple[EntryDraft, Rest]]:
    """The entries of one record, each with what stands beside it; `names` learns the tools of its calls."""
    for number, event in enumerate(events):
        if isinstance(event, ToolCall) and event.id:
            names[event.id] = event.name
        rest = rests[number] if number < len(rests) and isinstance(rests[number], dict) else {}
        draft = draft_of(event, names)
        if draft is None and "content" in rest:
            # What no event has a place for, or says nothing of, is an entry where somebody said what it is.
            draft = EntryDraft("assistant", "", to_datetime(event.time or 0))
        if draft is not None:
            yield with_rest(draft, rest), rest


# -- values ------------------------------------------------------------------------------------------------------------


def parse_time(text: object) -> datetime | None:
    """A time as an entry has it, with its zone; None for what is none."""
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def parse_id(text: object) -> UUID | None:
    """The id of an entry; None for what is none."""
    try:
        return UUID(text) if isinstance(text, str) else None
    except ValueError:
        return None


def plain(value: Any) -> Any:
    """A value as JSON has it: what JSON does not know is its text."""
    return orjson.loads(plain_json(value))


def plain_json(value: Any) -> bytes:
    """A value as JSON text, whatever it holds."""
    try:
        return orjson.dumps(value, default=_odd, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # Lone surrogates, numbers beyond 64 bits, keys of odd types, what holds itself.
        return orjson.dumps(_paired(value, ()))


_DEEPEST = 200


def _paired(value: Any, above: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return str(value).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else str(value)
    if id(value) in above or len(above) >= _DEEPEST:
        return "…"
    above = (*above, id(value))
    if isinstance(value, dict):
        return {_paired(str(key), ()): _paired(inner, above) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_paired(inner, above) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _paired(getattr(value, one.name), above) for one in fields(value)}
    return _paired(_odd(value), above)


def _odd(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # the SDKs' objects
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, enum.Enum):
        return value.value
    return value.isoformat() if isinstance(value, datetime) else str(value)
