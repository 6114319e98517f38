"""Several sub-sessions of one agent, as the document has them that a session was imported from: an agent is written as
one sub-session, unless that says which part of its work belongs to which."""

from __future__ import annotations

import msgspec

from harken.events import Event, Response, ToolCall, ToolResult
from harken.formats.std.document import Json
from harken.formats.std.parts import instant, over, text, values

from .spawning import SessionTree, SpawnedAgent


def by_sub_session(agent: SpawnedAgent) -> dict[str, list[Event]]:
    """An agent's events by the sub-session of the document that they are of. Records are named after theirs; what has
    another name belongs to what was told last, and what comes before all to the first."""
    names = {name for sub in agent.told if (name := text(sub, "sub_session_id"))}
    if len(names) < 2:
        return {"": agent.events}
    groups: dict[str, list[Event]] = {}
    before: list[Event] = []
    now = ""
    for event in agent.events:
        now = _scope(event.message_id, names) or now
        (groups.setdefault(now, []) if now else before).append(event)
    for group in groups.values():
        group[:0] = before
        before = []
    return groups or {"": before}


def _scope(record: str, names: set[str]) -> str:
    """The sub-session that a record is named after; empty for none. Names may hold a "/" themselves: the longest one
    that fits is meant."""
    end = record.rfind("/")
    while end > 0:
        if record[:end] in names:
            return record[:end]
        end = record.rfind("/", 0, end)
    return ""


def apart(tree: SessionTree) -> tuple[SessionTree, list[SpawnedAgent]]:
    """What is written as a sub-session each, in the order of the document: an agent, or one of the several that the
    document has of it. The tree has these as what calls have made."""
    calls, stands = _calls_by_id(tree), _places(tree)
    making, found = dict(tree.making), list[SpawnedAgent]()
    for agent in tree.agents.values():
        parts = [_settled(part, stands) for part in _parts(agent, calls, tree)]
        for part in parts:
            making[id(part.call)] = [part]
        found += parts or [agent]
    places = {text(sub, "sub_session_id"): place for place, sub in enumerate(values(tree.said.get("sub_sessions")))}
    if all(one.told_id in places for one in found):
        found.sort(key=lambda one: places[one.told_id])
    return msgspec.structs.replace(tree, making=making), found


def _calls_by_id(tree: SessionTree) -> dict[str, ToolCall | None]:
    """The calls of a session of a document; None where several have one id."""
    found: dict[str, ToolCall | None] = {}
    for event in tree.events if tree.said else ():
        if isinstance(event, ToolCall):
            found[event.id] = None if event.id in found else event
    return found


def _places(tree: SessionTree) -> dict[object, tuple[int, Event]]:
    """Where each event of a session of a document stands, by its identity, and by its call what answered that."""
    found: dict[object, tuple[int, Event]] = {}
    for place, event in enumerate(tree.events if tree.said else ()):
        found[id(event)] = (place, event)
        if isinstance(event, ToolResult) and event.id:
            found[event.agent_id, event.id] = (place, event)
    return found


def _settled(part: SpawnedAgent, places: dict[object, tuple[int, Event]]) -> SpawnedAgent:
    """How one of several sub-sessions ended, as far as what answered its call tells: it may have launched it only."""
    assert part.call is not None
    place, result = places.get((part.call.agent_id, part.call.id), (-1, None))
    last = max((places[id(event)][0] for event in part.events if id(event) in places), default=-1)
    if isinstance(result, ToolResult) and (result.is_error or last < place):
        part.result, part.finished, part.failed = result, True, result.is_error
    else:
        part.result, part.finished, part.failed = None, any(isinstance(one, Response) for one in part.events), False
    return part


def _parts(agent: SpawnedAgent, calls: dict[str, ToolCall | None], tree: SessionTree) -> list[SpawnedAgent]:
    """The agent as it is in each of its sub-sessions; nothing where it has one, or where it cannot be told which call
    began each of them."""
    groups = by_sub_session(agent)
    begun = [calls.get(text(sub, "triggered_by_call_id")) for sub in agent.told]
    is_clear = len(agent.told) > 1 and bool(agent.told_id) and len(agent.told_tasks) == len(agent.told)
    if not is_clear or len({id(call) for call in begun}) < len(begun) or len(groups) < len(agent.told):
        return []
    parts = []
    for sub, call, task in zip(agent.told, begun, agent.told_tasks, strict=True):
        if call is None or call.agent_id == agent.agent_id or any(one is not agent for one in tree.made_by(call)):
            return []
        parts.append(_part(agent, sub, call, task, groups.get(text(sub, "sub_session_id"), [])))
    return parts


def _part(agent: SpawnedAgent, sub: Json, call: ToolCall, task: str, events: list[Event]) -> SpawnedAgent:
    return msgspec.structs.replace(
        agent,
        parent=call.agent_id,
        call=call,
        is_call_told=True,
        events=events,
        started=instant(sub, "started_at"),
        ended=over(sub),
        told=[sub],
        told_id=text(sub, "sub_session_id"),
        told_tasks=[task],
        is_part=True,
    )
