"""Transcripts as they stand: which events are entries, and what a `transcript_edit` does to them.

This is the only rule for edits; the log, the agents, the context and the views all use it. An entry is a record of a
transcript: the events that share a message id. What is not conversation (usage, opaque records) travels with the
entry before it.

    truncate    the first `n` entries stay
    compact     the entries from `start` up to `n` become one, with the edit's content; where there are fewer, those
                that are there; a `start` that is not between 0 and `n` counts as 0
    otherwise   nothing changes: an action nobody knows, or an `n` that is missing or negative
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from .base import Event
from .messages import Prompt, Response, System, Thinking
from .session import TranscriptEdit
from .tools import ToolCall, ToolResult

SUMMARY = "compaction"
"""The `origin` of the prompt that stands where a compaction folded something away."""
SUMMARIES = frozenset({SUMMARY, "compact_summary"})
"""The same of every runtime."""
INSTRUCTIONS = "instructions"
"""The `subtype` of the `system` event that a model sees; any other is a notice of the runtime."""

_ENTRIES = (Prompt, Response, Thinking, ToolCall, ToolResult)

T = TypeVar("T")


def edit(entries: list[T], change: TranscriptEdit, summary: T) -> None:
    """Do to a list of entries, whatever they are made of, what the event says; `summary` stands for what it folds."""
    n = change.n
    if n is None or n < 0:
        return
    if change.action == "truncate":
        del entries[n:]
    elif change.action == "compact":
        entries[change.start if 0 <= change.start <= n else 0 : n] = [summary]


def is_entry(event: Event) -> bool:
    """Whether the event stands in a transcript, where a model sees it."""
    return isinstance(event, _ENTRIES) or (isinstance(event, System) and event.subtype == INSTRUCTIONS)


def continues(last: Event, event: Event) -> bool:
    """Whether an event goes on with the record that `last` belongs to."""
    return event.index > 0 and event.message_id == last.message_id


def entries(events: Iterable[Event]) -> list[list[Event]]:
    """The entries of one agent's transcript; edits themselves are none."""
    return _Transcript(event for event in events if not isinstance(event, TranscriptEdit)).entries()


def transcript(events: Iterable[Event]) -> list[list[Event]]:
    """The entries of one agent's transcript after every edit among the events."""
    return _Transcript(events).entries()


def apply(events: Sequence[Event], change: TranscriptEdit) -> list[Event]:
    """The events of the transcript as this edit leaves it; edits among the events have been applied already."""
    earlier = (event for event in events if not isinstance(event, TranscriptEdit))
    return [event for entry in transcript((*earlier, change)) for event in entry]


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


class _Transcript:
    """The fold: entries as they come, edited as they are edited."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._entries: list[list[Event]] = []
        self._heads: list[Event] = []
        """The first event of each entry that is conversation."""
        self._lead: list[Event] = []
        """What came before the first entry."""
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, TranscriptEdit):
            prompt: Event = summary_prompt(event.content, like=event)
            folded: list[Event] = [prompt]
            edit(self._entries, event, folded)
            edit(self._heads, event, prompt)
        elif not is_entry(event):
            (self._entries[-1] if self._entries else self._lead).append(event)
        elif self._heads and continues(self._heads[-1], event):
            self._entries[-1].append(event)
        else:
            self._entries.append([*self._lead, event])
            self._heads.append(event)
            self._lead = []

    def entries(self) -> list[list[Event]]:
        return [*self._entries, self._lead] if self._lead else self._entries
