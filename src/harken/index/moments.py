"""What happened in a session, moment by moment, as the index has it: no record is read for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from harken.analytics import lanes
from harken.analytics.lanes import LaneStep
from harken.events.tool_kinds import AGENT, tool_kind

from .families import FamilyMember
from .file import StoreIndex
from .schema import UNCOUNTED
from .spending import DAY

SAID = ("human", "injected", "assistant", "thinking", "call")
_ROLE = "CASE WHEN f.message IS NULL THEN m.role ELSE 'injected' END"
_COLUMNS = (
    f"m.n, coalesce(m.agent, ''), {_ROLE}, coalesce(m.tool, ''), m.time, coalesce(m.record, ''), m.event,"
    " c.took, c.failed, coalesce(c.call_id, ''), coalesce(c.what, '')"
)
_HEARD = "LEFT JOIN flow f ON f.message = m.n AND m.role = 'human'"
"""What an agent heard of another, or was asked for by one, is no person's prompt."""
_ROLES = ", ".join(f"'{role}'" for role in SAID)
_OWN = f"""
SELECT {_COLUMNS} FROM messages m LEFT JOIN calls c ON c.message = m.n {_HEARD}
WHERE m.session = ?1 AND m.role IN ({_ROLES})
"""
_DAYS = f"""
SELECT s.session, coalesce(m.agent, ''), (m.time - ?2) / ?4 FROM sessions s JOIN messages m ON m.session = s.n
WHERE s.session IN (SELECT value FROM json_each(?1)) AND m.role IN ({_ROLES}) AND m.time >= ?2 AND m.time < ?3
GROUP BY 1, 2, 3
"""
_COPIED = f"""
SELECT {_COLUMNS} FROM copies x JOIN messages m ON m.n = x.message LEFT JOIN calls c ON c.message = m.n {_HEARD}
WHERE x.session = ?1 AND m.session IS NOT ?1 AND m.role IN ({_ROLES})
"""
_FOLDED = """
SELECT m.n, coalesce(m.agent, ''), k.time, coalesce(m.record, ''), m.event, k.before, k.after
FROM compactions k JOIN messages m ON m.n = k.message WHERE k.session = ?
"""
_TOLD = "SELECT json_extract(report, '$.compactions.compactions') FROM figures WHERE session = ?"


class ToldPlace(NamedTuple):
    """Where the index has what an agent said."""

    number: int
    """Of the session that it stands under."""
    only: str | None = None
    """The one agent that is meant; None for all of them."""
    own: str = ""
    """What the session's own agent is called, where that is a sub-agent."""

    def holds(self, agent: str) -> bool:
        """Whether an agent is meant."""
        return self.only is None or agent == self.only


class IndexedMoment(NamedTuple):
    """Something that was said, thought or called."""

    n: int
    """Its number in the order of arrival."""
    agent: str
    """Whose it is; empty for the session's own."""
    role: str
    tool: str
    time: int | None
    record: str
    event: int
    took: int | None
    """Of a call: how long it took; None where there is no result."""
    failed: int | None
    """Of a call: whether it failed; None where there is no result."""
    call: str
    what: str


class Folding(NamedTuple):
    """A time that a conversation was folded into a summary."""

    n: int
    agent: str
    time: int | None
    record: str
    """Empty where the record has no name that the index knows."""
    event: int
    before: int | None
    after: int | None


class _ToldFolding(msgspec.Struct):
    time: int | None = None
    agent: str = ""
    before: int | None = None
    after: int | None = None


def session_number(index: StoreIndex, session: str) -> int | None:
    """The number of a session; None where the index has none."""
    found = index.query("SELECT n FROM sessions WHERE session = ?", (session,))
    return found[0][0] if found else None


def told_places(index: StoreIndex, members: Sequence[FamilyMember]) -> list[ToldPlace]:
    """Where the index has what a session and its sub-agents said, the session first. What stands under a session that
    is none of them is meant only as far as theirs."""
    names = {member.session for member in members}
    found: dict[tuple[str, str | None], ToldPlace] = {}
    for at, member in enumerate(members):
        under = member.told_under
        only = None if under in names else member.agent
        number = session_number(index, under)
        if number is not None and (under, only) not in found:
            own = member.agent or member.session if at and under == member.session else ""
            found[under, only] = ToldPlace(number, only, own)
    return list(found.values())


