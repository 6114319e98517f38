"""CBOR as Harken reads and writes it: RFC 8949 core deterministic out, and nothing clever in.

Everything that arrives is hostile. A tag may compile a regular expression, share a reference or grow a big number,
so every tag is refused; lengths are definite, keys unique, nesting shallow, and nothing may trail behind.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import cbor2

from harken.errors import BadRecord, BadRequest, HarkenError

from .base import Event
from .runs import Output
from .wire import from_wire, to_wire

MAX_DEPTH = 64
CBOR = "application/cbor"

_HEADS = ((0x98, 1), (0x99, 2), (0x9A, 4), (0x9B, 8))
"""How an array announces a count of 24 and more: the first byte, and how many bytes of count follow."""

_TAGS = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 100, 256, 258, 260, 261, 1004, 43000, 55799)


def _deny(*_: object) -> Any:
    raise BadRecord("a CBOR tag, where plain values are expected")


_SEMANTIC = dict.fromkeys(_TAGS, _deny)


def loads(data: bytes) -> Any:
    """The one value the bytes hold; `BadRecord` for anything else."""
    source = io.BytesIO(data)
    value = _load(source)
    if source.tell() != len(data):
        raise BadRecord(f"{len(data) - source.tell()} bytes trail behind the CBOR value")
    return value


def _load(source: io.BytesIO) -> Any:
    try:
        return cbor2.CBORDecoder(
            source,
            max_depth=MAX_DEPTH,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
            semantic_decoders=_SEMANTIC,
            tag_hook=_deny,  # those that no decoder of the library knows
            read_size=1,
        ).decode()
    except BadRecord:
        raise
    except (
        cbor2.CBORError,
        ValueError,
        TypeError,
        EOFError,
        OverflowError,
        RecursionError,
        MemoryError,
    ) as problem:
        raise BadRecord(f"not CBOR we accept: {problem}") from None


def dumps(value: Any) -> bytes:
    """The deterministic bytes of a plain value."""
    try:
        return cbor2.dumps(value, canonical=True)
    except (cbor2.CBOREncodeError, OverflowError, UnicodeEncodeError) as problem:
        raise BadRequest(
            f"cannot be written as CBOR: {problem}", hint="an event holds texts, bytes, numbers and lists of them"
        ) from None


def array_head(count: int) -> bytes:
    """The bytes that announce an array of `count` items, in the shortest form."""
    if count < 24:
        return bytes((0x80 + count,))
    code, size = next((code, size) for code, size in _HEADS if count < 1 << 8 * size)
    return bytes((code,)) + count.to_bytes(size, "big")


def split_head(data: bytes) -> tuple[int, int]:
    """How many items the array at the front announces, and where the first one begins."""
    first = data[0] if data else 0
    if 0x80 <= first <= 0x97:
        return first - 0x80, 1
    size = dict(_HEADS).get(first)
    if size is None or len(data) < 1 + size:
        raise BadRecord("not a CBOR array of definite length")
    return int.from_bytes(data[1 : 1 + size], "big"), 1 + size


def join_arrays(parts: Iterable[bytes]) -> bytes:
    """One array with the items of all, made by rewriting the head: the items are never decoded."""
    total = 0
    bodies = []
    part = b""
    for part in parts:
        count, start = split_head(part)
        total += count
        bodies.append(memoryview(part)[start:])
    # One alone stays as it is, even where its head is not in the shortest form.
    return part if len(bodies) == 1 else b"".join((array_head(total), *bodies))


def encode_events(events: Sequence[Event]) -> bytes:
    """The `events-v1` array; what was kept as CBOR goes back as the bytes it was."""
    return array_head(len(events)) + b"".join(map(encode_event, events))


def encode_event(event: Event) -> bytes:
    """One item of an `events-v1` array."""
    if isinstance(event, Output) and event.media_type == CBOR:
        return event.raw
    return dumps(to_wire(event))


def encode_what_can_be(events: Sequence[Event]) -> bytes:
    """The same of events of which one may be beyond writing down: it must not keep all others from being kept."""
    try:
        return encode_events(events)
    except (HarkenError, ValueError, OverflowError, TypeError):
        return encode_events([_writable(event) for event in events])


def _writable(event: Event) -> Event:
    try:
        encode_event(event)
    except (HarkenError, ValueError, OverflowError, TypeError) as problem:
        return Output(raw=repr(event).encode("utf-8", "replace"), why=f"could not be written: {problem}")
    return event


def decode_events(data: bytes) -> list[Event]:
    """The events of an `events-v1` array; an item nobody knows is kept with the reason."""
    items = loads(data)
    if not isinstance(items, list):
        raise BadRecord("events-v1 is a CBOR array")
    return [_event_or_opaque(item) for item in items]


def _event_or_opaque(item: object) -> Event:
    try:
        return from_wire(item)
    except BadRecord as problem:
        return Output(raw=dumps(item), why=str(problem), media_type=CBOR)
