"""What a session did itself, and what it had others do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harken.events import Event, Tokens
from harken.events.records import SessionRecord, by_record
from harken.events.tally import Tally

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


def of(events: Iterable[Event], own: Sequence[str] = ("",)) -> Delegation:
    """What the agents called `own` did, and what all others did. A request that both tell of is the others'."""
    mine: list[SessionRecord] = []
    others: dict[str, list[SessionRecord]] = {}
    for record in by_record(events):
        for agent in dict.fromkeys(event.agent_id for event in record):
            part = SessionRecord(events=[event for event in record if event.agent_id == agent])
            (mine if agent in own else others.setdefault(agent, [])).append(part)
    theirs = [record for records in others.values() for record in records]
    known = {row.key for row in usage_rows(theirs)}
    return Delegation(own=_share(mine, 1, known), delegated=_share(theirs, len(others), set()))


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