def may_be_hooked(index: StoreIndex, tip: str) -> bool:
    """Whether a hook may have changed or blocked something in the chain up to a commit, so that it is worth reading.
    One that the index does not know may be anything."""
    found = index.query('SELECT hooked FROM commits WHERE "commit" = ?', (bytes.fromhex(tip),))
    return not found or bool(found[0][0])


def uncounted(index: StoreIndex) -> set[str]:
    """The sessions whose numbers are not up to date."""
    return {name for (name,) in index.query(f"SELECT session FROM sessions WHERE n IN {UNCOUNTED}")}


def moments(index: StoreIndex, places: Iterable[ToldPlace], *, copied: bool = True) -> list[IndexedMoment]:
    """Everything in the places of a session and its sub-agents, in the order of arrival; with what it began with as a
    copy."""
    found: list[IndexedMoment] = []
    for place in places:
        rows = index.query(_OWN, (place.number,))
        if copied:
            rows += index.query(_COPIED, (place.number,))
        several = map(IndexedMoment._make, rows)
        found += (_of_sub_agent(one, place.own) if place.own else one for one in several if place.holds(one.agent))
    return list(_once(sorted(found, key=_number)))


def _once(happened: Iterable[IndexedMoment]) -> Iterator[IndexedMoment]:
    """Without calls that another record tells again, by the rule of the totals."""
    seen: set[tuple[str, str, int, int]] = set()
    for moment in happened:
        if moment.role == "call" and moment.call and moment.time is not None:
            told = (moment.agent, moment.call, moment.time, moment.event)
            if told in seen:
                continue
            seen.add(told)
        yield moment


def _of_sub_agent(moment: IndexedMoment, agent: str) -> IndexedMoment:
    """Who made a sub-agent speaks to it: what it hears is no person's prompt."""
    role = "injected" if moment.role == "human" else moment.role
    return moment._replace(agent=moment.agent or agent, role=role)


def days_of(index: StoreIndex, sessions: Sequence[str], since: int, until: int) -> list[tuple[str, str, int]]:
    """On which days between two instants something happened under some sessions, and whose it was: session, agent, and
    how many days behind the first."""
    return index.query(_DAYS, (msgspec.json.encode(sessions).decode(), since, until, DAY))


def _number(moment: IndexedMoment) -> int:
    return moment.n


def foldings(index: StoreIndex, places: Iterable[ToldPlace]) -> list[Folding]:
    """The compactions in the places of a session. What a log tells of its own stands in no row; there the report has
    it."""
    found: list[Folding] = []
    for place in places:
        own = [Folding._make(row) for row in index.query(_FOLDED, (place.number,))]
        known = {folding.time for folding in own}
        for (text,) in index.query(_TOLD, (place.number,)):
            told = msgspec.json.decode(text, type=list[_ToldFolding]) if text else []
            own += [
                Folding(0, one.agent, one.time, "", 0, one.before, one.after) for one in told if one.time not in known
            ]
        found += (one._replace(agent=one.agent or place.own) for one in own if place.holds(one.agent))
    return sorted(found, key=lambda one: (one.time is not None, one.time or 0, one.n))


_KINDS = {"human": lanes.PROMPT, "injected": lanes.INJECTED, "thinking": lanes.THINKING}


def lane_steps(happened: Iterable[IndexedMoment], folded: Iterable[Folding]) -> dict[str, list[LaneStep]]:
    """What each agent was done with and when, as lanes are drawn from it; what has no time is left out."""
    found: dict[str, list[LaneStep]] = {}
    for moment in happened:
        if moment.time is not None:
            found.setdefault(moment.agent, []).extend(_steps(moment, moment.time))
    for folding in folded:
        agent = folding.agent if folding.agent in found else ""
        if folding.time is not None:
            step = LaneStep(folding.time, lanes.COMPACTION, folding.record, folding.event)
            found.setdefault(agent, []).append(step)
    return found


def _steps(moment: IndexedMoment, time: int) -> list[LaneStep]:
    """A call is two steps: a model asked for it, and its result came."""
    found = [LaneStep(time, _KINDS.get(moment.role, lanes.ANSWER), moment.record, moment.event)]
    if moment.role == "call" and moment.took is not None:
        tool = lanes.WAITING if tool_kind(moment.tool) == AGENT else lanes.TOOL
        end = time + max(0, moment.took)
        found.append(LaneStep(end, tool, moment.record, moment.event, bool(moment.failed)))
    return found
