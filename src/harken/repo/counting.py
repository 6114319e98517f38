"""What sessions cost and what happened in them: which sessions are counted, and each thing once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harken import ids
from harken.analytics import SessionTotals, count_records
from harken.context import file_records, find_remembered, get_session, session_records
from harken.events import Metric
from harken.events.figures import Figures
from harken.events.records import SessionRecord
from harken.events.runs import SO_FAR
from harken.events.tally import MICROS
from harken.store import SessionRow, Store

from .looking import open_file


class SessionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session; of a file that is not in the store, its path stands for its id."""

    session: str
    runtime: str = ""
    title: str = ""
    source: str = ""
    parent: str = ""
    figures: Figures
    """Of everything in it."""
    carried: Figures | None = None
    """How much of that it carried over from another session; it is in no total."""
    agents: tuple[SessionFigures, ...] = ()
    """Those of its sub-agents."""
    with_agents: Figures | None = None
    """Everything together, where it has sub-agents."""


class TotalFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Several sessions together, in which what a fork copied counts once."""

    sessions: int
    """How many; a sub-agent counts with the session that spawned it."""
    agents: int
    """How many sub-agents of these were counted."""
    unknown_costs: int
    """Of how many of the two nobody said what they cost."""
    figures: Figures


def count_sessions(
    store: Store, wanted: Sequence[str | os.PathLike[str]], *, with_agents: bool
) -> Iterator[SessionFigures | TotalFigures]:
    """The figures of each session, and of several their total."""
    everything = SessionTotals()
    chosen = list(_chosen(store, wanted, with_agents=with_agents))
    # Those that a resume wrote come first into the total: what a program copied out of them is then known.
    first = [_is_resumed(store, top) for top, _ in chosen]
    early = {place: _family(store, *chosen[place], everything) for place, early in enumerate(first) if early}
    agents = unknown = 0
    for place, (top, below) in enumerate(chosen):
        found = early[place] if place in early else _family(store, top, below, everything)
        agents += len(found.agents)
        unknown += sum(one.figures.cost_usd_micros is None for one in (found, *found.agents))
        yield found
    if len(chosen) > 1:
        yield TotalFigures(sessions=len(chosen), agents=agents, unknown_costs=unknown, figures=everything.figures())


def _is_resumed(store: Store, top: SessionRow | Path) -> bool:
    return isinstance(top, SessionRow) and find_remembered(store, top.session) is not None


def _family(store: Store, top: SessionRow | Path, below: Sequence[SessionRow], total: SessionTotals) -> SessionFigures:
    """A session and its sub-agents, counted into the total as well."""
    family = SessionTotals(with_carried=True)
    totals = (total, family) if below else (total,)
    own = _figures(store, top, totals)
    if not below:
        return own
    agents = tuple(_figures(store, agent, totals) for agent in below)
    return msgspec.structs.replace(own, agents=agents, with_agents=family.figures())


def _chosen(
    store: Store, wanted: Sequence[str | os.PathLike[str]], *, with_agents: bool
) -> Iterator[tuple[SessionRow | Path, list[SessionRow]]]:
    """The sessions asked for, or all, each once, with their sub-agents."""
    known = store.sessions()
    children: dict[str, list[SessionRow]] = {}
    for row in known:
        if row.parent:
            children.setdefault(row.parent, []).append(row)
    for family in children.values():
        family.sort(key=lambda row: (row.started or 0, row.session))
    tops: list[SessionRow | Path] = [
        get_session(store, one) if isinstance(one, str) else Path(one) for one in wanted
    ] or _tops(known)
    seen: set[str] = set()
    for top in tops:
        name = str(top.resolve()) if isinstance(top, Path) else top.session
        if name not in seen:
            seen.add(name)
            yield top, [] if isinstance(top, Path) or not with_agents else _below(top.session, children)


def _tops(known: Sequence[SessionRow]) -> list[SessionRow | Path]:
    """The sessions that no other spawned, the last active first; one whose parent is not here stands for itself."""
    tops = ids.tops({row.session: row.parent for row in known})
    found = [row for row in known if tops[row.session] == row.session]
    return [*sorted(found, key=lambda row: (-(row.ended or row.started or 0), row.session))]


def _below(session: str, children: dict[str, list[SessionRow]]) -> list[SessionRow]:
    """The sub-agents of a session and theirs; a row that names itself or an ancestor comes once."""
    found: dict[str, SessionRow] = {}
    waiting = list(children.get(session, ()))
    while waiting:
        row = waiting.pop(0)
        if row.session not in found and row.session != session:
            found[row.session] = row
            waiting += children.get(row.session, ())
    return list(found.values())


def _figures(store: Store, what: SessionRow | Path, totals: Iterable[SessionTotals]) -> SessionFigures:
    records = (
        list(file_records(*open_file(what), str(what))) if isinstance(what, Path) else session_records(store, what)
    )
    count = count_records(records)
    if isinstance(what, SessionRow) and what.cost_usd_micros is not None and count.figures.cost_usd_micros is None:
        # Only a run told what the session cost, and its file does not say it again.
        told = Metric(cost_usd=what.cost_usd_micros / MICROS, scope=SO_FAR)
        records = [*records, SessionRecord(events=[told])]
        count = count_records(records)
    for total in totals:
        total.add(records)
    if isinstance(what, Path):
        return SessionFigures(session=str(what), source=str(what), figures=count.figures)
    return SessionFigures(
        session=what.session,
        runtime=what.runtime,
        title=what.title,
        source=what.source,
        parent=what.parent,
        figures=count.figures,
        carried=count.carried,
    )
