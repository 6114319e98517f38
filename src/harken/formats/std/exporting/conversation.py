"""`x_harken_conversation`: what an agent said, heard and did, in order, beside the calls that the standard has a place
for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harken.errors import BadRecord
from harken.events import Event, Output, Recovery, ToolCall, ToolResult
from harken.events.wire import to_readable, to_wire
from harken.formats.std.beside import is_beside
from harken.formats.std.document import Json
from harken.formats.std.json_text import loads_kept
from harken.formats.std.skeleton import is_skeleton

from .exported_calls import ExportedCalls
from .handed_in import may_be_handed_in

OTHER_RECORDS = "records that are no conversation"
UNREAD_RECORDS = "records that could not be read"
BYTES = "bytes that are no text"


def entries(
    events: Iterable[Event], calls: ExportedCalls, lost: Counter[str], handed_in: Json | None = None
) -> list[Json]:
    """An agent's own events. A call and its result stand among the calls of the document, and only their places here;
    what the agent `handed_in` is its output. What is not told is counted in `lost`."""
    found = []
    for event in events:
        if is_skeleton(event) or is_beside(event) or (handed_in and _is_output(event, handed_in)):
            continue
        if isinstance(event, Output | Recovery):
            lost[UNREAD_RECORDS if getattr(event, "why", "") else OTHER_RECORDS] += 1
            continue
        try:
            found.append(_entry(event, calls))
        except BadRecord:
            lost[UNREAD_RECORDS] += 1
        lost[BYTES] += _is_no_text(event)
    return found


def _is_output(event: Event, handed_in: Json) -> bool:
    return isinstance(event, Output) and may_be_handed_in(event) and loads_kept(event.raw) == handed_in


def _entry(event: Event, calls: ExportedCalls) -> Json:
    if isinstance(event, ToolCall):
        entry = {"call": calls.name(event)} | _envelope(event)
        return entry | {"server_tool": True} if event.server_tool else entry
    if isinstance(event, ToolResult) and (name := calls.answered(event)):
        payload = to_wire(event)[event.kind]
        kept = {key: payload[key] for key in ("name", "images") if key in payload}
        return {"result": name} | _envelope(event) | kept
    return {key: value for key, value in to_readable(event).items() if key != "agent_id"}


def _envelope(event: Event) -> Json:
    return {key: value for key, value in to_wire(event).items() if key not in ("type", "agent_id", event.kind)}


def _is_no_text(event: Event) -> bool:
    """Whether the event has bytes that are written as other ones."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, bytes) and not _is_text(value):
            return True
    return False


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
