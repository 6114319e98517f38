"""The records of a session, each with what a sum over several sessions has to know of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from .base import Event
from .runs import EMBEDDED, Metric


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record, with everything it says."""

    events: list[Event]
    name: str = ""
    """What it is called in every session that has it; empty where it is known to this session alone."""
    carried: bool = False
    """Whether the session did not make it but began with it: it counts where it was made."""
    agent: str = ""
    """The agent that its file says it is of; empty for the file's own, and for a report of another agent's request."""


def agent_of(record: list[Event]) -> str:
    """The agent that all of a record is of; empty where it is of none, or tells of another agent's request."""
    tellers = {"" if isinstance(event, Metric) and event.scope == EMBEDDED else event.agent_id for event in record}
    return tellers.pop() if len(tellers) == 1 else ""


def goes_on(event: Event, last: str) -> bool:
    """Whether an event that is not its record's first is of the last record that its agent began, wherever that stands.
    Else it is of the record before it, whosever that is."""
    return bool(event.message_id) and event.message_id == last


def by_record(events: Iterable[Event]) -> Iterator[list[Event]]:
    """The events record by record: one that says several things numbers them, and others' may stand between."""
    records: list[list[Event]] = []
    last: dict[str, list[Event]] = {}
    for event in events:
        if event.index and records:
            own = last.get(event.agent_id)
            (own if own and goes_on(event, own[0].message_id) else records[-1]).append(event)
        else:
            records.append([event])
            last[event.agent_id] = records[-1]
    yield from records
