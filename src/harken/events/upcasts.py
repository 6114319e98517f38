"""Old shapes of an event, read as new ones.

Stored bytes never change, so this list only grows. A step takes the wire form (the map a format decoded) and
gives back the wire form one step younger; `bring_up` runs them all, in order, on whatever comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from harken.clock import SECOND, format_instant, parse_instant

Wire = dict[str, Any]
STEPS: list[Callable[[Wire], Wire]] = []


def step(function: Callable[[Wire], Wire]) -> Callable[[Wire], Wire]:
    """Register a step; the order of the file is the order of history."""
    STEPS.append(function)
    return function


def bring_up(wire: Wire) -> Wire:
    """The wire form as today's reader expects it."""
    for upcast in STEPS:
        wire = upcast(wire)
    return wire


@step
def timestamps_became_numbers(wire: Wire) -> Wire:
    """Bureau's JSON session log writes `timestamp` as RFC 3339 text where its CBOR has whole seconds."""
    if not isinstance(text := wire.get("timestamp"), str):
        return wire
    instant = parse_instant(text)
    if instant is None:
        return wire | {"timestamp": 0}
    return {"time": format_instant(instant)} | wire | {"timestamp": instant // SECOND}


@step
def inlined_json_became_bytes(wire: Wire) -> Wire:
    """The JSON form inlines `input`, `metadata` and `raw`; here they are JSON text in bytes."""
    payload = wire.get(str(wire.get("type")))
    if not isinstance(payload, dict):
        return wire
    inlined = {
        key: orjson.dumps(payload[key])
        for key in ("input", "metadata", "raw", "attributes")
        if key in payload and not isinstance(payload[key], bytes)
    }
    return wire | {wire["type"]: payload | inlined} if inlined else wire
