"""Sources of transcript entries and the agents that they are in a log: one rule, both ways.

The first agent without a parent is `primary`. An agent below another is `subagent:<its id>`. A further agent without a
parent is another conversation of the same program: `conversation:<its name>`. An agent that somebody's own source
stands for says so in its attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    for agent_id in reversed(session.agents):
        if agent_id != session.root and source_of(session, agent_id) == source:
            return agent_id
    above = session.root or _primary(session, None)
    kind, _, rest = source.partition(":")
    plain = is_name(rest) and rest == rest.strip() and rest not in session.agents
    if kind + ":" == SUBAGENT and plain:
        session.log_agent_created(rest, language_model=language_model, role="child", parent=above)
        return rest
    agent_id = session.allocate_agent_id()
    if kind + ":" == CONVERSATION and plain:
        session.log_agent_created(agent_id, name=rest, language_model=language_model, role="root")
    else:
        attributes = {SOURCE: source}
        session.log_agent_created(
            agent_id, language_model=language_model, role="child", parent=above, attributes=attributes
        )
    return agent_id


def _primary(session: Session, language_model: str | None) -> str:
    agent_id = session.allocate_agent_id()
    session.log_agent_created(agent_id, language_model=language_model, role="root")
    return agent_id
