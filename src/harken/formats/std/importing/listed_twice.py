"""Calls that a document lists in two places: a sub-agent's call that started another agent stands among the main calls,
too, since the standard looks for it there."""

from __future__ import annotations

from harken.formats.std.document import Json
from harken.formats.std.parts import is_uncounted, objects, values

from .conversation_events import conversation_of
from .pieces import agent_named, id_of

_SAME = ("tool_name", "started_at", "input")
"""What two lists say alike of one call; ids alone may be equal by chance, where each agent counts its own calls."""


def with_owners(data: Json) -> Json:
    """The document, each such call among the main ones marked with the agent whose it is, as Harken marks it. Where a
    conversation is told, that says whose call it is."""
    nested = _nested(data) if conversation_of(data) is None else {}
    marked = {place: owner for place, call in objects(data.get("tool_calls")) if (owner := _owner(call, nested))}
    if not marked:
        return data
    calls = enumerate(data["tool_calls"])
    return {
        **data,
        "tool_calls": [{**call, "x_harken_owner": marked[at]} if at in marked else call for at, call in calls],
    }


def _nested(data: Json) -> dict[str, list[tuple[Json, str]]]:
    """The id of a call of a sub-session that started another one to the calls with that id, and the agents whose they
    are."""
    started: dict[str, list[Json]] = {}
    for sub in values(data.get("sub_sessions")):
        started.setdefault(id_of(sub.get("triggered_by_call_id")), []).append(sub)
    found: dict[str, list[tuple[Json, str]]] = {}
    for sub in values(data.get("sub_sessions")):
        agent = agent_named(sub, "agent") or id_of(sub.get("sub_session_id"))
        for call in values(sub.get("tool_calls")):
            name = id_of(call.get("call_id"))
            if agent and name and any(one is not sub for one in started.get(name, ())):
                found.setdefault(name, []).append((call, agent))
    return found


def _owner(call: Json, nested: dict[str, list[tuple[Json, str]]]) -> str:
    """The agent whose call it is; empty where it is the main agent's own, or is marked already."""
    if is_uncounted(call):
        return ""
    alike = (owner for other, owner in nested.get(id_of(call.get("call_id")), ()) if _is_same(call, other))
    return next(alike, "")


def _is_same(one: Json, other: Json) -> bool:
    return all(one.get(key) == other.get(key) for key in _SAME)
