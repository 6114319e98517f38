"""Who took part in a session: from its chains in the store, or from its log file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken.context import agents_below, get_session, session_bytes, session_events
from harken.errors import BadRequest
from harken.formats.session_log import FORMAT
from harken.store import SessionRow, Store

if TYPE_CHECKING:
    from harken.log import Session
    from harken.views import SessionViewer

LOG = FORMAT.name


class SessionAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of a session."""

    agent: str
    name: str = ""
    session: str = ""
    """The name of its chain in the store; empty where it has none."""
    tip: str = ""
    """The full name of its newest commit."""
    parent: str = ""
    """The agent that made it."""
    messages: int = 0
    role: str = ""
    """`root`, `child` or `hook`, as far as a log says."""
    language_model: str = ""
    terminated: bool = False


def agents_in_store(store: Store, session: str) -> list[SessionAgent]:
    """The agents whose chains belong to a session, its own first."""
    row = get_session(store, session)
    found = [row, *agents_below(store, row)]
    if (log := session_bytes(store, row, LOG)) is not None:
        return _told_by(log, found)
    names = {each.session: each.agent or each.session for each in found}
    return [
        SessionAgent(
            agent=names[each.session],
            name=each.title,
            session=each.session,
            tip=each.tip,
            parent=_maker(store, each, names) if each.parent else "",
            messages=each.messages,
        )
        for each in found
    ]


def _told_by(log: bytes, rows: list[SessionRow]) -> list[SessionAgent]:
    """The agents as a session's own log tells of them, each with its chain."""
    from harken.views import SessionViewer

    tree = SessionViewer.of_log((log,)).agent_tree()
    chains = {row.agent or (tree[0]["agent_id"] if tree else ""): row for row in reversed(rows)}
    empty = SessionRow(session="", runtime="")
    return [
        SessionAgent(
            agent=agent["agent_id"],
            name=agent["name"] if agent["name"] != agent["agent_id"] else "",
            session=chains.get(agent["agent_id"], empty).session,
            tip=chains.get(agent["agent_id"], empty).tip,
            parent=agent["parent"] or "",
            messages=agent["messages"],
            role=agent["role"],
            language_model=agent["language_model"],
            terminated=agent["terminated"] is not None,
        )
        for agent in tree
    ]


def view_of(store: Store, session: str | os.PathLike[str]) -> SessionViewer:
    """The views of a session in the store, or of a log file."""
    from harken.views import SessionViewer

    if not isinstance(session, str):
        return SessionViewer(Path(session))
    row = get_session(store, session)
    log = session_bytes(store, row, LOG)
    if log is not None:
        return SessionViewer.of_log((log,))
    return SessionViewer.of(session_events(store, row))


def _maker(store: Store, row: SessionRow, names: dict[str, str]) -> str:
    """The agent that made this one, as its chain says; the session's own where the chain does not."""
    origin = store.get_commit(store.walk(row.tip)[-1].id).spawned_from if row.tip else None
    made_by = str((origin or {}).get("session", ""))
    return names.get(made_by) or names.get(row.parent) or row.parent


def agents_in_log(store: Store, path: Path) -> list[SessionAgent]:
    """The agents of a log file, with their chains where the store has them."""
    from harken.log import Session  # most commands do without it

    if not path.is_file():
        raise BadRequest(f"{path} is not a file", hint="name a session's log file, or a session in the store")
    source = str(path.resolve())
    kept = {row.agent: row for row in store.sessions() if row.source.partition("#")[0] == source}
    empty = SessionRow(session="", runtime="")
    with Session(path, readonly=True) as log:
        return [
            SessionAgent(
                agent=info.agent_id,
                name=info.name,
                session=_kept(kept, log, info.agent_id, empty).session,
                tip=_kept(kept, log, info.agent_id, empty).tip,
                parent=info.parent or "",
                messages=info.entries,
                role=info.role,
                language_model=info.language_model,
                terminated=info.terminated,
            )
            for info in log.agents.values()
        ]


def _kept(kept: dict[str, SessionRow], log: Session, agent: str, empty: SessionRow) -> SessionRow:
    """The row of an agent's chain; the root's is the session's own."""
    return kept.get(agent) or (kept.get("", empty) if agent == log.root else empty)
