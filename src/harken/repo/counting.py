"""What sessions cost and what happened in them: which sessions are counted, and each thing once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harken.analytics import SessionTotals
from harken.context import all_versions, get_session
from harken.events.tally import Figures
from harken.store import SessionRow, Store

from .looking import read_file


class SessionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session; of a file that is not in the store, its path stands for its id."""

    session: str
    runtime: str = ""
    title: str = ""
    source: str = ""
    parent: str = ""
    figures: Figures
    """Its own."""
    agents: tuple[SessionFigures, ...] = ()
    """Those of its sub-agents."""
    with_agents: Figures | None = None
    """Everything together, where it has sub-agents."""


class TotalFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Several sessions together, in which what a fork copied counts once."""

    sessions: int
    figures: Figures


def count_sessions(
    store: Store, wanted: Sequence[str | os.PathLike[str]], *, with_agents: bool
) -> Iterator[SessionFigures | TotalFigures]:
    """The figures of each session, and of several their total."""
    everything, count = SessionTotals(), 0
    for top, below in _chosen(store, wanted, with_agents=with_agents):
        family = SessionTotals()
        totals = (everything, family) if below else (everything,)
        own = _figures(store, top, totals)
        if below:
            agents = tuple(_figures(store, agent, totals) for agent in below)
            own = msgspec.structs.replace(own, agents=agents, with_agents=family.figures())
        count += 1
        yield own
    if count > 1:
        yield TotalFigures(sessions=count, figures=everything.figures())


def _chosen(
    store: Store, wanted: Sequence[str | os.PathLike[str]], *, with_agents: bool
) -> Iterator[tuple[SessionRow | Path, list[SessionRow]]]:
    """The sessions asked for, or all, each once, with their sub-agents."""
    known = store.sessions()
    children: dict[str, list[SessionRow]] = {}
    for row in known:
        if row.parent:
            children.setdefault(row.parent, []).append(row)
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
    """The sessions that no other spawned, newest first; one whose parent is not here stands for itself."""
    names = {row.session for row in known}
    found = [row for row in known if row.parent not in names]
    return [*sorted(found, key=lambda row: (-(row.started or 0), row.session))]


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
    events = read_file(what) if isinstance(what, Path) else all_versions(store, what)
    figures, *_ = [total.add(events) for total in totals]
    if isinstance(what, Path):
        return SessionFigures(session=str(what), source=str(what), figures=figures)
    return SessionFigures(
        session=what.session,
        runtime=what.runtime,
        title=what.title,
        source=what.source,
        parent=what.parent,
        figures=figures,
    )
