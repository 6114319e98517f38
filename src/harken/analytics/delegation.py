"""What a session did itself, and what it had others do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harken.events import AgentCreated, Event, Tokens
from harken.events.records import SessionRecord, by_record
from harken.events.tally import Tally

from .steps import steps
from .usage import UsageRow, counted_rows, total_tokens


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
    tally, rows = counted_rows(mine)
    delegated, known = counted_rows(theirs)
    keys = {row.key for row in known}
    return Delegation(
        own=_share(1 if mine else 0, tally, [row for row in rows if row.key not in keys]),
        delegated=_share(len(others), delegated, known),
    )


def _own(events: Sequence[Event]) -> str:
    """The session's own agent: the one that none of the others made; where that is not told, whoever has no name; and
    where everybody has one, the agent of the first step."""
    created = [event for event in events if isinstance(event, AgentCreated)]
    names = {event.agent_id for event in created}
    for event in created:
        if event.cause is None and event.parent not in names:
            return event.agent_id
    first = ""
    for _, step in steps(events):
        if not step.agent_id:
            return ""
        first = first or step.agent_id
    return first


def _share(agents: int, tally: Tally, rows: Sequence[UsageRow]) -> Share:
    return Share(
        agents=agents,
        responses=tally.responses,
        calls=sum(tally.tools.values()),
        requests=sum(not row.several for row in rows),
        tokens=total_tokens(rows),
    )
