"""An event as the map that `events-v1` stores, and back.

The envelope is Bureau's (`type`, `timestamp` in whole seconds, one payload under the type's name); what Harken adds
are extra keys, absent when there is nothing to say. A time that is a whole second needs no `time` key; an unknown
time is `timestamp` 0 without one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harken.clock import SECOND, format_instant, in_calendar, parse_instant
from harken.errors import BadRecord

from . import KINDS
from .base import Event, Image, clean
from .upcasts import Wire, bring_up

_ENVELOPE = frozenset(Event.__struct_fields__)
# Fields a Bureau reader expects to find even when they are empty.
_ALWAYS = frozenset(
    {
        ("prompt", "content"),
        ("prompt", "source"),
        ("tool_call", "name"),
        ("response", "content"),
        ("thinking", "content"),
        ("output", "raw"),
        ("error", "message"),
        ("system", "subtype"),
        ("piece_of_text", "content"),
        ("transcript_edit", "action"),
    }
)


def _payload_fields(cls: type[Event]) -> tuple[tuple[str, Any, bool], ...]:
    return tuple(
        (field.name, field.default, (cls.kind, field.name) in _ALWAYS)
        for field in msgspec.structs.fields(cls)
        if field.name not in _ENVELOPE
    )


_FIELDS = {kind: _payload_fields(cls) for kind, cls in KINDS.items()}

# What today's writer puts into a map, and nothing else: such a map needs no upcast and no picking of fields.
_OWN = {
    kind: (
        cls,
        frozenset(
            {"type", "timestamp", "time", kind, "message_id", "agent_id", "substance", "cause", "index", "api_id"}
        ),
        frozenset(name for name, _, _ in _FIELDS[kind]),
        frozenset(name for name, default, _ in _FIELDS[kind] if isinstance(default, bytes)),
    )
    for kind, cls in KINDS.items()
}


def to_wire(event: Event) -> Wire:
    """The event as a map of plain values."""
    payload: Wire = {}
    for name, default, always in _FIELDS[event.kind]:
        value = getattr(event, name)
        if always or value != default:
            payload[name] = _plain(value)
    wire: Wire = {"type": event.kind, "timestamp": 0, event.kind: payload}
    if event.time is not None:
        wire["timestamp"] = seconds = event.time // SECOND
        if event.time % SECOND or not seconds:
            wire["time"] = format_instant(event.time)
    for key in ("message_id", "agent_id", "substance", "api_id"):
        if value := getattr(event, key):
            wire[key] = clean(value)
    if event.cause is not None:
        wire["cause"] = clean(event.cause) if isinstance(event.cause, str) else [clean(c) for c in event.cause]
    if event.index:
        wire["index"] = event.index
    return wire


def to_readable(event: Event) -> Wire:
    """The event as `to_wire` has it, with bytes as text: what JSON can hold."""
    wire = to_wire(event)
    wire[event.kind] = {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for name, value in wire[event.kind].items()
    }
    return wire


def from_readable(wire: object) -> Event:
    """The event that `to_readable` has told; `BadRecord` says why it is none."""
    kind = wire.get("type") if isinstance(wire, dict) else None
    if not isinstance(wire, dict) or not isinstance(kind, str) or kind not in _OWN:
        return from_wire(wire)
    payload = wire.get(kind)
    if not isinstance(payload, dict):
        return from_wire(wire)
    texts = {name: payload[name] for name in _OWN[kind][3] if isinstance(payload.get(name), str)}
    try:
        return from_wire({**wire, kind: payload | {name: clean(text).encode() for name, text in texts.items()}})
    except TypeError as problem:  # a value in the place of a text, and one that JSON of bytes does not have
        raise BadRecord(f"a {kind} event does not fit: {problem}") from None


def from_wire(wire: object) -> Event:
    """The event a map stands for; `BadRecord` says why one does not stand for any."""
    if not isinstance(wire, dict):
        raise BadRecord(f"an event is a map, not {type(wire).__name__}")
    return _read_own(wire) or _read_any(wire)


def _read_own(wire: Wire) -> Event | None:
    """The event, if the map is just as `to_wire` makes it; most are, and this is twice as quick."""
    kind = wire.get("type")
    if not isinstance(kind, str) or kind not in _OWN:
        return None
    payload = wire.get(kind)
    if not isinstance(payload, dict) or not isinstance(wire.get("timestamp"), int):
        return None
    cls, envelope, fields, inlined = _OWN[kind]
    if not (wire.keys() <= envelope and payload.keys() <= fields):
        return None
    if inlined and not all(isinstance(payload.get(name, b""), bytes) for name in inlined):
        return None
    try:
        return msgspec.convert({**wire, **payload, "time": _instant(wire)}, cls)
    except (msgspec.ValidationError, OverflowError):
        return None


def _read_any(wire: Wire) -> Event:
    wire = bring_up(wire)
    kind = wire.get("type")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise BadRecord(f"unknown event type {kind!r}")
    payload = wire.get(cls.kind, {})
    if not isinstance(payload, dict):
        raise BadRecord(f"the payload of a {kind} event is a map, not {type(payload).__name__}")
    fields = {name: payload[name] for name, _, _ in _FIELDS[cls.kind] if name in payload}
    fields |= {key: wire[key] for key in ("message_id", "agent_id", "substance", "index", "api_id") if key in wire}
    if (cause := wire.get("cause")) is not None:
        fields["cause"] = cause
    fields["time"] = _instant(wire)
    try:
        return msgspec.convert(fields, cls)
    except (msgspec.ValidationError, OverflowError) as problem:
        raise BadRecord(f"a {kind} event does not fit: {problem}") from None


def _instant(wire: Wire) -> int | None:
    if (instant := parse_instant(wire.get("time"))) is not None:
        return instant
    seconds = wire.get("timestamp")
    if not isinstance(seconds, int) or not seconds or not in_calendar(seconds * SECOND):
        return None
    return seconds * SECOND


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Image):
        return {name: _plain(part) for name, part in msgspec.structs.asdict(value).items() if part not in ("", None)}
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise BadRecord("a number does not fit into 64 bits", hint="leave out a figure that cannot be")
    return value
