"""Transcripts as they stand: which events are entries, and what a `transcript_edit` does to them.

This is the only rule for edits; the log, the agents, the context and the views all use it. An entry is a record of a
transcript: the events that share a message id. What is not conversation (usage, opaque records) travels with the
entry before it.

    truncate    the first `n` entries stay
    compact     the entries from `start` up to `n` become one, with the edit's content; where there are fewer, those
                that are there; a `start` that is not between 0 and `n` counts as 0
    restore     entries that were cut off stand again, at the end: of all entries that the transcript ever had, counted
                from 0 as they came, summaries among them, those from `start` up to `n`; what stands stays where it is
    place       the entry that stands last is put behind the first `n`, since it arrived late
    otherwise   nothing changes: an action nobody knows, or an `n` that is missing or negative
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from .base import Event
from .messages import Prompt, Response, System, Thinking
from .session import TranscriptEdit
from .tools import ToolCall, ToolResult

SUMMARY = "compaction"
"""The `origin` of the prompt that stands where a compaction folded something away."""
SUMMARIES = frozenset({SUMMARY, "compact_summary"})
"""The same of every runtime."""
COMPACTIONS = frozenset({"compact_boundary", "microcompact_boundary", "context_truncated", "compact_summary"})
"""The `subtype` of the `system` events that tell of a conversation that was made shorter."""
INSTRUCTIONS = "instructions"
"""The `subtype` of the `system` event that a model sees; any other is a notice of the runtime."""

_ENTRIES = (Prompt, Response, Thinking, ToolCall, ToolResult)

T = TypeVar("T")


class EditedEntries(Generic[T]):
    """The entries of one transcript, whatever they are made of: those that stand, and those that once did."""

    def __init__(self) -> None:
        self.given: list[T] = []
        """Every entry that the transcript ever had, in the order in which they came."""
        self.numbers: list[int] = []
        """Which of them stand, in the order in which they stand."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[T]:
        return map(self.given.__getitem__, self.numbers)

    @property
    def last(self) -> T | None:
        """The entry that stands last."""
        return self.given[self.numbers[-1]] if self.numbers else None

    def add(self, entry: T) -> None:
        """An entry came."""
        self.numbers.append(len(self.given))
        self.given.append(entry)

    def replace_last(self, entry: T) -> None:
        """The entry that stands last has grown."""
        self.given[self.numbers[-1]] = entry

    def edit(self, change: TranscriptEdit, summary: T) -> None:
        """Do what the event says; `summary` stands for what it folds."""
        n, start = change.n, change.start
        if n is None or n < 0:
            return
        if change.action == "truncate":
            del self.numbers[n:]
        elif change.action == "compact":
            self.numbers[start if 0 <= start <= n else 0 : n] = [len(self.given)]
            self.given.append(summary)
        elif change.action == "restore" and start >= 0:
            standing = set(self.numbers)
            self.numbers += [at for at in range(start, min(n, len(self.given))) if at not in standing]
        elif change.action == "place" and n < len(self.numbers):
            self.numbers.insert(n, self.numbers.pop())


def is_entry(event: Event) -> bool:
    """Whether the event stands in a transcript, where a model sees it."""
    return isinstance(event, _ENTRIES) or (isinstance(event, System) and event.subtype == INSTRUCTIONS)


def continues(last: Event, event: Event) -> bool:
    """Whether an event goes on with the record that `last` belongs to."""
    return event.index > 0 and event.message_id == last.message_id


def transcript(events: Iterable[Event]) -> list[list[Event]]:
    """The entries of one agent's transcript after every edit among the events."""
    return Transcript(events).standing()


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


class EntryEvents(NamedTuple):
    """A record of a transcript."""

    head: Event
    """The first of its events that is conversation."""
    events: list[Event]


class Transcript:
    """The fold of one agent's events: entries as they come, edited as they are edited."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.entries: EditedEntries[EntryEvents] = EditedEntries()
        self._lead: list[Event] = []
        """What came before the first entry."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """The next event."""
        last = self.entries.last
        if isinstance(event, TranscriptEdit):
            prompt = summary_prompt(event.content, like=event)
            self.entries.edit(event, EntryEvents(prompt, [prompt]))
        elif not is_entry(event):
            (self._lead if last is None else last.events).append(event)
        elif last is not None and continues(last.head, event):
            last.events.append(event)
        else:
            self.entries.add(EntryEvents(event, [*self._lead, event]))
            self._lead = []

    def standing(self) -> list[list[Event]]:
        """The events of each entry that stands."""
        found = [entry.events for entry in self.entries]
        return [*found, self._lead] if self._lead else found
