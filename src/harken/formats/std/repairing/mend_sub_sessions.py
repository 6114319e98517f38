"""Mending sub-sessions: what they are linked with tells what they lack."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.listed_twice import is_same_call
from harken.formats.std.meant_statuses import meant_statuses
from harken.formats.std.meant_tasks import meant_tasks, told_tasks, words_beside
from harken.formats.std.models import LEVELS, STATUSES, TASK
from harken.formats.std.parts import (
    agent_kind,
    agents,
    call_kind,
    call_owners,
    inner,
    instant,
    objects,
    task_id_of,
    task_workers,
    text,
    type_in,
    values,
    words_in,
)
from harken.formats.std.spellings import known_status, known_word, plain_key

from .mend_agents import agent, agent_id, identifier, listed_agent, of_type
from .mend_calls import call_ids, subs_by_call
from .mend_reviews import REVIEW, check_flag, finding_place, unknown_finding
from .mend_session import status, sub_calls
from .mending import Mender, Spot, path_steps

# -- sub-sessions ------------------------------------------------------------------------------------------------------


def trigger_of(spot: Spot, sub: Json) -> Json:
    """The call that started a sub-session, by either link; empty where there is none."""
    by_id, by_sub = spot.doc.once("calls", lambda: _calls(spot.doc.data))
    own, trigger = text(sub, "sub_session_id"), text(sub, "triggered_by_call_id")
    if not trigger:
        return by_sub.get(own, {}) if own else {}
    call, _ = by_id.get(trigger, (Json(), 0))
    return call if text(call, "tool_name") == TASK else _nested_call(spot, sub)[0] or call


def _calls(data: Json) -> tuple[dict[str, tuple[Json, int]], dict[str, Json]]:
    """The main calls by their ids, each with its place, and all calls by the sub-session that each names: a main call
    where one of a sub-agent names it, too."""
    calls = list(objects(data.get("tool_calls")))
    by_id = {text(call, "call_id"): (call, place) for place, call in calls}
    nested = [call for sub in values(data.get("sub_sessions")) for call in values(sub.get("tool_calls"))]
    listed = [*nested, *(call for _, call in calls)]
    by_sub = {name: call for call in listed if (name := text(inner(call, "subagent_info"), "sub_session_id"))}
    return by_id, {**_naming_elsewhere(data, listed), **by_sub}


def _naming_elsewhere(data: Json, calls: list[Json]) -> dict[str, Json]:
    """A sub-session to the only call for an agent that names it, and no other, in another place than the standard has
    for that. A call that was made while the sub-session was at work is one of its own instead."""
    subs = {name: sub for sub in values(data.get("sub_sessions")) if (name := text(sub, "sub_session_id"))}
    found: dict[str, list[Json]] = {}
    for call in calls:
        if text(call, "tool_name") not in _CALLS_FOR_AGENTS or text(inner(call, "subagent_info"), "sub_session_id"):
            continue
        named = _names_in(call) & subs.keys()
        for name in named if len(named) == 1 else ():
            made, begun = instant(call, "started_at"), instant(subs[name], "started_at")
            if made is None or begun is None or made <= begun:
                found.setdefault(name, []).append(call)
    return {name: naming[0] for name, naming in found.items() if len(naming) == 1}


_CALLS_FOR_AGENTS = frozenset({TASK, "Agent"})


def _names_in(call: Json) -> set[str]:
    """What may be the id of the sub-session that a call started."""
    output, info = inner(call, "output"), inner(call, "subagent_info")
    places = (call, output, inner(output, "result"), inner(inner(call, "input"), "params"), inner(call, "subagent"))
    said = {text(place, key) for place in places for key in ("sub_session_id", "subsession_id", "session_id")}
    return said | {text(info, "session_id"), text(info, "id"), text(call, "subagent_info"), text(call, "sub_session")}


def ids_among(spot: Spot, name: str, key: str) -> list[Any]:
    return [one.get(key) for one in values(spot.doc.data.get(name))]


def sub_session_id(spot: Spot) -> bool:
    if spot.value is not None or spot.take(("id",), str):
        return spot.value is not None and isinstance(spot.value, str)
    if name := text(inner(trigger_of(spot, spot.holder), "subagent_info"), "sub_session_id"):
        return spot.put(name, "as its call says")
    name = spot.doc.free_id(
        "sub-session", "sub-{:03}".format, lambda: ids_among(spot, "sub_sessions", "sub_session_id")
    )
    return spot.put(name, "made from its place", derived=True)


def parent_session(spot: Spot) -> bool:
    """The session, or the sub-session among whose calls is the one that started it."""
    own, session = text(spot.holder, "sub_session_id"), text(spot.doc.data, "session_id")
    owner = next((name for name in _starters(spot) if name != own), "") or session
    why = "the session that it is part of" if owner == session else "the call that started it is one of its calls"
    return bool(owner) and spot.value != owner and spot.put(owner, why, derived=True)


def _starters(spot: Spot) -> list[str]:
    """The session and the sub-sessions that have a call of the id by which a sub-session names its start."""
    owners = spot.doc.once("owners", lambda: call_owners(spot.doc.data))
    return owners.get(text(spot.holder, "triggered_by_call_id"), [])


def trigger_id(spot: Spot) -> bool:
    if spot.value is None and (spot.take(_TRIGGERS, str) or _take_trigger(spot)):
        return True
    name = text(trigger_of(spot, spot.holder), "call_id") if spot.value is None else ""
    return bool(name) and spot.put(name, "the call that names this sub-session")


_TRIGGERS = ("trigger_call_id", "parent_call_id", "call_id")
_MAYBE_TRIGGERS = (
    *("triggered_by", "parent_tool_call_id", "tool_call_id", "task_call_id", "spawned_by_call_id", "spawned_by"),
)
"""Other names of `triggered_by_call_id`; under some an agent may stand as well."""


def _take_trigger(spot: Spot) -> bool:
    """The id of the call, where it stands inside an object, or under a name that something else may have."""
    for key, names in (("triggered_by", _INSIDE), ("trigger", _INSIDE), ("task", _INSIDE[:1])):
        held = inner(spot.holder, key)
        if name := next(filter(None, (text(held, one) for one in names)), ""):
            return spot.put(name, f"as `{key}` says")
    known = spot.doc.once("call ids", lambda: frozenset(call_ids(spot.doc.data)))
    return spot.take([name for name in _MAYBE_TRIGGERS if text(spot.holder, name) in known], str)


_INSIDE = ("triggered_by_call_id", "call_id")


def trigger_name(spot: Spot) -> bool:
    """The call that a sub-session names as its start has another name than `Task`: its own name is kept beside."""
    by_id, _ = spot.doc.once("calls", lambda: _calls(spot.doc.data))
    call, place = by_id.get(spot.value, ({}, 0))
    if not call:
        return _list_nested(spot) or _follow_call(spot)
    if not (name := text(call, "tool_name")) or name == TASK or _is_nested(spot):
        return False
    call.setdefault("x_harken_name", name)
    call["tool_name"] = TASK
    said = f'`tool_name` was {shown(name)}, is "Task": the sub-session says that this call started it'
    spot.doc.tell(spot.rule, f"tool_calls[{place}].tool_name", f"{said}; the name is kept as `x_harken_name`")
    return True


def _list_nested(spot: Spot) -> bool:
    """A call of a sub-agent started it: it is listed among the main calls too, where the standard looks for it."""
    calls = spot.doc.data.get("tool_calls")
    call, owner = _nested_call(spot, spot.holder)
    if not owner or not isinstance(calls, list):
        return False
    calls.append({**call, "x_harken_owner": owner})
    by_id, _ = spot.doc.once("calls", lambda: _calls(spot.doc.data))
    by_id[spot.value] = calls[-1], len(calls) - 1
    said = f"{shown(spot.value)}, a call of {shown(owner)} that started a sub-session, is listed here too"
    spot.doc.tell(spot.rule, f"tool_calls[{len(calls) - 1}]", f"{said}, marked `x_harken_owner`", derived=True)
    return True


def mark_nested(spot: Spot) -> bool:
    """A call of a sub-agent is listed among the main calls too, and does not say so."""
    by_id, _ = spot.doc.once("calls", lambda: _calls(spot.doc.data))
    call, place = by_id.get(spot.value, ({}, 0))
    name, at, *_ = path_steps(spot.path)
    owner = text(inner(spot.doc.data["sub_sessions"][at], "agent"), "agent_id") if name == "sub_sessions" else ""
    if not owner or not is_same_call(call, spot.holder, starts=False):
        return False
    call["x_harken_owner"] = owner
    said = f"{shown(spot.value)} is a call of {shown(owner)}, which is listed here too; it is marked `x_harken_owner`"
    spot.doc.tell(spot.rule, f"tool_calls[{place}]", said, derived=True)
    return True


def _is_nested(spot: Spot) -> bool:
    """Whether a call of a sub-agent started it, and a main call has the same id only because each counts its own."""
    return bool(_nested_call(spot, spot.holder)[1]) or text(spot.holder, "parent_session_id") in _starters(spot)[1:]


def _nested_call(spot: Spot, started: Json) -> tuple[Json, str]:
    """The `Task` call in a sub-session that started another one, and the agent whose it is. Of several with that id it
    is the one that names it, else the one of its parent."""
    own, parent = text(started, "sub_session_id"), text(started, "parent_session_id")
    nested = spot.doc.once("nested", lambda: _nested(spot.doc.data))
    found = [(call, sub) for call, sub in nested.get(text(started, "triggered_by_call_id"), ()) if sub is not started]

    def fits(one: tuple[Json, Json]) -> tuple[bool, bool]:
        call, sub = one
        names = text(inner(call, "subagent_info"), "sub_session_id") == own
        return not (own and names), not (parent and text(sub, "sub_session_id") == parent)

    call, sub = min(found, key=fits, default=({}, {}))
    return call, text(inner(sub, "agent"), "agent_id")


def _nested(data: Json) -> dict[str, list[tuple[Json, Json]]]:
    """The id of a `Task` call in a sub-session to the calls that have it, each with its sub-session."""
    found: dict[str, list[tuple[Json, Json]]] = {}
    for sub in values(data.get("sub_sessions")):
        for call in values(sub.get("tool_calls")):
            if text(call, "tool_name") == TASK:
                found.setdefault(text(call, "call_id"), []).append((call, sub))
    return found


def _follow_call(spot: Spot) -> bool:
    """The call that it names is nowhere: the only one that names this sub-session started it."""
    own = text(spot.holder, "sub_session_id")
    names = spot.doc.once("namings", lambda: Counter(_named_subs(spot.doc.data)))
    _, by_sub = spot.doc.once("calls", lambda: _calls(spot.doc.data))
    name = text(by_sub.get(own, {}), "call_id") if own and names[own] == 1 else ""
    is_free = bool(name) and spot.doc.claim_id("trigger", name, lambda: ids_among(spot, "sub_sessions", spot.key))
    return is_free and spot.put(name, "the only call that names this sub-session", derived=True)


def _named_subs(data: Json) -> list[str]:
    lists = [data.get("tool_calls"), *(sub.get("tool_calls") for sub in values(data.get("sub_sessions")))]
    return [text(inner(call, "subagent_info"), "sub_session_id") for calls in lists for call in values(calls)]


def named_alone(spot: Spot) -> bool:
    """A call says of the agent that it started no more than the id of its sub-session."""
    if not isinstance(name := spot.value, str):
        return False
    _, by_sub = spot.doc.once("calls", lambda: _calls(spot.doc.data))
    started = text(
        spot.doc.once("subs by call", lambda: subs_by_call(spot.doc.data)).get(text(spot.holder, "call_id")),
        "sub_session_id",
    )
    is_named = by_sub.get(name) is spot.holder or name == started
    return is_named and spot.put({"sub_session_id": name}, "the text is its `sub_session_id`")


def unknown_sub(spot: Spot) -> bool:
    """A call names a sub-session that is not there: it is the only one that names the call, if there is one; else which
    it was is kept beside, where others are there."""
    subs = values(spot.doc.data.get("sub_sessions"))
    call: Any = spot.doc.data
    for step in path_steps(spot.path)[:-2]:
        call = call[step]
    own = [sub for sub in subs if text(sub, "triggered_by_call_id") == (text(call, "call_id") or None)]
    name = text(own[0], "sub_session_id") if len(own) == 1 else ""
    if name and name not in _named_subs(spot.doc.data):
        return spot.put(name, "the sub-session that names this call", derived=True)
    return bool(subs) and spot.set_aside("which is no sub-session here")


def sub_agent(spot: Spot) -> bool:
    if spot.value is not None:
        return agent(spot)
    for key in [key for key in spot.holder if plain_key(key) == "agent_id"]:
        if name := text(spot.holder, key):
            known = spot.doc.once("agents", lambda: agents(spot.doc.data))
            kind = agent_kind(spot.holder) or text(known.get(name), "agent_type") or type_in(name) or name
            return spot.put({"agent_id": name, "agent_type": kind}, f"as `{key}` says")
    kind = call_kind(trigger_of(spot, spot.holder))
    if worker := _worker(spot, spot.holder, kind):
        return spot.put(identifier(worker), "whom a message gives its task", derived=True)
    same = of_type(spot.doc, kind)
    return len(same) == 1 and spot.put(identifier(same[0]), f"the only {shown(kind)} that takes part", derived=True)


def sub_agent_id(spot: Spot) -> bool:
    """The id of an agent of which a sub-session says the type: whoever was given the task, else the only one."""
    sub = spot.doc.data["sub_sessions"][path_steps(spot.path)[1]]
    is_told = spot.value is not None or any(text(spot.holder, key) for key in ("id", "agent"))
    worker = {} if is_told else _worker(spot, sub, agent_kind(spot.holder))
    if worker:
        return spot.put(worker["agent_id"], "whom a message gives its task", derived=True)
    return agent_id(spot)


def _worker(spot: Spot, sub: Json, kind: str) -> Json:
    """The agent that was given the task of a sub-session, unless it is of another type; empty where nobody was."""
    workers = spot.doc.once("workers", lambda: task_workers(spot.doc.data))
    worker = workers.get(text(inner(sub, "task"), "task_id"), {})
    fits = identifier(worker).keys() >= {"agent_id", "agent_type"} and kind in ("", text(worker, "agent_type"))
    return worker if worker and fits else {}


def task(spot: Spot) -> bool:
    if isinstance(spot.value, str | list) and (words := words_in(spot.value)):
        return spot.put({"description": words}, "the text is its `description`")
    if spot.value is None and (words := words_beside(spot.holder)):
        return spot.put({"description": words}, "its words stood beside it")
    return spot.value is None and spot.put({}, "what is known of it stands in its call", derived=True)


def task_id(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(("id",), str):
        return True
    sub = spot.doc.data["sub_sessions"][path_steps(spot.path)[1]]
    if name := text(sub, "task_id"):
        return spot.put(name, "it stood beside the task")
    if name := task_id_of(sub):
        return spot.put(name, "as its output says", derived=True)
    meant = spot.doc.once("meant tasks", lambda: meant_tasks(spot.doc.data))
    if told := meant.get(int(path_steps(spot.path)[1])):
        return spot.put(told, "as messages call it, or its review", derived=True)
    name = spot.doc.free_id("task", "task-{:03}".format, lambda: _task_ids(spot.doc.data))
    return spot.put(name, "made from its place", derived=True)


def _task_ids(data: Json) -> list[Any]:
    """Those of sub-sessions, and those that messages are about: a made-up one is of nothing else."""
    return [*told_tasks(data), *(inner(one, "task").get("task_id") for one in values(data.get("sub_sessions")))]


def task_description(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(("task_description", "title", "prompt"), str):
        return True
    sub = spot.doc.data["sub_sessions"][path_steps(spot.path)[1]]
    if words := words_beside(sub):
        return spot.put(words, "it stood beside the task")
    given = inner(inner(trigger_of(spot, sub), "input"), "params")
    words = text(given, "prompt") or text(given, "description")
    return bool(words) and spot.put(words, "what its call asks", derived=True)


def priority(spot: Spot) -> bool:
    if word := known_word(spot.value, LEVELS):
        return spot.put(word, "the word that the standard has for it")
    beside = spot.doc.data["sub_sessions"][path_steps(spot.path)[1]].get("priority")
    if spot.value is None and (word := known_word(beside, LEVELS)):
        return spot.put(word, "it stood beside the task")
    why = "nobody said" if spot.value is None else "nobody knows what that means"
    return spot.put("medium", why, derived=True)


def sub_started(spot: Spot) -> bool:
    if spot.take_time(("created_at", "start_time", "start", "timestamp")):
        return True
    call = trigger_of(spot, spot.holder)
    return instant(call, "started_at") is not None and spot.put(call["started_at"], "when its call began", derived=True)


def sub_status(spot: Spot) -> bool:
    if status(spot) or spot.value is not None:
        return spot.value in STATUSES
    meant = spot.doc.once("meant statuses", lambda: meant_statuses(spot.doc.data))
    if word := meant.get(int(path_steps(spot.path)[1])):
        return spot.put(word, "as its output or its last message says", derived=True)
    word = known_status(inner(trigger_of(spot, spot.holder), "output").get("status"))
    return word is not None and spot.put(word, "as the output of its call says", derived=True)


def sub_output(spot: Spot) -> bool:
    if not isinstance(spot.value, str | list) or not (words := words_in(spot.value)):
        return False
    made = {"output_type": "generic", "summary": words}
    return spot.put(made, "the text is its `summary`")


def output_field(spot: Spot) -> bool:
    """What a sub-agent's output lacks and its sub-session says."""
    sub = spot.doc.data["sub_sessions"][path_steps(spot.path)[1]]
    if spot.key == "status":
        word = known_word(
            spot.value if spot.value is not None else sub.get("status"), ("completed", "partial", "failed")
        )
        return bool(word) and spot.put(word, "the word that the standard has for it", derived=spot.value is None)
    if spot.key == "task_id" and spot.value is None and (name := text(inner(sub, "task"), "task_id")):
        return spot.put(name, "the task of its sub-session", derived=True)
    if spot.key == "summary":
        return _output_summary(spot)
    if spot.key == "output_type" and spot.value is None:
        return spot.put("generic", "it is neither a developer's nor a reviewer's", derived=True)
    return False


