"""Calls of sub-agents that stand among the main ones alone, in a document that has one list for all agents: each call
says whose it is, or the sub-session lists the ids of its calls."""

from __future__ import annotations

from .copies import CONVERSATION
from .document import Json
from .hearers import agent_named, id_of
from .parts import inner, instant, is_uncounted, objects, orchestrator, tells_agent

_OF_CALL = ("agent_id", "agent")
_LISTS = ("tool_calls", "tool_call_ids")


def flat_calls(data: Json) -> dict[int, list[int]]:
    """The place of a sub-session without calls of its own to the places of its calls among the main ones."""
    subs = list(objects(data.get("sub_sessions")))
    bare = {place: sub for place, sub in subs if not _has_calls(sub)}
    idle = {id_of(call.get("call_id")) for _, call in objects(data.get("tool_calls")) if _started_idle(call)}
    bare = {place: sub for place, sub in bare.items() if id_of(sub.get("triggered_by_call_id")) not in idle}
    if not bare or CONVERSATION in data:
        return {}
    started = {id_of(sub.get("triggered_by_call_id")) for _, sub in subs}
    free = [
        (place, call)
        for place, call in objects(data.get("tool_calls"))
        if not is_uncounted(call) and id_of(call.get("call_id")) not in started and not tells_agent(call)
    ]
    found = _by_ids(bare, free)
    whose = _Owners(data, [(place, sub) for place, sub in subs if place not in found], bare)
    for at, call in free:
        if (place := whose.of(call)) is not None:
            found.setdefault(place, []).append(at)
    return found


def with_own_calls(data: Json) -> Json:
    """The document, each such call in its sub-session; it stays among the main ones, marked as another agent's."""
    if not (found := flat_calls(data)):
        return data
    calls, subs = list(data["tool_calls"]), list(data["sub_sessions"])
    for place, its in found.items():
        sub = subs[place]
        subs[place] = {**sub, "tool_calls": [calls[at] for at in its]}
        for at in its:
            calls[at] = {**calls[at], "x_harken_owner": owner_of(sub)}
    return {**data, "tool_calls": calls, "sub_sessions": subs}


def owner_of(sub: Json) -> str:
    """The agent of a sub-session, by whatever it has."""
    return agent_named(sub, "agent") or id_of(sub.get("agent_id")) or id_of(sub.get("sub_session_id"))


def _has_calls(sub: Json) -> bool:
    held = sub.get("tool_calls")
    is_open = held is None or (isinstance(held, list) and all(isinstance(one, str | int) for one in held))
    return not is_open or CONVERSATION in sub


def _started_idle(call: Json) -> bool:
    """Whether a call says that the agent it started used no tool: one that names that agent is about it then."""
    return inner(call, "subagent_info").get("tool_uses") == 0


def _by_ids(bare: dict[int, Json], free: list[tuple[int, Json]]) -> dict[int, list[int]]:
    """The calls that sub-sessions list by their ids, where each is there once."""
    places: dict[str, list[int]] = {}
    for place, call in free:
        places.setdefault(id_of(call.get("call_id")), []).append(place)
    found: dict[int, list[int]] = {}
    for place, sub in bare.items():
        listed = next((held for key in _LISTS if isinstance(held := sub.get(key), list) and held), [])
        its = [places.pop(id_of(one), []) for one in listed]
        if its and all(len(at) == 1 for at in its):
            found[place] = sorted(at for (at,) in its)
    return found


class _Owners:
    """Whose a call is by what it says: its sub-session, or its agent. Of several sub-sessions of the agent it is the
    only one in whose time the call began."""

    def __init__(self, data: Json, subs: list[tuple[int, Json]], bare: dict[int, Json]) -> None:
        self._bare = bare
        self._by_id = {id_of(sub.get("sub_session_id")): place for place, sub in reversed(subs)}
        self._by_agent: dict[str, list[tuple[int, Json]]] = {}
        for place, sub in subs:
            self._by_agent.setdefault(owner_of(sub), []).append((place, sub))
        for name in ("", id_of(orchestrator(data).get("agent_id"))):
            self._by_agent.pop(name, None)

    def of(self, call: Json) -> int | None:
        """The place of its sub-session; None where it is the main agent's, or nobody can tell."""
        place = self._by_id.get(id_of(call.get("sub_session_id")) or "-")
        if place is None:
            subs = next(filter(None, (self._by_agent.get(agent_named(call, key)) for key in _OF_CALL)), [])
            around = subs if len(subs) < 2 else [one for one in subs if _is_in(call, one[1])]
            place = around[0][0] if len(around) == 1 else None
        return place if place in self._bare and place is not None else None


def _is_in(call: Json, sub: Json) -> bool:
    begun, first, last = instant(call, "started_at"), instant(sub, "started_at"), instant(sub, "completed_at")
    return begun is not None and first is not None and first <= begun and (last is None or begun <= last)
