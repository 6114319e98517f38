"""What an entry is called in every copy of it: a fork copies entries with their ids, their times and what they say.

Ids have eight digits, which is too few to tell the entries of many sessions apart, and some programs count them: so the
name is made of all that an entry says, but for where it hangs, which a fork may change.

Entries of the first version have no ids. Whoever opens such a file, pi or a resume, gives them some and brings them to
the present shape: they are known by what neither changes, the moment and what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harken import ids
from harken.formats.kit.jsonl import Record, encode

from .records import (
    BRANCH_SUMMARY,
    COMPACTION,
    CUSTOM_MESSAGE,
    EXTENSION,
    MESSAGE,
    SESSION,
    blocks_of,
    id_of,
    iter_lines,
    message_of,
    text_of,
)

TELLING = frozenset({MESSAGE, COMPACTION, BRANCH_SUMMARY, CUSTOM_MESSAGE})
"""Entries by which a copy is found."""
_HANGS = ("parentId", "firstKeptEntryId")
_ADDED = ("id", *_HANGS, "firstKeptEntryIndex")
"""What an entry gets, or loses, as it is brought to the present shape."""


def copy_name(record: Record) -> str:
    """The name of an entry in every copy of it."""
    if not id_of(record):
        return unnamed(record)
    return ids.short_digest(encode({key: value for key, value in record.items() if key not in _HANGS}))


def unnamed(record: Record) -> str:
    """The name of an entry without an id, and of what it becomes when it is given one."""
    told = {key: value for key, value in record.items() if key not in _ADDED}
    if (message := message_of(record)) is not None:
        role = "custom" if text_of(message.get("role")) in EXTENSION else message.get("role")
        content = blocks_of(message.get("content"))
        told["message"] = {key: value for key, value in message.items() if key != "usage"}
        told["message"] |= {"role": role, "content": content}
    return ids.short_digest(encode(dict(sorted(told.items()))))


def record_names(data: bytes) -> Iterator[str]:
    """The names of the entries in some bytes, which a copy under another session shares."""
    for line in iter_lines(data):
        if line.record is not None and text_of(line.record.get("type")) in TELLING:
            yield copy_name(line.record)


def shared_names(data: bytes) -> Callable[[str], str]:
    """From a record's name to what its copies are called too; a header has none."""
    found = _entries(data)
    return lambda name: copy_name(found[name]) if name in found else ""


def unnamed_names(data: bytes) -> Callable[[str], str]:
    """From a record's id, or its place, to what the record is called where it has none."""
    found = _entries(data)
    return lambda name: unnamed(found[name]) if name in found else ""


def _entries(data: bytes) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for line in iter_lines(data):
        if line.record is not None and line.record.get("type") != SESSION:
            found[id_of(line.record) or f"@{line.start}"] = line.record
    return found
