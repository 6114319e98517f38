"""Rules about ids and links: each id is there once, and whatever names something names what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.formats.std.document import Document, Json
from harken.formats.std.findings import DocumentFinding
from harken.formats.std.models import TASK
from harken.formats.std.parts import call_owners, inner, objects, text, values

from .rule_table import found
from .schema import shown

Named = dict[str, tuple[str, Json]]
"""An id to the first thing that has it, with its path."""


def link_findings(document: Document) -> Iterator[DocumentFinding]:
    """What is wrong with ids, and with links between calls, sub-sessions and annotations."""
    data = document.data
    calls = _named(objects(data.get("tool_calls")), "tool_calls", "call_id")
    subs = _named(objects(data.get("sub_sessions")), "sub_sessions", "sub_session_id")
    yield from _repeated_ids(data)
    if document.kind == "std-008" and data.get("sub_sessions") == [] and data.get("status") != "in_progress":
        yield found("no-sub-session", "sub_sessions", "a multi-agent session has at least one sub-session")
    yield from _triggers(data, calls, subs)
    yield from _task_calls(data, subs, is_multi=document.kind == "std-008" or data.get("collaboration") is not None)
    yield from _parents(data, subs)
    yield from _sub_agents(data)
    yield from _ranges(data)


def _named(items: Iterable[tuple[int, Json]], path: str, key: str) -> Named:
    found: Named = {}
    for place, item in items:
        if name := text(item, key):
            found.setdefault(name, (f"{path}[{place}]", item))
    return found


# -- ids ---------------------------------------------------------------------------------------------------------------


def _repeated_ids(data: Json) -> Iterator[DocumentFinding]:
    yield from _repeated(_call_ids(data), "call")
    for name, key, noun in (
        ("sub_sessions", "sub_session_id", "sub-session"),
        ("messages", "message_id", "message"),
        ("phase_annotations", "annotation_id", "annotation"),
    ):
        yield from _repeated(_ids(objects(data.get(name)), name, key), noun)
    for place, sub in objects(data.get("sub_sessions")):
        path, output = f"sub_sessions[{place}].output", inner(sub, "output")
        yield from _repeated(_ids(objects(output.get("findings")), f"{path}.findings", "finding_id"), "finding")
        changes = objects(output.get("required_changes"))
        yield from _repeated(_ids(changes, f"{path}.required_changes", "change_id"), "change")
    yield from _repeated_tasks(data)
    yield from _repeated_agents(data)


def _ids(items: Iterable[tuple[int, Json]], path: str, key: str) -> Iterator[tuple[str, str]]:
    for place, item in items:
        if name := text(item, key):
            yield name, f"{path}[{place}].{key}"


def _call_ids(data: Json) -> Iterator[tuple[str, str]]:
    """The ids of all calls; one of a sub-agent that is listed among the main calls too counts once."""
    own = ((place, call) for place, call in objects(data.get("tool_calls")) if not call.get("x_harken_owner"))
    yield from _ids(own, "tool_calls", "call_id")
    for place, sub in objects(data.get("sub_sessions")):
        yield from _ids(objects(sub.get("tool_calls")), f"sub_sessions[{place}].tool_calls", "call_id")


def _repeated(ids: Iterable[tuple[str, str]], noun: str) -> Iterator[DocumentFinding]:
    seen: dict[str, str] = {}
    for name, path in ids:
        if (first := seen.setdefault(name, path)) != path:
            yield found("duplicate-id", path, f"{shown(name)} is the id of another {noun} too, at {first}")


def _repeated_tasks(data: Json) -> Iterator[DocumentFinding]:
    """A task may be attempted twice, but then `task_id` no longer tells which sub-session is meant."""
    seen: dict[str, str] = {}
    for place, sub in objects(data.get("sub_sessions")):
        path = f"sub_sessions[{place}].task.task_id"
        if (name := text(inner(sub, "task"), "task_id")) and (first := seen.setdefault(name, path)) != path:
            yield found("repeated-task", path, f"{shown(name)} is the task of another sub-session too, at {first}")


def _repeated_agents(data: Json) -> Iterator[DocumentFinding]:
    seen: dict[tuple[str, str], int] = {}
    for place, agent in objects(inner(data, "collaboration").get("participants")):
        key = text(agent, "agent_id"), text(agent, "instance_id")
        if key[0] and seen.setdefault(key, place) != place:
            path = f"collaboration.participants[{place}].agent_id"
            yield found("repeated-agent", path, f"{shown(key[0])} is listed before, at participants[{seen[key]}]")


# -- calls and sub-sessions --------------------------------------------------------------------------------------------


def _triggers(data: Json, calls: Named, subs: Named) -> Iterator[DocumentFinding]:
    """§6.2: every sub-session was started by a Task call; and that call names it."""
    named_by_calls = {text(inner(call, "subagent_info"), "sub_session_id") for _, call in calls.values()}
    for place, sub in objects(data.get("sub_sessions")):
        path, name = f"sub_sessions[{place}].triggered_by_call_id", text(sub, "triggered_by_call_id")
        if not name:
            continue
        if name not in calls:
            yield found(
                "trigger", path, f"`triggered_by_call_id` is {shown(name)}; no call of `tool_calls` has that id"
            )
            continue
        where, call = calls[name]
        if call.get("tool_name") != TASK:
            tool = shown(call.get("tool_name"))
            yield found("trigger", path, f"{shown(name)} at {where} is a call of {tool}; only {TASK} starts sub-agents")
            continue
        named = text(inner(call, "subagent_info"), "sub_session_id")
        if not named:
            message = f"the call {shown(name)} at {where} does not name it in `subagent_info.sub_session_id`"
            yield found("link-one-way", path, message)
        elif named in subs and text(sub, "sub_session_id") not in named_by_calls:  # else it is told of the other call
            message = f"the call {shown(name)} at {where} names another sub-session, {shown(named)}"
            yield found("links-disagree", path, message)


def _task_calls(data: Json, subs: Named, *, is_multi: bool) -> Iterator[DocumentFinding]:
    """§6.2: the sub-session that a Task call names is there; and that one names the call. Calls in sub-sessions too."""
    triggers = {text(sub, "triggered_by_call_id") for sub in values(data.get("sub_sessions"))}
    lists = [("tool_calls", data.get("tool_calls"))]
    lists += [
        (f"sub_sessions[{place}].tool_calls", sub.get("tool_calls")) for place, sub in objects(data.get("sub_sessions"))
    ]
    for name, calls in lists:
        for place, call in objects(calls):
            if "subagent_info" in call or call.get("tool_name") == TASK:
                yield from _task_call(call, f"{name}[{place}]", subs, triggers, is_multi and name == "tool_calls")


def _task_call(call: Json, path: str, subs: Named, triggers: set[str], is_main: bool) -> Iterator[DocumentFinding]:
    name, own = text(inner(call, "subagent_info"), "sub_session_id"), text(call, "call_id")
    link = f"{path}.subagent_info.sub_session_id"
    if not name:
        if is_main and call.get("tool_name") == TASK and own not in triggers:
            yield found("task-without-sub-session", path, f"the {TASK} call {shown(own)} has no sub-session")
    elif name not in subs:
        yield found("unknown-sub-session", link, f"`sub_session_id` is {shown(name)}; no sub-session has that id")
    elif (trigger := text(subs[name][1], "triggered_by_call_id")) and own and trigger != own:
        message = f"the call {shown(own)} names {shown(name)} at {subs[name][0]}, which names the call {shown(trigger)}"
        yield found("links-disagree", link, message)


def _parents(data: Json, subs: Named) -> Iterator[DocumentFinding]:
    """The parent is the session, or for a nested sub-session the one whose agent started it."""
    session = text(data, "session_id")
    owners = call_owners(data, {text(sub, "triggered_by_call_id") for sub in values(data.get("sub_sessions"))})
    circles = _in_circles({name: text(sub, "parent_session_id") for name, (_, sub) in subs.items()})
    for place, sub in objects(data.get("sub_sessions")):
        path, parent = f"sub_sessions[{place}].parent_session_id", text(sub, "parent_session_id")
        own, trigger = text(sub, "sub_session_id"), text(sub, "triggered_by_call_id")
        starters = [name for name in owners.get(trigger, ()) if name != own]
        if not parent or not session:
            continue
        if starters and starters != [session] and parent not in starters:
            message = f"`parent_session_id` is {shown(parent)}; the call that started it is one of {shown(starters[0])}"
            yield found("parent-session", path, message)
        elif parent == own or (parent != session and parent not in subs):
            message = f"`parent_session_id` is {shown(parent)}; it must be {shown(session)} or another sub-session"
            yield found("parent-session", path, message)
        elif own in circles:
            message = f"`parent_session_id` is {shown(parent)}; from parent to parent that leads back to {shown(own)}"
            yield found("parent-session", path, message)


def _in_circles(parents: dict[str, str]) -> set[str]:
    """The sub-sessions that one comes back to on the way from parent to parent."""
    seen, circles = set[str](), set[str]()
    for first in parents:
        name, way = first, dict[str, int]()
        while name in parents and name not in seen:
            seen.add(name)
            way[name] = len(way)
            name = parents[name]
        if name in way:
            circles.update(one for one, place in way.items() if place >= way[name])
    return circles


def _sub_agents(data: Json) -> Iterator[DocumentFinding]:
    """Whoever has a sub-session took part."""
    collaboration = inner(data, "collaboration")
    if not isinstance(collaboration.get("participants"), list):
        return
    types = listed_types(data)
    for place, sub in objects(data.get("sub_sessions")):
        agent, path = inner(sub, "agent"), f"sub_sessions[{place}].agent"
        name = text(agent, "agent_id")
        if name and name not in types:
            message = f"{shown(name)} is not among `collaboration.participants`"
            yield found("unlisted-agent", f"{path}.agent_id", message)
        yield from other_type(agent, types, path)


def listed_types(data: Json) -> dict[str, str]:
    """The type of each agent that `collaboration` lists, by its id."""
    collaboration = inner(data, "collaboration")
    types: dict[str, str] = {}
    for agent in (inner(collaboration, "orchestrator"), *values(collaboration.get("participants"))):
        if name := text(agent, "agent_id"):
            types.setdefault(name, text(agent, "agent_type"))
    return types


def other_type(agent: Json, types: dict[str, str], path: str) -> Iterator[DocumentFinding]:
    """An agent has one type throughout the document."""
    kind, listed = text(agent, "agent_type"), types.get(text(agent, "agent_id"), "")
    if kind and listed and kind != listed:
        message = f"{shown(agent['agent_id'])} is of type {shown(kind)} here, but {shown(listed)} in `collaboration`"
        yield found("agent-type", f"{path}.agent_type", message)


# -- annotations -------------------------------------------------------------------------------------------------------


def _ranges(data: Json) -> Iterator[DocumentFinding]:
    """Both ends of an annotation are calls, and the first is not behind the last."""
    places = {text(call, "call_id"): place for place, call in objects(data.get("tool_calls"))}
    for place, annotation in objects(data.get("phase_annotations")):
        path, span = f"phase_annotations[{place}].tool_call_range", inner(annotation, "tool_call_range")
        ends = [(key, text(span, key)) for key in ("start_call_id", "end_call_id")]
        for key, name in ends:
            if name and name not in places:
                yield found(
                    "range-call", f"{path}.{key}", f"`{key}` is {shown(name)}; no call of `tool_calls` has that id"
                )
        start, end = (places.get(name) if name else None for _, name in ends)
        if start is not None and end is not None and start > end:
            yield found("range-order", path, f"{shown(ends[0][1])} comes after {shown(ends[1][1])}")
