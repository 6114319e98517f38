"""Who there was: the agents of a session by name, and the tree they form."""

from __future__ import annotations

from typing import TypedDict

from harken.errors import Ambiguous, BadRequest, NotFound
from harken.events import Event, Metric, Response
from harken.events.tally import SYNTHETIC, Tally

from .index import Index


class AgentRow(TypedDict):
    """One agent in the tree, parents before their children."""

    agent_id: str
    name: str
    role: str
    parent: str | None
    depth: int
    language_model: str
    """The model it was made with or changed to; where nobody said, that of its last answer which names one."""
    created: str | None
    """The message that created it, where the log has one."""
    terminated: str | None
    messages: int


def list_agents(index: Index) -> dict[str, str]:
    """Every agent the log knows, by id, with its name or its id."""
    return {agent_id: index.name(agent_id) for agent_id in index.agents}


def find_agent(index: Index, text: str) -> str:
    """The agent meant by an id, or by a name that only one agent has."""
    if not isinstance(text, str):
        raise BadRequest(f"an agent is meant by its id or its name, not by {text!r:.80}", hint="pass a str")
    if text in index.agents:
        return text
    named = [info.agent_id for info in index.agents.values() if info.name and info.name == text]
    named = named or [info.agent_id for info in index.agents.values() if info.name.casefold() == text.casefold() != ""]
    if len(named) == 1:
        return named[0]
    if named:
        raise Ambiguous(f"{len(named)} agents are called {text!r}", hint=f"say which by its id: {_some(named)}")
    if not index.agents:
        raise NotFound(f"no agent {text!r}: the session has no agents", hint="is this the right file?")
    known = [_called(index, agent_id) for agent_id in index.agents]
    raise NotFound(f"no agent {text!r} in this session", hint=f"the agents are {_some(known)}")


def _called(index: Index, agent_id: str) -> str:
    name = index.name(agent_id)
    return agent_id if name == agent_id else f"{agent_id} ({name})"


def _some(names: list[str], limit: int = 20) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def agent_tree(index: Index) -> list[AgentRow]:
    """The agents in the order of a walk down the tree, each with its depth."""
    children: dict[str | None, list[str]] = {}
    for info in index.agents.values():
        parent = info.parent if info.parent in index.agents else None
        children.setdefault(parent, []).append(info.agent_id)
    rows: list[AgentRow] = []
    told: dict[str | None, list[Event]] = {}
    for holder, record in zip(index.holders, index.records, strict=True):
        told.setdefault(holder, []).extend(record)
    seen: set[str] = set()
    # After the roots, everybody: those whose parents run in a circle hang from nothing.
    for start in [*children.get(None, ()), *index.agents]:
        stack = [(start, 0)]
        while stack:
            agent_id, depth = stack.pop()
            if agent_id in seen:
                continue
            seen.add(agent_id)
            rows.append(_row(index, agent_id, depth, told.get(agent_id, [])))
            stack += [(child, depth + 1) for child in reversed(children.get(agent_id, ()))]
    return rows


def _row(index: Index, agent_id: str, depth: int, told: list[Event]) -> AgentRow:
    info = index.agents[agent_id]
    return AgentRow(
        agent_id=agent_id,
        name=index.name(agent_id),
        role=info.role or ("root" if agent_id == index.main and info.created is not None else ""),
        parent=info.parent,
        depth=depth,
        language_model=info.language_model or _last_model(told),
        created=None if info.created is None else index.ids[info.created],
        terminated=None if info.terminated is None else index.ids[info.terminated],
        messages=Tally.of(told).messages,
    )


def _last_model(told: list[Event]) -> str:
    """The model of an agent's last answer that names one; a message that a harness made up is nobody's."""
    answers = (each for each in reversed(told) if isinstance(each, Response | Metric) and each.model != SYNTHETIC)
    # A metric with a scope may be of another agent.
    return next((each.model for each in answers if each.model and not getattr(each, "scope", "")), "")
