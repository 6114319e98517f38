"""Lanes: for each agent of a session when it did what, in a size that a drawing has room for.

The rows of the index tell it, so that no record is read: a session of 100,000 events is answered as one of ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from harken.analytics import lanes as drawing
from harken.analytics.lanes import Lane
from harken.analytics.prices import PriceList, micros
from harken.context import agent_name, errand_title
from harken.errors import BadRequest
from harken.index import StoreIndex
from harken.index.moments import IndexedMoment, ToldPlace, foldings, lane_steps, moments, told_places
from harken.index.priced import own_costs
from harken.repo import Repo
from harken.repo.numbers import read_price_file
from harken.store import SessionRow

from .base import ApiAnswer, ApiRequest, IndexedAnswer, index_fields, instant, stamp
from .crossing import crosses
from .following import family_of, follow, member, stands
from .remembering import remembered

MOST_SEGMENTS = 4000
_AGENTS = "SELECT agent, name FROM agents WHERE session = ?"
_MODELS = """
SELECT coalesce(agent, ''), model, max(n) FROM messages
WHERE session = ? AND role IN ('assistant', 'call', 'thinking') AND model IS NOT NULL GROUP BY 1
"""
_COSTS = """
SELECT s.session, u.agent, u.model, sum(u.cost) FROM usage u JOIN sessions s ON s.n = u.session
WHERE s.session IN (SELECT value FROM json_each(?)) AND u.counted AND u.cost IS NOT NULL GROUP BY 1, 2, 3
"""


class LanesRequest(ApiRequest, frozen=True, kw_only=True):
    """Which session, and which part of its time."""

    session: str
    """Its id, or a unique beginning; `SESSION/AGENT` for a sub-agent and those below it."""
    start: str = ""
    """The first instant of the window (RFC 3339); empty for the beginning of the session."""
    end: str = ""
    """The last instant of the window (RFC 3339); empty for its end."""
    segments: int = 2000
    """How many segments at most, over all lanes, up to 4,000; where there are more, neighbours are told as one."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""


class LaneAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What one agent did. Instants are microseconds since 1970."""

    agent: str
    """Its id, the same in every view; the main agent of another runtime's session is called after the runtime."""
    name: str
    """What to call it."""
    title: str
    """What it is called; where it has no name, what the call that made it says in a few words, or what its chain is
    called, or its first words; empty where nobody knows."""
    session: str
    """The session of its own; that of the lanes where it has none."""
    parent: str | None
    """The agent that made it; null for the first."""
    model: str
    """The model that it last answered with; empty where nobody said."""
    steps: int
    """How many things it said, thought, called and got back, in the window."""
    prompts: int
    """How often a person spoke to it, in the window."""
    calls: int
    """Calls of tools, in the window; where none is asked for, also those that nobody said the time of."""
    failed: int
    """How many of these failed."""
    price_usd_micros: int | None
    """What its requests cost at list price, in all of the session; null where no price is known."""
    spent: dict[str, int]
    """Microseconds in the window by kind: `prompt`, `answer`, `thinking`, `tool`, `waiting` (for another agent),
    `compaction`."""
    segments: list[tuple[int, int, str, str, int, int]]
    """Start, end, kind, the record that ended it, the number of the event in that record, and how many segments are
    told as this one."""
    marks: list[tuple[int, str, str, int, int]]
    """Time, kind (`prompt`, `compaction` or `failure`), record, number of the event in it, how many are told as one."""
    told: tuple[int, str, int] | None
    """When another agent gave it its task, the record of that call and the number of the event; null where nobody did
    or it is not known."""
    returned: tuple[int, str, int] | None
    """When it was done with it, and the call's record and number: when the call had its result; in the background when
    the agent had answered. Null where it did not yet."""
    background: bool
    """Whether it was at work behind the result of that call, which tells of its launch."""


class LanesAnswer(IndexedAnswer, frozen=True, kw_only=True):
    """The lanes of a session."""

    session: str
    """The session's id."""
    start: str | None
    """The first instant of the window; null where nothing has a time."""
    end: str | None
    """Its last instant."""
    first: str | None
    """When the session began."""
    last: str | None
    """When something last happened in it."""
    lanes: list[LaneAnswer]
    """The session's own agent first, then the others as they began."""
    unseen_agents: int
    """How many agents have no lane, since only what their requests used is known of them."""
    unseen_price_usd_micros: int | None
    """What their requests cost at list price, in all of the session; null where no price is known. With the prices of
    the lanes it is what the session cost."""
    gaps: list[tuple[int, int]]
    """Pauses of more than five minutes in the window in which nobody did anything, in microseconds since 1970."""
    at_once: int
    """The most agents that did something at the same time, in the window."""
    busy_us: int
    """How long somebody did something in the window, each instant once."""
    saved_us: int
    """How much longer it would have taken one after the other."""


