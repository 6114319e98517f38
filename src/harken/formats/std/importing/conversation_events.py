"""`x_harken_conversation`: what an agent said, heard and did, word for word and in order, where Harken wrote the
document. Calls and results stand in `tool_calls`, and are named there by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harken.errors import BadRecord, HarkenError
from harken.events import Event, Image, ToolCall, ToolResult
from harken.events.base import clean
from harken.events.wire import from_readable, from_wire
from harken.formats.std.copies import CONVERSATION
from harken.formats.std.document import Json

from .call_events import answered, asked, call_id_of
from .in_order import Story, records_of
from .pieces import id_of, kind_word, unread

_ENVELOPE = ("message_id", "timestamp", "time", "substance", "cause", "index", "api_id")


def conversation_of(data: Json) -> list[Any] | None:
    """The conversation in a document or a sub-session; None where there is none."""
    found = data.get(CONVERSATION)
    return found if isinstance(found, list) else None


def names_of_calls(entries: Sequence[Any]) -> dict[str, list[str]]:
    """Call id to the records in which a conversation says that it was made."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        if isinstance(entry, dict) and (call := id_of(entry.get("call"))):
            found.setdefault(call, []).append(id_of(entry.get("message_id")))
    return found


class _CallsById:
    """The calls of an agent by their ids; of several with one id each is taken once."""

    def __init__(self, calls: Sequence[Any], names: Sequence[str]) -> None:
        self._found: dict[str, list[tuple[Json, str]]] = {}
        for place, (call, name) in enumerate(zip(calls, names, strict=True)):
            if isinstance(call, dict):
                self._found.setdefault(call_id_of(call, place), []).append((call, name))
        self._taken = {"call": dict[str, int](), "result": dict[str, int]()}

    def take(self, what: str, call_id: str) -> tuple[Json, str] | None:
        found = self._found.get(call_id, [])
        taken = self._taken[what].get(call_id, 0)
        self._taken[what][call_id] = taken + 1
        return found[taken] if taken < len(found) else None


def told_conversation(
    entries: Sequence[Any], calls: Sequence[Any], names: Sequence[str], scope: str, agent: str
) -> Story:
    """The records of a conversation; what is no entry is among them with the reason."""
    known = _CallsById(calls, names)
    return records_of([_event(entry, place, known, scope, agent) for place, entry in enumerate(entries)])


def _event(entry: Any, place: int, calls: _CallsById, scope: str, agent: str) -> Event:
    name = f"{scope}entry-{place + 1}"
    if not isinstance(entry, dict):
        return unread(entry, f"an entry is {kind_word(entry)}, not an object", name, agent)
    try:
        for what in ("call", "result"):
            if what in entry:
                return _fitting(_enveloped(_of_call(what, id_of(entry[what]), calls, agent), entry))
        event = _fitting(from_readable(entry).replace(agent_id=agent))
        named: Event = event if event.message_id else event.replace(message_id=name)
        return named
    except HarkenError as problem:
        return unread(entry, str(problem), id_of(entry.get("message_id")) or name, agent)


def _fitting(event: Event) -> Event:
    """The event, unless it has a number that no store can hold."""
    numbers = (value for value in msgspec.structs.astuple(event) if type(value) is int)
    if any(abs(number) >= 1 << 63 for number in numbers):
        raise BadRecord("a number does not fit into 64 bits")
    return event


def _of_call(what: str, call_id: str, calls: _CallsById, agent: str) -> ToolCall | ToolResult:
    found = calls.take(what, call_id)
    if found is None:
        raise BadRecord(f"it names a {what} that is not among the calls")
    call, name = found
    if what == "call":
        return asked(call, call_id, name, agent)
    result = answered(call, call_id, name, agent)
    if result is None:
        raise BadRecord("it names the result of a call that has none")
    return result


def _enveloped(event: ToolCall | ToolResult, entry: Json) -> Event:
    """A call or result with what its entry says of the record."""
    said = from_wire({"type": event.kind, **{key: entry[key] for key in _ENVELOPE if key in entry}})
    enveloped: Event = event.replace(
        message_id=said.message_id or event.message_id,
        time=said.time,
        substance=said.substance,
        cause=said.cause,
        index=said.index,
        api_id=said.api_id,
        **_more(event, entry),
    )
    return enveloped


def _more(event: ToolCall | ToolResult, entry: Json) -> dict[str, Any]:
    """What a call or a result says besides, for which the standard has no place."""
    found: dict[str, Any] = {}
    if isinstance(event, ToolCall) and entry.get("server_tool") is True:
        found["server_tool"] = True
    if isinstance(event, ToolResult):
        if isinstance(name := entry.get("name"), str):
            found["name"] = clean(name)
        if "images" in entry:
            try:
                found["images"] = msgspec.convert(entry["images"], tuple[Image, ...])
            except msgspec.ValidationError as problem:
                raise BadRecord(f"its pictures do not fit: {problem}") from None
    return found
