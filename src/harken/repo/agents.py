"""Who took part in a session: from its chains in the store, or from its log file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import ids
from harken.context import (
    agent_name,
    agents_below,
    errand_title,
    get_session,
    maker_name,
    names_agents,
    spawning_call,
)
from harken.context.chains import readable_sessions
from harken.events import ToolCall
from harken.events.tools import tool_and_deed
from harken.store import SessionRow, Store

from .looking import in_store_of_its_own, view_of

if TYPE_CHECKING:
    from harken.views import SessionViewer
    from harken.views.agents import AgentRow

NO_CHAIN = SessionRow(session="", runtime="")


class SessionAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of a session."""

    agent: str
    """Its id, the same in every view; the main agent of another runtime's session is called after the runtime."""
    name: str = ""
    """What it is called, where it has a name."""
    title: str = ""
    """What its chain is called; of one without a name what the call that made it says, or its first words."""
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
    """The agents whose chains belong to a session, its own first; by the ids that its views name them by."""
    row = get_session(store, session)
    found = {each.session: each for each in (row, *agents_below(store, row))}
    # Counted from what they said, as every view does: an agent without a chain has no row, and its records
    # may stand in the file of another.
    view = view_of(store, row.session) if row.stand else None
    tree = view.agent_tree() if view is not None else []
    if row.stand and names_agents(store.get_commit(row.stand).format):
        return _told_by(tree, list(found.values()))
    titled = _titled(store, view, list(found.values())) if view is not None else []
    names = {agent_name(each): each for each in reversed(titled)}
    told = [_session_agent(agent, names.get(agent["agent_id"], NO_CHAIN)) for agent in tree]
    if not row.parent:
        return told
    return [
        msgspec.structs.replace(each, parent=maker_name(store, row, found)) if each.session == row.session else each
        for each in told
    ]


def _titled(store: Store, view: SessionViewer, rows: list[SessionRow]) -> list[SessionRow]:
    """The rows, those of sub-agents called as the calls that made them say."""
    calls = {each.session: spawning_call(store, each) for each in rows if each.parent}
    wanted = set(calls.values()) - {""}
    said: dict[tuple[str, str], str] = {}
    for record in view.index.records if wanted else ():
        for event in record:
            if isinstance(event, ToolCall) and event.id in wanted:
                errand = tool_and_deed(event)[1]
                said.setdefault((event.agent_id, event.id), errand)
                said.setdefault(("", event.id), errand)
    names = {each.session: agent_name(each) for each in rows}
    return [
        msgspec.structs.replace(each, title=errand_title(each.title, _first(said, names.get(each.parent, ""), call)))
        if (call := calls.get(each.session))
        else each
        for each in rows
    ]


def _first(said: dict[tuple[str, str], str], maker: str, call: str) -> str:
    """What a call says: programs number their calls anew in each session, so its maker's is looked for first."""
    return said.get((maker, call)) or said.get(("", call), "")


def _told_by(tree: list[AgentRow], rows: list[SessionRow]) -> list[SessionAgent]:
    """The agents as the session itself tells of them, each with its chain."""
    root = tree[0]["agent_id"] if tree else ""
    chains = {row.agent or (row.session if row.parent else root): row for row in reversed(rows)}
    return [_session_agent(agent, chains.get(agent["agent_id"], NO_CHAIN)) for agent in tree]


def _session_agent(agent: AgentRow, chain: SessionRow) -> SessionAgent:
    return SessionAgent(
        agent=agent["agent_id"],
        name=agent["name"] if agent["name"] != agent["agent_id"] else "",
        title=chain.title,
        session=chain.session,
        tip=chain.stand,
        parent=agent["parent"] or "",
        messages=agent["messages"],
        role=agent["role"],
        language_model=agent["language_model"],
        terminated=agent["terminated"] is not None,
    )


def agents_of(store: Store, session: str | os.PathLike[str]) -> list[SessionAgent]:
    """The agents of a session in the store, or of a file, with those whose files lie beside it."""
    if isinstance(session, str):
        return agents_in_store(store, session)
    path = Path(session).absolute()  # as sources are named in the store
    if not path.is_file():
        return agents_in_log(store, path)  # which says what is wrong
    with in_store_of_its_own(path) as found:
        if found is None or names_agents(found[0].get_commit(found[1].stand).format):
            return agents_in_log(store, path)
        own, row = found
        sources = {each.session: each.source for each in own.sessions()}
        listed = agents_in_store(own, row.session)
    chains = {each.source: each for each in readable_sessions(store)}
    kept = [chains.get(sources.get(each.session, ""), NO_CHAIN) for each in listed]
    return [
        msgspec.structs.replace(each, session=chain.session, tip=chain.stand)
        for each, chain in zip(listed, kept, strict=True)
    ]


def agents_in_log(store: Store, path: Path) -> list[SessionAgent]:
    """The agents of a log file, with their chains where the store has them."""
    source = str(path.resolve())
    rows = [row for row in store.sessions() if row.source in (source, ids.source_within(source, row.agent))]
    return _told_by(view_of(store, path).agent_tree(), rows)
