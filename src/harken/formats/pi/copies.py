"""What an entry is called in every copy of it: a fork copies entries with their ids, their times and what they say.

Ids have eight digits, which is too few to tell the entries of many sessions apart, and some programs count them: so the
name is made of all that an entry says, but for where it hangs, which a fork may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harken import ids
from harken.formats.kit.jsonl import Record, encode

from .records import BRANCH_SUMMARY, COMPACTION, CUSTOM_MESSAGE, MESSAGE, SESSION, id_of, iter_lines

TELLING = frozenset({MESSAGE, COMPACTION, BRANCH_SUMMARY, CUSTOM_MESSAGE})
"""Entries by which a copy is found."""
_HANGS = ("parentId", "firstKeptEntryId")


def copy_name(record: Record) -> str:
    """The name of an entry in every copy of it."""
    return ids.short_digest(encode({key: value for key, value in record.items() if key not in _HANGS}))


def record_names(data: bytes) -> Iterator[str]:
    """The names of the entries in some bytes, which a copy under another session shares."""
    for line in iter_lines(data):
        if line.record is not None and line.record.get("type") in TELLING:
            yield copy_name(line.record)


def shared_names(data: bytes) -> Callable[[str], str]:
    """From a record's name to what its copies are called too; a header has none."""
    found: dict[str, Record] = {}
    for line in iter_lines(data):
        if line.record is not None and line.record.get("type") != SESSION:
            found[id_of(line.record) or f"@{line.start}"] = line.record
    return lambda name: copy_name(found[name]) if name in found else ""
