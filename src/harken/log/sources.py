"""Sources of transcript entries and the agents that they are in a log: one rule, both ways.

The first agent without a parent is `primary`. An agent below another is `subagent:<its id>`. A further agent without a
parent is another conversation of the same program: `conversation:<its name>`. An agent that somebody's own source
stands for says so in its attributes.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from harken.errors import BadRequest
from harken.events.base import is_name
from harken.formats.transcript.entry import CONVERSATION, PRIMARY, SUBAGENT

if TYPE_CHECKING:
    from .session import Session

SOURCE = "source"
"""The attribute of an agent whose source is not told by its place in the tree."""


def source_of(session: Session, agent_id: str) -> str:
    """The source of what an agent says and hears."""
    info = session.agents.get(agent_id)
    if info is None or agent_id == session.root:
        return PRIMARY if info is not None or not session.agents else SUBAGENT + agent_id
    said = info.attributes.get(SOURCE)
    if isinstance(said, str) and said:
        return said
    return SUBAGENT + agent_id if info.parent is not None else CONVERSATION + (info.name or agent_id)


def agent_of(session: Session, source: str, *, language_model: str | None = None) -> str:
    """The agent whose source it is; one that is not there yet is created."""
    if not isinstance(source, str) or not source:
        raise BadRequest(f"{source!r:.80} is no source", hint='"primary", or "subagent:" and an id')
    if source == PRIMARY:
        return session.root or _primary(session, language_model)
    if (known := _known(session, source)) is not None:
        return known
    above = session.root or _primary(session, None)
    kind, _, rest = source.partition(":")
    plain = is_name(rest) and rest == rest.strip() and rest not in session.agents
    agent_id = rest if kind + ":" == SUBAGENT and plain else session.allocate_agent_id()
    place: dict[str, Any] = {"role": "child", "parent": above, "language_model": language_model}
    if kind + ":" == CONVERSATION:
        place = {"role": "root", "language_model": language_model}
    if plain and kind + ":" in (SUBAGENT, CONVERSATION):
        try:
            session.log_agent_created(agent_id, name=rest if agent_id != rest else None, **place)
            return agent_id
        except BadRequest:  # it is like the id or the name of another agent
            agent_id = session.allocate_agent_id()
    session.log_agent_created(agent_id, **place, attributes={SOURCE: source})
    return agent_id


def _known(session: Session, source: str) -> str | None:
    """The last agent whose source it is; of those that were looked at before only the ones not logged as made are
    looked at again, since these may still turn out to be another's."""
    sources = session.sources = session.sources or KnownSources()
    for agent_id in islice(session.agents, sources.seen, None):
        sources.seen += 1
        if not session.agents[agent_id].created:
            sources.unsure.append(agent_id)
        elif agent_id != session.root:
            sources.agents[source_of(session, agent_id)] = agent_id
    unsure = (one for one in reversed(sources.unsure) if one != session.root and source_of(session, one) == source)
    return sources.agents.get(source) or next(unsure, None)


class KnownSources:
    """What is known of the agents of a session by their sources."""

    def __init__(self) -> None:
        self.seen = 0
        self.agents: dict[str, str] = {}
        self.unsure: list[str] = []


def _primary(session: Session, language_model: str | None) -> str:
    agent_id = session.allocate_agent_id()
    session.log_agent_created(agent_id, language_model=language_model, role="root")
    return agent_id