class _Drawn(NamedTuple):
    """All lanes of a session, before a part of them is asked for."""

    lanes: dict[str, Lane]
    calls: dict[str, list[tuple[int | None, bool]]]
    """By agent: when each call was made, if anybody said so, and whether it failed."""
    by_call: dict[str, list[IndexedMoment]]
    """Threads of their own may call by the same ids."""
    models: dict[str, str]
    names: dict[str, str]
    span: tuple[int, int] | None
    worked: list[tuple[int, int]]
    """When somebody did something."""
    gaps: list[tuple[int, int]]
    at_once: list[tuple[int, int]]
    makers: dict[str, tuple[str, str]]
    """From a sub-agent's session to the session that made it, and the call."""
    background: frozenset[str] = frozenset()
    """The agents whose calls did not wait for them."""


@crosses
def lanes(repo: Repo, request: LanesRequest) -> LanesAnswer:
    """For each agent of a session when it did what, in at most so many segments."""
    if not 0 < request.segments <= MOST_SEGMENTS:
        raise BadRequest(f"lanes have 1 to {MOST_SEGMENTS:,} segments", hint="a window shows less in more detail")
    row, below = family_of(repo, request.session)
    reached = follow(repo)
    key = (row.session, stands([row, *below]), reached.behind, reached.stale)
    drawn = remembered(repo, "lanes", key, lambda: _draw(repo, row, below), most=4, opened=reached.opened)
    costs = _costs(repo.index, row, below, read_price_file(request.prices))
    first, last = drawn.span or (0, 0)
    since, until = instant(request.start), instant(request.end)
    begin = first if since is None else since
    end = max(begin, last if until is None else until)
    shown = {agent: drawing.within(one, begin, end) for agent, one in drawn.lanes.items()}
    share = max(1, request.segments // max(1, len(shown)))
    about = _About(row, below, drawn, costs, since, until)
    told = [_answer(agent, one, about, (begin, end, share)) for agent, one in shown.items()]
    busy = sum(after - before for before, after in drawing.clipped(drawn.worked, begin, end))
    alone = sum(took for one in told for kind, took in one.spent.items() if kind not in _NOT_WORK)
    known = drawn.span is not None
    unseen = costs.keys() - drawn.lanes.keys()
    shown_price = sum(one.price_usd_micros or 0 for one in told)
    return LanesAnswer(
        session=row.session,
        start=stamp(begin if known else None),
        end=stamp(end if known else None),
        first=stamp(first if known else None),
        last=stamp(last if known else None),
        lanes=told,
        unseen_agents=len(unseen),
        unseen_price_usd_micros=micros(sum(costs.values())) - shown_price if unseen else None,
        gaps=drawing.clipped(drawn.gaps, begin, end),
        at_once=drawing.most_in(drawn.at_once, begin, end),
        busy_us=busy,
        saved_us=max(0, alone - busy),
        **index_fields(reached),
    )


_NOT_WORK = (drawing.PROMPT, drawing.WAITING)


class _About(NamedTuple):
    row: SessionRow
    below: Sequence[SessionRow]
    drawn: _Drawn
    costs: Mapping[str, int]
    """By agent, in 1e-12 dollars: added up first and rounded last."""
    since: int | None
    """The window that was asked for; None for no beginning."""
    until: int | None

    @property
    def main(self) -> str:
        """The session's own agent: a log names it, elsewhere it is called after the runtime."""
        others = {agent_name(each) for each in self.below}
        named = next((agent for agent in self.drawn.lanes if agent not in others), "")
        return named or agent_name(self.row)


def _draw(repo: Repo, row: SessionRow, below: Sequence[SessionRow]) -> _Drawn:
    """All lanes of a session."""
    index = repo.index
    places = told_places(index, [member(each) for each in (row, *below)])
    happened = moments(index, places)
    by_call: dict[str, list[IndexedMoment]] = {}
    for moment in _around(index, places, happened):
        if moment.call:
            by_call.setdefault(moment.call, []).append(moment)
    steps = lane_steps(happened, foldings(index, places))
    calls: dict[str, list[tuple[int | None, bool]]] = {}
    for moment in happened:
        if moment.role == "call":
            calls.setdefault(moment.agent, []).append((moment.time, bool(moment.failed)))
    ordered = sorted(steps, key=lambda agent: (agent not in ("", row.agent), min(step.time for step in steps[agent])))
    found = {agent: drawing.lane(steps[agent]) for agent in ordered}
    whole, several = drawing.span(found.values()), list(found.values())
    worked = drawing.busy(several)
    drawn = _Drawn(
        lanes=found,
        calls=calls,
        by_call=by_call,
        models={agent or place.own: model for place in places for agent, model, _ in _rows_of(index, _MODELS, place)},
        names={agent or place.own: name for place in places for agent, name in _rows_of(index, _AGENTS, place)},
        span=whole,
        worked=worked,
        gaps=drawing.gaps(several, worked, *whole) if whole else [],
        at_once=drawing.at_once(several),
        makers={each.session: repo.chains.maker(each) for each in (row, *below) if each.parent},
    )
    return _launched(drawn, _About(row, below, drawn, {}, None, None))


def _launched(drawn: _Drawn, about: _About) -> _Drawn:
    """The same, with the agents in the background: whoever launched one waited for its launch, and not for it."""
    calls: dict[str, set[tuple[str, int]]] = {}
    background = set()
    for agent, one in drawn.lanes.items():
        asked = _asked(agent, about)
        if asked is None or asked.time is None or asked.took is None:
            continue
        if drawing.is_at_work_behind(one, asked.time + asked.took):
            background.add(agent)
            calls.setdefault(asked.agent, set()).add((asked.record, asked.event))
    if not background:
        return drawn
    found = {agent: drawing.launching(one, calls.get(agent, ())) for agent, one in drawn.lanes.items()}
    at_once = drawing.at_once(list(found.values()))
    return drawn._replace(lanes=found, at_once=at_once, background=frozenset(background))


def _around(
    index: StoreIndex, places: Sequence[ToldPlace], happened: Sequence[IndexedMoment]
) -> Sequence[IndexedMoment]:
    """What happened, and where only some agents of a session are meant, what the others did: one of them made these."""
    if all(place.only is None for place in places):
        return happened
    return moments(index, {place.number: place._replace(only=None) for place in places}.values())


def _rows_of(index: StoreIndex, sql: str, place: ToldPlace) -> list[tuple[Any, ...]]:
    return [row for row in index.query(sql, (place.number,)) if place.holds(row[0])]


def _costs(index: StoreIndex, row: SessionRow, below: Sequence[SessionRow], prices: PriceList | None) -> dict[str, int]:
    """What each agent's requests cost: those in its own file, and those that another's tells of."""
    own = {each.session: "" if each is row and not each.agent else agent_name(each) for each in (row, *below)}
    repriced = own_costs(index, list(own), prices)
    told = [
        (session, agent, cost)
        for session, agent, model, cost in index.query(_COSTS, [msgspec.json.encode(list(own)).decode()])
        if model not in repriced
    ]
    for by_agent in repriced.values():
        told += [(session, agent, one.cost) for (session, agent), one in by_agent.items() if one.priced]
    sums: Counter[str] = Counter()
    for session, agent, cost in told:
        sums[agent or own[session]] += int(cost)
    return dict(sums)


def _answer(agent: str, lane: Lane, about: _About, window: tuple[int, int, int]) -> LaneAnswer:
    begin, end, most = window
    drawn, row = about.drawn, about.row
    own = _own(agent, about)
    chain = own or row
    asked = _asked(agent, about)
    # A record may have a time before what stands ahead of it, which is before the first that is drawn.
    calls = [
        failed
        for time, failed in drawn.calls.get(agent, ())
        if (about.since is None or (time is not None and time >= about.since))
        and (about.until is None or (time is not None and time <= about.until))
    ]
    small = drawing.reduced(lane, begin, end, most)
    told = drawn.names.get(agent, "")
    name = told or (agent_name(chain) if own or not agent else agent)
    title = errand_title(chain.title, asked.what if asked is not None else "")
    return LaneAnswer(
        agent=agent or agent_name(row),
        name=name,
        title=told if own and told not in ("", agent) else title,
        session=chain.session,
        parent=_parent(about.drawn.makers.get(own.session, ("", ""))[0], about) if own else None,
        model=drawn.models.get(agent, ""),
        steps=len(lane.segments),
        prompts=sum(mark.kind == drawing.PROMPT for mark in lane.marks),
        calls=len(calls),
        failed=sum(calls),
        price_usd_micros=micros(about.costs[agent]) if agent in about.costs else None,
        spent=drawing.spent(lane.segments),
        segments=[*small.segments],
        marks=[*small.marks],
        told=_instant_of(asked, 0),
        returned=_returned(agent, asked, drawn),
        background=agent in drawn.background,
    )


def _own(agent: str, about: _About) -> SessionRow | None:
    """The row of a sub-agent."""
    return next((each for each in about.below if agent_name(each) == agent), None) if agent else None


def _asked(agent: str, about: _About) -> IndexedMoment | None:
    """The call by which a sub-agent was made: its maker's, where several have called by that id."""
    chain = _own(agent, about) or about.row
    made_by, call = about.drawn.makers.get(chain.session, ("", "")) if chain.parent else ("", "")
    if not call:
        return None
    maker = _parent(made_by, about)
    several = about.drawn.by_call.get(call, [])
    own = (one for one in several if (one.agent or about.main) == maker)
    return next(own, several[0] if several else None)


def _returned(agent: str, asked: IndexedMoment | None, drawn: _Drawn) -> tuple[int, str, int] | None:
    """When an agent was done with what it was asked for; one in the background is with its answer, as far as it has
    come."""
    if asked is None or asked.took is None:
        return None
    if agent not in drawn.background:
        return _instant_of(asked, asked.took)
    last = drawn.lanes[agent].segments[-1]
    is_call = any(time == last.end for time, _ in drawn.calls.get(agent, ()))
    return (last.end, asked.record, asked.event) if last.kind == drawing.ANSWER and not is_call else None


def _parent(session: str, about: _About) -> str:
    above = next((each for each in about.below if each.session == session), None)
    return about.main if above is None else agent_name(above)


def _instant_of(moment: IndexedMoment | None, later: int) -> tuple[int, str, int] | None:
    if moment is None or moment.time is None:
        return None
    return moment.time + later, moment.record, moment.event
