"""Calls of sub-agents that a document lists among the main calls, too: those that started another agent, since the
standard looks for them there, and whatever else stands there again word for word."""

from __future__ import annotations

from .copies import CONVERSATION
from .document import Json
from .hearers import agent_named, id_of
from .json_text import compact
from .parts import is_uncounted, objects, text, values

_SAME = ("tool_name", "started_at", "input")
"""What two lists say alike of one call; ids alone may be equal by chance, where each agent counts its own calls."""


def with_owners(data: Json) -> Json:
    """The document, each such call among the main ones marked with the agent whose it is, as Harken marks it. Where a
    conversation is told, that says whose call it is."""
    nested = _nested(data) if not isinstance(data.get(CONVERSATION), list) else {}
    marked = {place: owner for place, call in objects(data.get("tool_calls")) if (owner := _owner(call, nested))}
    if not marked:
        return data
    calls = enumerate(data["tool_calls"])
    return {
        **data,
        "tool_calls": [{**call, "x_harken_owner": marked[at]} if at in marked else call for at, call in calls],
    }


def _nested(data: Json) -> dict[str, list[tuple[Json, str, bool]]]:
    """The id of a call that a sub-session and the main calls have to the calls with that id, the agents whose they are,
    and whether another agent was started by that call."""
    started: dict[str, list[Json]] = {}
    for sub in values(data.get("sub_sessions")):
        started.setdefault(id_of(sub.get("triggered_by_call_id")), []).append(sub)
    main = {id_of(call.get("call_id")) for call in values(data.get("tool_calls"))} - {""}
    found: dict[str, list[tuple[Json, str, bool]]] = {}
    for sub in values(data.get("sub_sessions")):
        agent = agent_named(sub, "agent") or id_of(sub.get("sub_session_id"))
        for call in values(sub.get("tool_calls")) if agent else ():
            if (name := id_of(call.get("call_id"))) in main:
                made = started.get(name, ())
                if not made or any(one is not sub for one in made):
                    found.setdefault(name, []).append((call, agent, bool(made)))
    return found


def _owner(call: Json, nested: dict[str, list[tuple[Json, str, bool]]]) -> str:
    """The agent whose call it is; empty where it is the main agent's own, or is marked already."""
    if is_uncounted(call):
        return ""
    found = nested.get(id_of(call.get("call_id")), ())
    return next((owner for other, owner, starts in found if is_same_call(call, other, starts=starts)), "")


def is_same_call(one: Json, other: Json, *, starts: bool) -> bool:
    """Whether two lists tell of one call. Where it starts an agent, that is sure already; any other has to be the same
    word for word, at a time of its own."""
    if starts:
        return all(one.get(key) == other.get(key) for key in _SAME)
    return bool(text(one, "started_at")) and one == other and compact(one) == compact(other)
