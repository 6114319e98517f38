"""The conversation as it stands: what Qwen Code sends when the session is resumed now. Read in the program itself
(0.24.4), and checked by resuming.

1. A record is in the tree when it has a `uuid`, a `parentUuid` (or null), a `sessionId` and a known type; records about
   artifacts are not. Records with the same uuid are fragments of one, which stands where the first of them does.
2. The end is the last such record of the file. The path goes to a record without a parent, or whose parent is missing.
3. A compaction on the path stands for everything before it; the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.formats.kit.jsonl import Record

from .records import PlacedRecord, history_of, is_linked, iter_records


class RecordTree(msgspec.Struct):
    """The file, looked over once."""

    fragments: dict[str, list[PlacedRecord]]
    """By uuid, in the order of the file."""
    end: str = ""
    """The record at which the conversation ends."""


def survey(data: bytes) -> RecordTree:
    """Look over the whole file."""
    found = RecordTree(fragments={})
    for each in iter_records(data):
        if is_linked(each.record):
            uuid = each.record["uuid"]
            found.fragments.setdefault(uuid, []).append(each)
            found.end = uuid
    return found


def path(found: RecordTree) -> list[list[PlacedRecord]]:
    """The records of the conversation, oldest first, each with its fragments; from the last compaction on."""
    taken: dict[str, list[PlacedRecord]] = {}
    uuid: str | None = found.end
    while uuid and uuid not in taken and (fragments := found.fragments.get(uuid)):
        taken[uuid] = fragments
        if is_compaction(fragments):
            break
        uuid = fragments[0].record["parentUuid"]
    return list(taken.values())[::-1]


def is_compaction(fragments: Iterable[PlacedRecord]) -> bool:
    """Whether a record puts something in the place of what was said before."""
    return any(history_of(each.record) is not None for each in fragments)


def context(data: bytes) -> bytes:
    """The lines of the conversation as it stands, verbatim and in the order of the file."""
    places = {(each.line, each.line_end) for fragments in path(survey(data)) for each in fragments}
    return b"".join(data[start:end] for start, end in sorted(places))


def records(data: bytes) -> list[Record]:
    """The records of the conversation in its order, fragments put together."""
    return [together([each.record for each in fragments]) for fragments in path(survey(data))]


def together(fragments: list[Record]) -> Record:
    """The fragments of a record as one: the parts of all, the figures of the last, else what the first says."""
    whole = dict(fragments[0])
    for other in fragments[1:]:
        parts = _parts(whole) + _parts(other)
        if isinstance(other.get("message"), dict):
            message = whole.get("message")
            first = message if isinstance(message, dict) else other["message"]
            whole["message"] = {**first, "parts": parts}
        for key in ("usageMetadata", "model", "toolCallResult"):
            if key in other and (key == "usageMetadata" or not whole.get(key)):
                whole[key] = other[key]
    return whole


def _parts(record: Record) -> list[object]:
    message = record.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    return list(parts) if isinstance(parts, list) else []
