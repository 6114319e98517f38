"""What an import has to know of a trace, and the agents inside it.

A trace is kept as one commit: its spans come in the order in which they end, so what a file grows by may stand before
what was there. Each agent but the first has a chain of its own, made of its spans."""

from __future__ import annotations

import msgspec

from harken import ids
from harken.events import AgentCreated, Event, Output, ToolCall
from harken.events.base import excerpt
from harken.events.messages import asked_first
from harken.events.records import by_record
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import FileFacts

from .reading import read, spans_by_agent
from .writing import trace_of

RUNTIME = "otel"


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a trace."""
    events = read(data)
    tally, records = Tally.of(events), list(by_record(events))
    delta = Delta(start=0, end=len(data), closed=False, time=tally.ended, messages=tally.messages, records=len(records))
    created = [event for event in events if isinstance(event, AgentCreated)]
    facts = FileFacts(
        runtime=RUNTIME,
        records=len(records),
        opaque=sum(any(isinstance(event, Output) and bool(event.why) for event in record) for record in records),
        messages=tally.messages,
        tally=tally,
        title=excerpt(asked_first(events)),
        deltas=(delta,) if data else (),
    )
    return _with_agents(facts, events, created) if created else facts


def _with_agents(facts: FileFacts, events: list[Event], created: list[AgentCreated]) -> FileFacts:
    main, inside = created[0].agent_id, [event.agent_id for event in created[1:]]
    made = {event.message_id: event for event in reversed(events) if isinstance(event, ToolCall)}
    calls = {one.agent_id: made[one.cause] for one in created if isinstance(one.cause, str) and one.cause in made}
    own = Tally.of(event for event in events if event.agent_id not in inside)
    return msgspec.structs.replace(
        facts,
        agents=tuple(inside),
        inside=facts.messages - own.messages,
        calls={agent: call.id for agent, call in calls.items() if agent in inside and call.id},
        makers={one.agent_id: one.parent for one in created[1:] if one.parent and one.parent != main},
        side_chains=bool(inside),
        fingerprint=(ids.short_digest(created[0].message_id.encode()),),
    )


def side_chains(data: bytes) -> dict[str, bytes]:
    """The agents inside a trace, but the first: of each its spans."""
    found = list(spans_by_agent(data).items())
    return {agent: trace_of(spans) for agent, spans in found[1:]}
