"""Agents that sub-sessions and messages name by their type alone, or not at all: the only one of that type is meant, or
the one that was given the task, as a repair has it. A reader that took each for an agent of its own would count it
twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .document import Json
from .parts import (
    agent_kind,
    agents,
    call_kind,
    inner,
    orchestrator,
    participants,
    task_workers,
    text,
    values,
)
from .spellings import plain_key


def with_meant_agents(data: Json) -> Json:
    """The document, those agents with their ids; itself where all have one."""
    subs, messages = values(data.get("sub_sessions")), values(data.get("messages"))
    if not any(_lacks_id(sub, "agent") for sub in subs) and not any(
        _lacks_id(message, key) for message in messages for key in _SIDES
    ):
        return data
    meant = _Meant(data)
    made = {**data}
    if isinstance(listed := data.get("sub_sessions"), list):
        made["sub_sessions"] = [meant.in_sub(sub) if isinstance(sub, dict) else sub for sub in listed]
    if isinstance(listed := data.get("messages"), list):
        made["messages"] = [meant.in_message(one) if isinstance(one, dict) else one for one in listed]
    return made


_SIDES = ("from_agent", "to_agent")


def _lacks_id(holder: Json, key: str) -> bool:
    agent = holder.get(key)
    return agent is None or (isinstance(agent, dict) and agent.get("agent_id") in (None, ""))


class _Meant:
    """Who is meant in a document by a type, or by a task."""

    def __init__(self, data: Json) -> None:
        found: dict[str, dict[str, None]] = {}
        for agent in (orchestrator(data), *participants(data), *agents(data).values()):
            if name := text(agent, "agent_id"):
                found.setdefault(text(agent, "agent_type"), {})[name] = None
        self._only = {kind: next(iter(names)) for kind, names in found.items() if kind and len(names) == 1}
        self._workers = task_workers(data)
        self._calls = {text(call, "call_id"): call for call in values(data.get("tool_calls"))}

    def in_sub(self, sub: Json) -> Json:
        if not _lacks_id(sub, "agent") or any(plain_key(key) == "agent_id" for key in sub):
            return sub
        agent = inner(sub, "agent")
        kind = agent_kind(agent) or call_kind(self._calls.get(text(sub, "triggered_by_call_id")))
        worker = self._workers.get(text(inner(sub, "task"), "task_id"), {})
        if kind and text(worker, "agent_type") not in ("", kind):
            worker = {}
        name = _said(agent) or text(worker, "agent_id") or self._only.get(kind, "")
        kind = kind or text(worker, "agent_type")
        return {**sub, "agent": {"agent_type": kind, **agent, "agent_id": name}} if name and kind else sub

    def in_message(self, message: Json) -> Json:
        found = {key: inner(message, key) for key in _SIDES if message.get(key) is not None and _lacks_id(message, key)}
        named = {key: _said(agent) or self._only.get(agent_kind(agent), "") for key, agent in found.items()}
        return {**message, **{key: {**found[key], "agent_id": name} for key, name in named.items() if name}}


def _said(agent: Json) -> str:
    return text(agent, "id") or text(agent, "agent")


# -- names in place of ids ---------------------------------------------------------------------------------------------


def names_as_ids(data: Json) -> dict[str, str]:
    """The names under which agents are told without an id, each with the id that is meant: that of the only agent which
    is called so, else the name itself, where no agent of its type has an id."""
    told = list(_all_agents(data))
    unnamed = {name: agent_kind(one) for one in told if not _own(one) and (name := _given_name(one))}
    if not unnamed:
        return {}
    known: dict[str, set[str]] = {}
    for one in told:
        if own := _own(one):
            known.setdefault(text(one, "name"), set()).add(own)
    with_ids = {agent_kind(one) for one in told if _own(one)}
    found = {name: next(iter(known[name])) for name in unnamed if len(known.get(name, ())) == 1}
    return found | {name: name for name, kind in unnamed.items() if name not in known and kind not in with_ids}


def with_names_as_ids(data: Json) -> Json:
    """The document, those agents with their ids; itself where all have one."""
    if not (names := names_as_ids(data)):
        return data

    def meant(agent: Any) -> Any:
        if not isinstance(agent, dict) or _own(agent) or (name := _given_name(agent)) not in names:
            return agent
        return {**agent, "agent_type": agent_kind(agent), "agent_id": names[name]}

    def inside(holder: Any, keys: tuple[str, ...]) -> Any:
        return {**holder, **{key: meant(holder[key]) for key in keys if key in holder}}

    def each(listed: Any, change: Callable[[Any], Any]) -> Any:
        return [change(one) if isinstance(one, dict) else one for one in listed] if isinstance(listed, list) else listed

    made = {**data}
    if isinstance(team := data.get("collaboration"), dict):
        made["collaboration"] = inside(team, ("orchestrator",))
        if "participants" in team:
            made["collaboration"]["participants"] = each(team["participants"], meant)
    for key, sides in (("sub_sessions", ("agent",)), ("messages", _SIDES)):
        if key in data:
            made[key] = each(data[key], partial(inside, keys=sides))
    return made


def _all_agents(data: Json) -> Iterator[Json]:
    team = inner(data, "collaboration")
    yield from (inner(team, "orchestrator"), *values(team.get("participants")))
    yield from (inner(sub, "agent") for sub in values(data.get("sub_sessions")))
    yield from (inner(message, key) for message in values(data.get("messages")) for key in _SIDES)


def _own(agent: Json) -> str:
    return text(agent, "agent_id") or _said(agent)


def _given_name(agent: Json) -> str:
    """What an agent is called beside its type; where nothing else is one, the name is that."""
    name = text(agent, "name")
    return name if name and agent_kind(agent) != name else ""
