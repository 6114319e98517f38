"""The conversation as it stands, as events in the order the model reads them.

A file is not in that order: what a compaction preserved stands before the summary it belongs behind, and records of
one message may have others between them. A translation into another runtime's session has to begin from this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats.kit.jsonl import take_apart

from .branch import Node, choose, survey
from .read import RecordReader

ATTACHED = "attachment:"
"""How the origin of a prompt begins that is an attachment."""


def tell(data: bytes) -> list[Event]:
    """The events of the active branch."""
    found = survey(data)
    reader = RecordReader()
    order = dict.fromkeys(choose(found).order)
    return _together(_once(event for index in order for event in _events(reader, data, found.nodes[index])))


def _once(events: Iterable[Event]) -> Iterator[Event]:
    """Without what is said again: a file may hold the records of a message twice, under other names."""
    seen: set[tuple[str, str, str]] = set()
    for event in events:
        match event:
            case ToolCall() | ToolResult():
                key = (event.kind, event.id, "")
            case Response():
                key = (event.kind, event.api_id, event.content)
            case _:
                yield event
                continue
        if not key[1] or key not in seen:
            yield event
        seen.add(key)


def _together(events: Iterable[Event]) -> list[Event]:
    """What one message says in one place, before any result: a tool may have answered while the model still spoke."""
    told: list[Event] = []
    message, end = "", 0
    for event in events:
        if isinstance(event, Response | Thinking | ToolCall):
            if not event.api_id or event.api_id != message:
                message, end = event.api_id, len(told)
            told.insert(end, event)
            end += 1
            continue
        if isinstance(event, Prompt) and not event.origin.startswith(ATTACHED):
            message = ""
        told.append(event)
    return told


def _events(reader: RecordReader, data: bytes, node: Node) -> Iterator[Event]:
    places = [(node.start, node.end)] if node.summary is None else [(node.start, node.end), node.summary]
    for place in places:
        for value, start, end in take_apart(data, *place)[0]:
            # Of two objects on one line each is a record of its own, and told where it belongs.
            if place == node.summary or value.get("uuid") == node.line.uuid:
                yield from reader.record(value, f"@{start}", data[start:end].rstrip(b"\r\n"))
