"""How a session stands: the last words in it, or what failed last, from its newest commits alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harken.errors import HarkenError
from harken.events import Error, Event, Prompt, Response, ToolCall, ToolResult
from harken.events.base import clean, excerpt
from harken.events.tool_kinds import ASK, tool_kind
from harken.events.tools import doing
from harken.store.base import Commit, Store

from .describe import delta_events, read_deltas

LOOKED_AT = 8
"""Commits at the end that are looked at."""
WORDS = 200
DONE, FAILED, ASKS = "done", "failed", "asks"


class SessionEnding(msgspec.Struct, frozen=True, kw_only=True):
    """How a session stands."""

    state: str = DONE
    """`done`; `failed` where the last thing in it is a failure; `asks` where it waits for a person's answer."""
    text: str = ""
    """The last words, the question, or what failed."""
    record: str = ""
    event: int = 0
    time: int | None = None


def ending(store: Store, tip: str) -> SessionEnding:
    """How the session that stands at a commit ended; what cannot be read tells nothing."""
    try:
        commits = store.chain(tip, limit=LOOKED_AT) if tip else []
        told = [(commit, events) for commit, _, events in read_deltas(store, commits[::-1])]
    except HarkenError:
        return SessionEnding()
    read = [(commit, events) for commit, events in told if not isinstance(events, HarkenError)]
    found = ending_of([event for _, events in read for event in events])
    if found.record[:1] != "@":
        return found
    # A record that is called after its place was found by its place in the delta, which the chain calls otherwise.
    for commit, events in read:
        for number, event in enumerate(events):
            if (event.message_id, event.index, event.time) == (found.record, found.event, found.time):
                return msgspec.structs.replace(found, record=record_in_chain(store, commit, number))
    return found


def record_in_chain(store: Store, commit: Commit, number: int) -> str:
    """What the record of an event is called in its chain; empty where it cannot be read."""
    try:
        events = delta_events(store, commit)
    except HarkenError:
        return ""
    return events[number].message_id if number < len(events) else ""


def ending_of(events: Sequence[Event]) -> SessionEnding:
    """How a stream of events ended."""
    calls = {event.id: event for event in events if isinstance(event, ToolCall)}
    answered = {event.id for event in events if isinstance(event, ToolResult)}
    said: SessionEnding | None = None
    for event in reversed(events):
        if isinstance(event, ToolCall) and tool_kind(event.name) == ASK and event.id not in answered:
            return _ending(event, ASKS, doing(event))
        if isinstance(event, ToolResult) and event.is_error:
            call = calls.get(event.id)
            return _ending(call or event, FAILED, doing(call) if call is not None else event.output)
        if isinstance(event, Error):
            return _ending(event, FAILED, event.message)
        if isinstance(event, Response) and event.content.strip():
            asks = event.content.rstrip().endswith("?")
            return _ending(event, ASKS if asks else DONE, _last_line(event.content) if asks else event.content)
        if isinstance(event, ToolCall | Prompt) and said is None:
            words = doing(event) if isinstance(event, ToolCall) else event.content
            said = _ending(event, DONE, words)
    return said or SessionEnding()


def _ending(event: Event, state: str, text: str) -> SessionEnding:
    return SessionEnding(
        state=state, text=excerpt(clean(text), WORDS), record=event.message_id, event=event.index, time=event.time
    )


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]
