"""Agents that sub-sessions and messages name by their type alone, or not at all: the only one of that type is meant, or
the one that was given the task, as a repair has it. A reader that took each for an agent of its own would count it
twice."""

from __future__ import annotations

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
