"""What happened, step by step: the events that profile and activity count, each with its kind.

Rule 1: a record's words in the user's place are one prompt: a person's where any of them are a person's, else injected;
        beside results injected ones are none, and neither is what a harness attached.
Rule 2: a response, a thought, a call and a result are each one. A response that a harness made up, or that was copied
        from another agent, is none.
Rule 3: a compaction is one, and what its record puts in the place of the conversation was said before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harken.events import Event, Prompt, Response, System, Thinking, ToolCall, ToolResult, TranscriptEdit
from harken.events.places import ATTACHED
from harken.events.records import by_record
from harken.events.tally import BOUNDARY, SYNTHETIC

PROMPT, INJECTED, COMPACTION = "prompt", "injected", "compaction"


class CountedStep(NamedTuple):
    """An event that counts."""

    kind: str
    """`prompt`, `injected`, `response`, `thinking`, `call`, `result` or `compaction`."""
    event: Event


def steps(events: Iterable[Event]) -> Iterator[CountedStep]:
    """The steps of a stream of events, in its order."""
    for record in said_once(events):
        words = _words(record)
        for event in record:
            if isinstance(event, Prompt):
                if words:
                    yield CountedStep(words, event)
                words = ""
            elif kind := _kind(event):
                yield CountedStep(kind, event)


def said_once(events: Iterable[Event]) -> Iterator[list[Event]]:
    """The records, but for what a compaction repeats."""
    for record in by_record(events):
        place = next((place for place, event in enumerate(record) if is_compaction(event)), len(record))
        yield record[: place + 1]


def is_compaction(event: Event) -> bool:
    """Whether the conversation is replaced by a summary there."""
    if isinstance(event, TranscriptEdit):
        return event.action == "compact"
    return isinstance(event, System) and event.subtype == BOUNDARY


def is_human(event: Event) -> bool:
    """Whether a person said it."""
    return isinstance(event, Prompt) and event.source != "injected" and event.substance is None


def is_answer(event: Event) -> bool:
    """Whether a model said it in words, and said it here."""
    return isinstance(event, Response) and event.model != SYNTHETIC and event.substance is None


def _words(record: list[Event]) -> str:
    prompts = [event for event in record if isinstance(event, Prompt) and not event.origin.startswith(ATTACHED)]
    if any(map(is_human, prompts)):
        return PROMPT
    return "" if not prompts or any(isinstance(event, ToolResult) for event in record) else INJECTED


def _kind(event: Event) -> str:
    match event:
        case Response():
            return "response" if is_answer(event) else ""
        case Thinking():
            return "thinking"
        case ToolCall():
            return "call"
        case ToolResult():
            return "result"
    return COMPACTION if is_compaction(event) else ""