def _output_summary(spot: Spot) -> bool:
    """What an output lacks that its call shows."""
    if spot.value is not None or spot.take(
        ("result", "response", "answer", "description", "message", "text", "content", "report"), str
    ):
        return isinstance(spot.value, str)
    sub = spot.doc.data["sub_sessions"][path_steps(spot.path)[1]]
    output = inner(trigger_of(spot, sub), "output")
    words = text(inner(output, "result"), "display") or text(output, "result")
    if words:
        return spot.put(words, "what its call gave", derived=True)
    return spot.take(("error", "reason"), str)


SUB: dict[str, Mender] = {
    "sub_session_id": sub_session_id,
    "parent_session_id": parent_session,
    "agent": sub_agent,
    "agent.agent_id": sub_agent_id,
    "triggered_by_call_id": trigger_id,
    "task": task,
    "task.task_id": task_id,
    "task.description": task_description,
    "task.priority": priority,
    "started_at": sub_started,
    "status": sub_status,
    "output": sub_output,
    "output.status": output_field,
    "output.task_id": output_field,
    "output.output_type": output_field,
    "output.summary": output_field,
    "tool_calls": sub_calls,
    **REVIEW,
}
BY_RULE: dict[str, Mender] = {
    "trigger": trigger_name,
    "unknown-sub-session": unknown_sub,
    "parent-session": parent_session,
    "unknown-agent": listed_agent,
    "finding-place": finding_place,
    "verification": check_flag,
    "unknown-finding": unknown_finding,
}
"""Rule about links to what mends it."""
