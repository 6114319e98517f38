"""`events-v1`: a CBOR array of events, the form in which live agents are checkpointed."""

from __future__ import annotations

from collections.abc import Sequence

from harken.errors import BadRecord
from harken.events import Event, Output
from harken.events.cbor import decode_events, encode_events, join_arrays

from .base import Format, Written
from .kit.claims import NO_CLAIM, Claim


def _read(data: bytes) -> list[Event]:
    try:
        return decode_events(data)
    except BadRecord as problem:
        return [Output(raw=data, why=str(problem), media_type="application/octet-stream")]


def _write(events: Sequence[Event]) -> Written:
    return Written(data=encode_events(events))


def _claim(head: bytes, path: str = "") -> Claim:
    # An array whose first item is a map; the empty array is the empty conversation.
    if head == b"\x80":
        return Claim(score=60, reason="it is an empty CBOR array")
    if 0x81 <= (head[0] if head else 0) <= 0x9B and b"dtype" in head[:400] and b"itimestamp" in head:
        return Claim(score=90, reason="it is a CBOR array of maps with `type` and `timestamp`")
    return NO_CLAIM


FORMAT = Format(
    name="events-v1",
    media_type="application/cbor",
    description="A CBOR array (RFC 8949) of event maps: `type`, `timestamp`, and a payload under the type's name.",
    empty=b"\x80",
    join=join_arrays,
    claim=_claim,
    reader=_read,
    writer=_write,
    places=lambda data: len(_read(data)),
    names_stored=True,
)
