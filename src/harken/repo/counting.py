"""What sessions cost and what happened in them: which sessions are counted, and each thing once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harken import ids
from harken.analytics import SessionTotals, count_records, tells_process_cost, with_told_cost, without_cost
from harken.analytics.prices import PriceList, packaged
from harken.analytics.spending import PriceSum, price_of
from harken.analytics.usage import UsageRow, usage_rows
from harken.context import agents_below, below, file_records, find_remembered, get_session, session_records
from harken.errors import Corrupt, Evicted, HarkenError, PartlyCorrupt
from harken.events.embedded import embedded_models, events_of, lacks_models, with_models
from harken.events.figures import Figures
from harken.events.records import SessionRecord
from harken.events.tally import NO_TOKENS
from harken.store import SessionRow, Store

from .looking import has_agents, in_store_of_its_own, open_file


class SessionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session; of a file that is not in the store, its path stands for its id."""

    session: str
    runtime: str = ""
    title: str = ""
    source: str = ""
    parent: str = ""
    figures: Figures
    """Of everything that its own agent did. A cost that is of the session and its sub-agents together stands in
    `with_agents` alone."""
    carried: Figures | None = None
    """How much of that it carried over from another session; it is in no total."""
    agents: tuple[SessionFigures, ...] = ()
    """Those of its sub-agents."""
    with_agents: Figures | None = None
    """Everything together, where it has sub-agents."""
    price: PriceSum
    """What its own requests cost at list price."""
    price_carried: PriceSum | None = None
    """How much of that it carried over."""
    price_with_agents: PriceSum | None = None
    """What everything together costs at list price."""
    unknown_costs: int
    """Of how many, the session and its sub-agents, nobody said what they cost; 0 where one figure is of them all."""


class TotalFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Several sessions together, in which what a fork copied counts once."""

    sessions: int
    """How many; a sub-agent counts with the session that spawned it."""
    agents: int
    """How many sub-agents of these were counted."""
    unknown_costs: int
    """Of how many of the two nobody said what they cost, alone or together with others."""
    figures: Figures


def count_sessions(
    store: Store,
    wanted: Sequence[str | os.PathLike[str]],
    *,
    with_agents: bool,
    prices: PriceList | None = None,
) -> Iterator[SessionFigures | TotalFigures]:
    """The figures of each session, and of several their total. What cannot be read is told at the end. The prices stand
    over those that come with Harken."""
    listed = packaged() if prices is None else prices.over(packaged())
    counting = _Counting(store, listed, with_agents=with_agents)
    chosen = list(counting.chosen(wanted))
    # Those that a resume wrote come first into the total: what a program copied out of them is then known.
    first = [_is_resumed(store, top) for top, _ in chosen]
    early = {place: counting.family(*chosen[place]) for place, early in enumerate(first) if early}
    sessions = agents = unknown = 0
    for place, (top, agents_of) in enumerate(chosen):
        found = early[place] if place in early else counting.family(top, agents_of)
        if found is not None:
            sessions += 1
            agents += len(found.agents)
            unknown += found.unknown_costs
            yield found
    if len(chosen) > 1:
        figures = counting.total.figures()
        yield TotalFigures(sessions=sessions, agents=agents, unknown_costs=unknown, figures=figures)
    counting.tell_problems()


def _is_resumed(store: Store, top: SessionRow | Path) -> bool:
    return isinstance(top, SessionRow) and find_remembered(store, top) is not None


class _Counting:
    """Counts sessions into one total. One that cannot be read stops none of the others."""

    def __init__(self, store: Store, prices: PriceList, *, with_agents: bool) -> None:
        self._store = store
        self._prices = prices
        self._with_agents = with_agents
        self._problems: dict[str, HarkenError] = {}
        self.total = SessionTotals()

    def chosen(self, wanted: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[SessionRow | Path, list[SessionRow]]]:
        """The sessions asked for, or all, each once, with their sub-agents."""
        known = [row for row in self._known() if not row.forgotten]  # of those nobody can say anything any more
        children: dict[str, list[SessionRow]] = {}
        for row in sorted(known, key=lambda row: (row.started or 0, row.session)):
            if row.parent:
                children.setdefault(row.parent, []).append(row)
        seen: set[str] = set()
        for top in self._named(wanted) if wanted else _tops(known):
            name = str(top.resolve()) if isinstance(top, Path) else top.session
            if name not in seen:
                seen.add(name)
                yield top, [] if isinstance(top, Path) else below(top, lambda session: children.get(session, []))

    def _known(self) -> list[SessionRow]:
        try:
            return self._store.sessions()
        except PartlyCorrupt as problem:
            self._note(problem)  # what cannot be read may be a sub-agent of any of them
            return problem.rest

    def _named(self, wanted: Sequence[str | os.PathLike[str]]) -> Iterator[SessionRow | Path]:
        for one in wanted:
            if not isinstance(one, str):
                yield Path(one)
                continue
            try:
                yield get_session(self._store, one)
            except Corrupt as problem:
                self._note(problem)

    def family(self, top: SessionRow | Path, agents: Sequence[SessionRow]) -> SessionFigures | None:
        """A session and its sub-agents, counted into the total as well; None where the session cannot be read."""
        if isinstance(top, SessionRow) or not has_agents(top):
            return self._family(self._store, top, agents)
        with in_store_of_its_own(top) as found:
            if found is None:
                return self._family(self._store, top, ())
            store, row = found
            counted = self._family(store, row, agents_below(store, row))
        return _of_file(top, counted) if counted is not None else None

    def _family(self, store: Store, top: SessionRow | Path, agents: Sequence[SessionRow]) -> SessionFigures | None:
        records = self._read(store, top)
        if records is None:
            return None
        if isinstance(top, SessionRow):
            records = self._with_models(store, top, records)
        # What other agents did inside a session's file is told in their own chains.
        elsewhere = {agent.agent for agent in agents} - {"", top.agent if isinstance(top, SessionRow) else ""}
        records = [record for record in records if record.agent not in elsewhere]
        pays = tells_process_cost(records)
        if pays and not self._with_agents and self._is_any_paid_for(store, agents):
            records = without_cost(records, of_process=True)  # a cost that is of others, too, is not its own
        own = _figures(top, records, self._prices)
        if not agents or not self._with_agents:
            self.total.add(records)
            return own
        alone = _figures(top, without_cost(records, of_process=True), self._prices) if pays else own
        together = SessionTotals(with_carried=True)
        self._add(records, together)
        rows = usage_rows(records)
        embedded = embedded_models(events_of(records))
        del records  # long ones need not be held all at once
        counted: list[SessionFigures] = []
        paid_for = False
        for agent in agents:
            if (found := self._read(store, agent)) is not None:
                found = with_models(found, embedded)
                counted.append(_figures(agent, found, self._prices))
                rows += usage_rows(found)
                if pays and not tells_process_cost(found):
                    paid_for, found = True, without_cost(found, of_process=False)
                self._add(found, together)
        own = alone if paid_for else own
        unknown = 0 if paid_for else sum(each.unknown_costs for each in (own, *counted))
        figures = together.figures()
        return msgspec.structs.replace(
            own,
            agents=tuple(counted),
            with_agents=figures,
            price_with_agents=_price(rows, self._prices, figures),
            unknown_costs=unknown,
        )

    def _with_models(self, store: Store, agent: SessionRow, records: list[SessionRecord]) -> list[SessionRecord]:
        """The records, with the models that only the sessions above a sub-agent name."""
        seen = {agent.session}
        above: SessionRow | None = agent
        while above is not None and above.parent not in {"", *seen} and lacks_models(records):
            seen.add(above.parent)
            above = store.find_session(above.parent)
            if above is not None and not above.forgotten and (found := self._read(store, above)) is not None:
                records = with_models(records, embedded_models(events_of(found)))
        return records

    def _add(self, records: Sequence[SessionRecord], together: SessionTotals) -> None:
        self.total.add(records)
        together.add(records)

    def _is_any_paid_for(self, store: Store, agents: Iterable[SessionRow]) -> bool:
        """Whether what the process of their session cost is what one of them cost, too."""
        read = (self._read(store, agent) for agent in agents)
        return any(found is not None and not tells_process_cost(found) for found in read)

    def _read(self, store: Store, what: SessionRow | Path) -> list[SessionRecord] | None:
        try:
            return _records(store, what)
        except (Corrupt, Evicted) as problem:
            self._note(problem)
            return None

    def _note(self, problem: HarkenError) -> None:
        self._problems.setdefault(str(problem), problem)

    def tell_problems(self) -> None:
        """What could not be read, if anything."""
        problems = list(self._problems.values())
        if len(problems) > 1:
            kind = Evicted if all(isinstance(problem, Evicted) for problem in problems) else Corrupt
            raise kind("; ".join(self._problems), hint=problems[0].hint)
        if problems:
            raise problems[0]


def _tops(known: Sequence[SessionRow]) -> list[SessionRow | Path]:
    """The sessions that no other spawned, the last active first; one whose parent is not here stands for itself."""
    tops = ids.tops({row.session: row.parent for row in known})
    found = [row for row in known if tops[row.session] == row.session]
    return [*sorted(found, key=lambda row: (-(row.ended or row.started or 0), row.session))]


def _records(store: Store, what: SessionRow | Path) -> list[SessionRecord]:
    if isinstance(what, Path):
        return list(file_records(*open_file(what), str(what)))
    return with_told_cost(session_records(store, what), what.cost_usd_micros)


def _of_file(path: Path, found: SessionFigures) -> SessionFigures:
    """The figures of a file that need not be in the store: what it and its agents are called is where they lie."""
    name = str(path)
    places = {agent.session: agent.source for agent in found.agents}
    agents = tuple(
        msgspec.structs.replace(agent, session=agent.source, parent=places.get(agent.parent, name), runtime="")
        for agent in found.agents
    )
    return msgspec.structs.replace(
        found,
        session=name,
        source=name,
        runtime="",
        title="",
        parent="",
        carried=None,
        price_carried=None,
        agents=agents,
    )


def _price(rows: Sequence[UsageRow], prices: PriceList, figures: Figures) -> PriceSum:
    """What rows cost. Where somebody answered and nobody counted a token, that is unknown, and not nothing."""
    found = price_of(rows, prices)
    is_unknown = not found.usd_micros and figures.usage.input is None is figures.usage.output
    return msgspec.structs.replace(found, usd_micros=None) if is_unknown else found


def _figures(what: SessionRow | Path, records: Sequence[SessionRecord], prices: PriceList) -> SessionFigures:
    count = count_records(records)
    rows = usage_rows(records)
    price = _price(rows, prices, count.figures)
    asked_nobody = count.figures.usage == NO_TOKENS and not count.figures.errors
    unknown = int(count.figures.cost_usd_micros is None and not asked_nobody)
    if isinstance(what, Path):
        name = str(what)
        return SessionFigures(session=name, source=name, figures=count.figures, price=price, unknown_costs=unknown)
    return SessionFigures(
        session=what.session,
        runtime=what.runtime,
        title=what.title,
        source=what.source,
        parent=what.parent,
        figures=count.figures,
        carried=count.carried,
        price=price,
        price_carried=None if count.carried is None else price_of([row for row in rows if row.carried], prices),
        unknown_costs=unknown,
    )
