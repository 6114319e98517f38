"""What a session did itself, and what it had others do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harken.events import AgentCreated, Event, Tokens
from harken.events.records import SessionRecord, by_record
from harken.events.tally import Tally

from .steps import steps
from .usage import total_tokens, usage_rows


class Share(msgspec.Struct, kw_only=True, frozen=True):
    """What some of the agents did."""

    agents: int = 0
    responses: int = 0
    calls: int = 0
    requests: int = 0
    tokens: Tokens = Tokens()


class Delegation(msgspec.Struct, kw_only=True, frozen=True):
    """The session's own agent, and the others."""

    own: Share
    delegated: Share


def of(events: Iterable[Event]) -> Delegation:
    """What the session's own agent did, and what all others did. A request that both tell of is the others'."""
    held = list(events)
    own = ("", _own(held))
    mine: list[SessionRecord] = []
    others: dict[str, list[SessionRecord]] = {}
    for record in by_record(held):
        for agent in dict.fromkeys(event.agent_id for event in record):
            part = SessionRecord(events=[event for event in record if event.agent_id == agent])
            (mine if agent in own else others.setdefault(agent, [])).append(part)
    theirs = [record for records in others.values() for record in records]
    known = {row.key for row in usage_rows(theirs)}
    return Delegation(own=_share(mine, 1, known), delegated=_share(theirs, len(others), set()))


def _own(events: Sequence[Event]) -> str:
    """The session's own agent: the one that none of the others made; where that is not told, whoever has no name; and
    where everybody has one, the agent of the first step."""
    created = [event for event in events if isinstance(event, AgentCreated)]
    names = {event.agent_id for event in created}
    for event in created:
        if event.cause is None and event.parent not in names:
            return event.agent_id
    agents = [event.agent_id for _, event in steps(events)]
    return agents[0] if agents and "" not in agents else ""


def _share(records: Sequence[SessionRecord], agents: int, known: set[str]) -> Share:
    tally = Tally()
    for record in records:
        tally.record(record.events)
    rows = [row for row in usage_rows(records) if row.key not in known]
    return Share(
        agents=agents if records else 0,
        responses=tally.responses,
        calls=sum(tally.tools.values()),
        requests=sum(not row.several for row in rows),
        tokens=total_tokens(rows),
    )
