"""A session of the store as one stream of events: its own chain and those of its agents, in the order of time.

A file or a chain tells one agent's story, and often does not say whose. Here each event gets its agent, and each agent
an `agent_created` whose cause is the record that asked for it, so that every view of a session log works on any
session, wherever it came from. A chain that tells of its agents itself, as Harken's own log does, is taken as it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count

from harken import formats
from harken.events import AgentCreated, Event, Prompt, ToolCall
from harken.formats.session_log import FORMAT
from harken.store.base import SessionRow, Store

from .materialize import Materialized, materialize
from .refs import agents_below
from .walk import ROOT, named


def session_events(store: Store, row: SessionRow) -> list[Event]:
    """Everything the session's agents said, heard and did."""
    whole = materialize(store, store.get_commit(row.stand), stop=ROOT)
    own = _all_named(whole)
    if whole.format == FORMAT.name:
        return own
    below = sorted((other for other in agents_below(store, row) if other.tip), key=lambda r: r.session)
    elsewhere = {each.agent for each in below if each.agent}
    streams = {row.session: _events(own, row, elsewhere - {row.agent})}
    streams |= {
        each.session: _events(_placed(_read(store, each), each), each, elsewhere - {each.agent}) for each in below
    }
    calls = {
        event.id: event.message_id
        for events in streams.values()
        for event in events
        if isinstance(event, ToolCall) and event.id
    }
    stories = [_story(store, each, streams[each.session], calls) for each in (row, *below)]
    return list(_in_time(stories))


def session_bytes(store: Store, row: SessionRow, format: str) -> bytes | None:
    """Everything the session's own chain holds, verbatim, where it is in that format alone."""
    whole = materialize(store, store.get_commit(row.stand), stop=ROOT)
    return whole.bytes if whole.format == format and whole.tier == "1" else None


def _read(store: Store, row: SessionRow) -> list[Event]:
    return _all_named(materialize(store, store.get_commit(row.stand), stop=ROOT))


def _all_named(whole: Materialized) -> list[Event]:
    """What a whole chain says; it begins at its own beginning, so that places need no change."""
    format = formats.get(whole.format)
    return named(format, format.read(whole.bytes), 0)


def _events(events: Iterable[Event], row: SessionRow, elsewhere: set[str]) -> list[Event]:
    """The chain's events, each with its agent; records of an agent that has a chain of its own are told there."""
    return [
        event if event.agent_id else event.replace(agent_id=agent_name(row))
        for event in events
        if event.agent_id not in elsewhere
    ]


def _placed(events: Iterable[Event], row: SessionRow) -> Iterator[Event]:
    """A sub-agent's events, where records are called after their places with its session before the place: other
    files have records in the same places."""
    for event in events:
        if event.message_id.startswith("@"):
            event = event.replace(message_id=row.session + event.message_id)
        if isinstance(event.cause, str) and event.cause.startswith("@"):
            event = event.replace(cause=row.session + event.cause)
        yield event


def agent_name(row: SessionRow) -> str:
    """What a row's agent is called, in every list and view: its own name, the id of a sub-agent that has none, or the
    runtime's for the session's main agent (where no runtime is known, the session's)."""
    return row.agent or (row.session if row.parent else row.runtime) or row.session


def _story(store: Store, row: SessionRow, events: list[Event], calls: dict[str, str]) -> list[Event]:
    first = store.chain(row.tip)[-1]
    spawned = first.spawned_from or {}
    agent = next((event.agent_id for event in events), agent_name(row))
    call = calls.get(str(spawned.get("call_id", ""))) if row.parent else None
    created = AgentCreated(
        message_id=f"{row.session}#created",
        agent_id=agent,
        name=agent,
        role="child" if row.parent else "root",
        time=next((event.time for event in events if event.time is not None), None),
        cause=call,
    )
    return [created, *_triggered(events, call)]


def _triggered(events: list[Event], call: str | None) -> Iterator[Event]:
    """The events with the first prompt caused by the call that made it, where the record itself names no cause."""
    for event in events:
        if call and isinstance(event, Prompt):
            if event.cause is None and event.substance is None:
                event = event.replace(cause=call)
            call = None
        yield event


def _in_time(stories: list[list[Event]]) -> Iterator[Event]:
    """The stories as one. Within a story its own order stands, whatever its clock says."""
    order = count()

    def dated(story: list[Event]) -> Iterator[tuple[int, int, Event]]:
        latest = 0
        for event in story:
            latest = max(latest, event.time or 0)
            yield latest, next(order), event

    for _, _, event in heapq.merge(*map(dated, stories), key=lambda item: item[0]):
        yield event
