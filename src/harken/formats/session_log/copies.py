"""Which lines of a log are records of another session: captured from another program's file, or carried over from a
session that an agent goes on from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .lines import read_records
from .reading import ENTRY
from .writing import ENTRIES

CLAUDE_SESSION = "claude_session_id"
"""In an entry's metadata: the session of Claude Code whose file has the record."""
RECORD = "record"
"""Of an entry whose record has no uuid of its own in the log: by what the record is known."""


def captured_names(data: bytes) -> Callable[[str], str]:
    """From a line's name to that of the record it was captured from, as that program's format calls it; or nothing."""
    found: dict[str, str] = {}
    for record in read_records((data,)) if CLAUDE_SESSION.encode() in data else ():
        line = record.data or {}
        entries, name = line.get(ENTRIES), line.get("message_id")
        for about in _metadata(entries) if isinstance(name, str) else ():
            if isinstance(about.get(CLAUDE_SESSION), str):
                own = about.get(RECORD)
                found.setdefault(str(name), f"claude-code-v1 {own if isinstance(own, str) else name}")
    return lambda name: found.get(name, "")


CARRIED_FROM = "carried_from"
"""In an entry that an agent began with: the session in which it was said."""


def carried_names(data: bytes) -> Callable[[str], str]:
    """From a line's name to the session that an agent has it from with which it began; or nothing."""
    found: dict[str, str] = {}
    for record in read_records((data,)) if data.find(CARRIED_FROM.encode()) >= 0 else ():
        line = record.data or {}
        source, name = line.get(CARRIED_FROM), line.get("message_id")
        if isinstance(source, str) and isinstance(name, str) and line.get("event_type") == ENTRY:
            found.setdefault(name, source)
    return lambda name: found.get(name, "")


def _metadata(entries: Any) -> list[dict[str, Any]]:
    said = [one.get("metadata") for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    return [one for one in said if isinstance(one, dict)]
