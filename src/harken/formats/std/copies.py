"""Entries that a list of a document has twice, word for word and under one id: whoever wrote it put them there again.
They say nothing more, and count once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .document import Json
from .hearers import id_of
from .json_text import compact
from .parts import objects, values

LISTS = (
    ("tool_calls", "call_id"),
    ("sub_sessions", "sub_session_id"),
    ("messages", "message_id"),
    ("phase_annotations", "annotation_id"),
)
"""Lists of a document, and what their entries are named by."""
CONVERSATION = "x_harken_conversation"


def without_copies(data: Json) -> Json:
    """The document, each entry once; itself where none is there twice."""
    made = _listed_once(data)
    subs = made.get("sub_sessions")
    if not isinstance(subs, list):
        return made
    called = calls_by_id(made)
    once = [_listed_once(sub, called) if isinstance(sub, dict) else sub for sub in subs]
    if all(new is old for new, old in zip(once, subs, strict=True)):
        return made
    return {**made, "sub_sessions": once}


def calls_by_id(data: Json) -> dict[str, Json]:
    """The main calls by their ids, of those with one id the first."""
    return {name: call for call in reversed(values(data.get("tool_calls"))) if (name := id_of(call.get("call_id")))}


def lists_with_copies(part: Json, called: Json | None = None) -> Iterator[tuple[str, dict[int, int | None]]]:
    """The lists of a document or a sub-session that have copies, and the place of each of these to that of the first
    entry that says the same; to None for the call that started the sub-session, which is one of the calls that are
    `called`. A conversation names each of its calls, and tells those apart that have one id."""
    for name, key in LISTS:
        if name == "tool_calls" and isinstance(part.get(CONVERSATION), list):
            continue
        copies: dict[int, int | None] = {**copies_in(part.get(name), key)}
        if name == "tool_calls" and (start := (called or {}).get(id_of(part.get("triggered_by_call_id")))):
            copies |= {place: None for place, call in objects(part.get(name)) if _is_alike(call, start)}
        if copies:
            yield name, copies


def copies_in(listed: Any, key: str) -> dict[int, int]:
    """The place of every copy in a list to that of the first entry that says the same. Without an id two entries may be
    two things that are alike."""
    named = [(place, entry, name) for place, entry in objects(listed) if (name := id_of(entry.get(key)))]
    count = Counter(name for _, _, name in named)
    if len(count) == len(named):
        return {}
    first: dict[bytes, int] = {}
    found: dict[int, int] = {}
    for place, entry, name in named:
        if count[name] > 1 and (same := first.setdefault(compact(entry), place)) != place:
            found[place] = same
    return found


def _is_alike(one: Json, other: Json) -> bool:
    return one == other and compact(one) == compact(other)  # for Python, 1 and True are equal


def _listed_once(part: Json, called: Json | None = None) -> Json:
    made = {
        name: [entry for place, entry in enumerate(part[name]) if place not in copies]
        for name, copies in lists_with_copies(part, called)
    }
    return {**part, **made} if made else part
