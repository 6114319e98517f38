"""What a transcript looks like after it was cut back or folded; the same rule a replay of the log follows.

An entry is a record of the transcript: the events that share a message id. What is not conversation (usage, opaque
records) travels with the entry before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from harken.events import Event, Prompt, System, TranscriptEdit

from .counts import CONVERSATION

SUMMARY = "compaction"
"""The `origin` of the prompt that stands where a compaction folded something away."""


def entries(events: Iterable[Event]) -> list[list[Event]]:
    """The transcript's entries; edits themselves are none."""
    found: list[list[Event]] = []
    lead: list[Event] = []
    for event in events:
        if isinstance(event, TranscriptEdit):
            continue
        if not is_entry(event):
            (found[-1] if found else lead).append(event)
        elif found and _continues(found[-1][-1], event):
            found[-1].append(event)
        else:
            found.append([*lead, event])
            lead = []
    return [*found, lead] if lead else found


def is_entry(event: Event) -> bool:
    """Whether the event stands in a transcript, where a model sees it."""
    return isinstance(event, CONVERSATION) and (not isinstance(event, System) or event.subtype == "instructions")


def _continues(last: Event, event: Event) -> bool:
    if event.message_id:
        return event.message_id == last.message_id
    return bool(event.index) and not last.message_id


def summary_prompt(text: str, *, like: Event | None = None) -> Prompt:
    """The prompt that stands for what was folded; `like` lends it its place in the log."""
    if like is None:
        return Prompt(content=text, source="injected", origin=SUMMARY)
    return Prompt(
        content=text,
        source="injected",
        origin=SUMMARY,
        message_id=like.message_id,
        agent_id=like.agent_id,
        time=like.time,
        substance=like.substance,
        cause=like.cause,
    )


def apply(events: Sequence[Event], edit: TranscriptEdit) -> list[Event]:
    """The events of the transcript as the edit leaves it."""
    found = entries(events)
    if edit.action == "compact":
        start = min(max(edit.start, 0), len(found))
        end = min(max(edit.n, start), len(found))
        kept: list[list[Event]] = [*found[:start], [summary_prompt(edit.content, like=edit)], *found[end:]]
    else:
        kept = found[: max(edit.n, 0)]
    return [event for entry in kept for event in entry]


def after_boundary(events: Sequence[Event], boundary: System, summary: Event) -> list[Event]:
    """The transcript as a runtime leaves it that has compacted: its summary, and what it says it kept word for word."""
    kept = _preserved(boundary.metadata, [event.message_id for event in events])
    return [boundary, summary, *(e for e in events if e.message_id in kept and e not in (boundary, summary))]


def _preserved(metadata: bytes, order: Sequence[str]) -> set[str]:
    """The ids Claude Code names at a boundary, on the wire with underscores and on disk without."""
    facts = _object(metadata)
    facts = _object(facts.get("compact_metadata") or facts.get("compactMetadata") or facts)
    named = _object(facts.get("preserved_messages") or facts.get("preservedMessages")).get("uuids")
    if isinstance(named, list):
        return {uuid for uuid in named if isinstance(uuid, str) and uuid}
    ends = _object(facts.get("preserved_segment") or facts.get("preservedSegment"))
    head, tail = (ends.get(f"{end}_uuid") or ends.get(f"{end}Uuid") for end in ("head", "tail"))
    if head in order and tail in order:
        return {message for message in order[order.index(head) : order.index(tail) + 1] if message}
    return set()


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return value if isinstance(value, dict) else {}
