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


def by_record(events: Iterable[Event]) -> Iterator[list[Event]]:
    """The events record by record: one that says several things numbers them."""
    record: list[Event] = []
    for event in events:
        if not event.index and record:
            yield record
            record = []
        record.append(event)
    if record:
        yield record
