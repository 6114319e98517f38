"""Who made whom in a session: the tree of its agents, with the calls that made them and what came back from each.

It is told by links alone, so that it is the same for every runtime: an `agent_created` names the record that asked for
the agent, a result its call, and what brings an agent's words to its maker names these words as its substance or among
its causes. A notice without words (a background agent that failed) names the call or the agent in its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import msgspec

from harken.events import AgentCreated, Event, Metric, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.formats.std.arguments import params_of
from harken.formats.std.beside import agent_beside, beside_among
from harken.formats.std.checking.links import listed_types
from harken.formats.std.document import Json
from harken.formats.std.meant_tasks import told_tasks
from harken.formats.std.parts import task_id_of, text
from harken.formats.std.skeleton import skeleton_among, subs_by_agent
from harken.formats.std.spellings import session_status

from .making import SeenEvents

_NOTICES = frozenset({"task_notification", "subagent_notification"})
_NAMED = re.compile(r"<(?:tool-use-id|task-id)>([^<]{1,200})</|\"(?:agent_path|agent_id)\"\s*:\s*\"([^\"]{1,200})\"")
_STATUS = re.compile(
    r"<status>(failed|killed|error|errored|cancelled)</status>|\"status\"\s*:\s*\{[^{}]{0,300}?\"(?:errored|failed)\""
)
MAIN_TYPE = "architect"
"""The type of the agent that began a session: the standard's migration calls it so."""
OTHER_TYPE = "agent"
"""The type of an agent of which nobody says one."""
_TYPES = ("subagent_type", "agent_type", "agent_role", "role")
"""Arguments of a call that say what type of agent it makes."""


class SpawnedAgent(msgspec.Struct, kw_only=True):
    """An agent that did not begin the session."""

    number: int = 0
    """From 1, in the order of their making."""
    agent_id: str
    name: str
    agent_type: str = ""
    """What the runtime calls its type; empty where nobody says."""
    parent: str = ""
    """The agent that made it; the main agent where that is not told."""
    created: AgentCreated | None = None
    call: ToolCall | None = None
    """The call that made it; None where the program did."""
    is_call_told: bool = True
    """Whether something names that call; else it is only the one that it can have been."""
    result: ToolResult | None = None
    """What answers that call: the agent's answer, or that it was launched."""
    answered: bool = False
    """Whether the result brings words of the agent."""
    notices: list[Prompt | ToolResult] = []
    """What else brought its maker an answer, in order."""
    task: Prompt | None = None
    """What it was given to do."""
    events: list[Event] = []
    """Its own, in order."""
    started: int | None = None
    ended: int | None = None
    """When its answer came, or when it did something for the last time; None where that is not known."""
    failed: bool = False
    """Whether its call was answered with an error, or its notice says that it failed."""
    finished: bool = False
    """Whether it has come to an end: its answer came, or the last thing that it did was to say something."""
    launched: bool = False
    """Whether its call did not wait for it."""
    told: list[Json] = []
    """Its sub-sessions as the document has them that the session was imported from."""
    told_id: str = ""
    """What that calls the first of them, where nothing else is called so."""
    told_tasks: list[str] = []
    """What that calls the tasks of each."""
    is_part: bool = False
    """Whether it is one of several sub-sessions that the agent has."""

    @property
    def identifier(self) -> dict[str, str]:
        """Who it is, as a document has it."""
        return {"agent_id": self.agent_id, "agent_type": self.agent_type or OTHER_TYPE}

    @property
    def sub_session_id(self) -> str:
        """What its sub-session is called in a document."""
        return self.told_id or f"sub-{self.number:03}"

    @property
    def task_id(self) -> str:
        """What the task that it was made for is called in a document."""
        return self.told_tasks[0] if self.told_tasks else f"task-{self.number:03}"

    @property
    def notice(self) -> Prompt | ToolResult | None:
        """What brought the answer of an agent whose call only launched it."""
        return None if self.answered or not self.notices else self.notices[0]

    @property
    def is_hook(self) -> bool:
        """Whether it watches others."""
        return self.created is not None and self.created.role == "hook"

    @property
    def is_recorded(self) -> bool:
        """Whether the session has anything of what it said, heard and did; else others only speak of it."""
        return self.created is not None or any(not isinstance(event, Metric | Output) for event in self.events)

    @property
    def words(self) -> list[Response]:
        """What it said."""
        return [event for event in self.events if isinstance(event, Response) and event.content.strip()]


class SessionTree(msgspec.Struct, kw_only=True):
    """The agents of a session."""

    main: str
    """The agent that began it."""
    agents: dict[str, SpawnedAgent]
    """The others, in the order of their making."""
    events: list[Event]
    """Everything, in order."""
    main_events: list[Event]
    """Its own, those of the session as a whole, and what helpers of the program used."""
    main_created: AgentCreated | None
    owners: dict[str, str]
    """Message id to the agent whose record it is."""
    making: dict[int, list[SpawnedAgent]] = {}
    """The identity of a call's event to those that it made: ids of calls may be missing, or be there twice."""
    said: Json = {}
    """What the document said that the session was imported from, beside what the events tell."""
    beside: Json = {}
    """The fields of that document which no event tells."""

    def own(self, agent: str) -> list[Event]:
        """What one agent said, heard and did; nothing for one that is not there."""
        if agent == self.main:
            return self.main_events
        return self.agents[agent].events if agent in self.agents else []

    def identifier(self, agent: str) -> dict[str, str]:
        """Who an agent is, as a document has it; the types that nobody told are `MAIN_TYPE` and `OTHER_TYPE`."""
        if agent in self.agents:
            return self.agents[agent].identifier
        return {"agent_id": self.main or self._nameless(), "agent_type": self.main_type or MAIN_TYPE}

    @property
    def main_type(self) -> str:
        """What the session says of the main agent's type; empty where it says nothing."""
        told = params_of(self.main_created.attributes).get("agent_type") if self.main_created else None
        return told if isinstance(told, str) else ""

    def _nameless(self) -> str:
        """What the main agent is called where it has no name."""
        name = "main"
        while name in self.agents:
            name += "-agent"
        return name

    def made_by(self, call: ToolCall) -> list[SpawnedAgent]:
        """The agents that a call made."""
        return self.making.get(id(call), [])


def session_tree(events: Iterable[Event], *, as_said: bool = True) -> SessionTree:
    """The agents of a session, from its events in order: those of `context.iter_session`, of a log, or of a file. With
    `as_said`, one that was imported from a document has the names which that gave."""
    held = list(events)
    seen = SeenEvents(held)
    main = seen.main()
    others = [agent_id for agent_id in seen.others(main) if not seen.is_helper(agent_id)]
    tree = SessionTree(
        main=main,
        agents={},
        events=held,
        main_events=[event for event in held if event.agent_id not in others],
        main_created=seen.created.get(main),
        owners=seen.owners,
    )
    for agent_id in others:
        _add(tree, _agent(agent_id, seen, main))
    said = skeleton_among(tree.main_events)
    tree.beside = beside_among(tree.main_events)
    # An agent without a call may be the one that such a call made; and a document lists all agents that there are.
    is_whole = not said and all(agent.call or agent.is_hook for agent in tree.agents.values())
    for agent_id, call in seen.unrecorded(tree.making) if is_whole else ():
        _add(tree, _unrecorded(agent_id, call, seen, main))
    _number(tree)
    _cut_circles(tree)
    _add_notices(tree)
    for agent in tree.agents.values():
        _settle(agent, seen)
        if agent.call is not None and not agent.agent_type:
            agent.agent_type = text(agent_beside(tree.beside, agent.call.message_id), "subagent_type")
    if as_said and said:
        tree.said = said
        _name_as_told(tree)
    return tree


def _add(tree: SessionTree, agent: SpawnedAgent) -> None:
    tree.agents[agent.agent_id] = agent
    if agent.call is not None:
        tree.making.setdefault(id(agent.call), []).append(agent)


def _number(tree: SessionTree) -> None:
    """The order in which agents were made: that in which they are told of. One of which nothing but its call is kept
    stands before the first whose call came later."""
    place = {id(event): at for at, event in enumerate(tree.events)}
    made = {name: place[id(agent.call or agent.events[0])] for name, agent in tree.agents.items()}
    waiting = sorted(
        (name for name, agent in tree.agents.items() if not agent.events), key=made.__getitem__, reverse=True
    )
    ordered: list[str] = []
    for name in (name for name, agent in tree.agents.items() if agent.events):
        while waiting and made[waiting[-1]] < made[name]:
            ordered.append(waiting.pop())
        ordered.append(name)
    tree.agents = {name: tree.agents[name] for name in (*ordered, *reversed(waiting))}
    for number, agent in enumerate(tree.agents.values(), 1):
        agent.number = number


def _unrecorded(agent_id: str, call: ToolCall, seen: SeenEvents, main: str) -> SpawnedAgent:
    """An agent of which only the call that made it and the answer are kept."""
    agent = SpawnedAgent(
        agent_id=agent_id,
        name=agent_id,
        parent=seen.maker(agent_id, call, main),
        call=call,
        result=seen.results[call.agent_id, call.id],
        events=[],
        notices=[],
    )
    agent.agent_type = _type_of(agent)
    return agent


def _agent(agent_id: str, seen: SeenEvents, main: str) -> SpawnedAgent:
    created, call = seen.created.get(agent_id), seen.making(agent_id)
    agent = SpawnedAgent(
        agent_id=agent_id,
        name=(created.name if created else "") or agent_id,
        parent=seen.maker(agent_id, call, main),
        created=created,
        call=call,
        result=seen.results.get((call.agent_id, call.id)) if call and call.id else None,
        events=seen.own[agent_id],
        notices=[],
    )
    agent.is_call_told = agent_id not in seen.guessed
    agent.agent_type = _type_of(agent)
    agent.task = None if agent.is_hook else _task(agent, seen)
    return agent


def _type_of(agent: SpawnedAgent) -> str:
    """What its call says, else what the agent's own file says at its head, else that it is a hook."""
    told = [params_of(agent.call.input)] if agent.call else []
    told += [params_of(agent.created.attributes)] if agent.created else []
    heads = [event for event in agent.events[:8] if isinstance(event, System) and event.subtype == "init"]
    for head in heads:
        params = params_of(head.metadata)
        told += [params, *_nested(params.get("source"))]
    for params in told:
        for name in _TYPES:
            if isinstance(value := params.get(name), str) and value.strip():
                return value
    return "hook" if agent.is_hook else ""


def _nested(value: object, depth: int = 3) -> list[dict[str, Any]]:
    if not isinstance(value, dict) or not depth:
        return []
    return [value, *(found for part in value.values() for found in _nested(part, depth - 1))]


def _task(agent: SpawnedAgent, seen: SeenEvents) -> Prompt | None:
    """The prompt that the call brought about; else the first that is no notice of the runtime."""
    record = agent.call.message_id if agent.call else ""
    given: Prompt | None = None
    for event in agent.events:
        if not isinstance(event, Prompt):
            continue
        piece = seen.pieces.get(event.substance or "")
        if record and (record in event.causes() or (piece is not None and record in piece.causes())):
            return event
        if given is None and (event.source != "injected" or event.origin in ("", "agent")):
            given = event
    return given


def _name_as_told(tree: SessionTree) -> None:
    """Agents, sub-sessions and tasks are called as in the document that the session was imported from: sub-sessions
    unless two would have one name. Tasks keep theirs, since messages name them; two sub-sessions may be about one."""
    subs, types = subs_by_agent(tree.said), listed_types(tree.said)
    agents = list(tree.agents.values())
    for agent in agents:
        agent.told = subs.get(agent.agent_id, [])
        agent.agent_type = types.get(agent.agent_id) or agent.agent_type
        if agent.call is None and agent.told and (word := session_status(agent.told[-1].get("status"))):
            agent.failed = word == "failed"  # nobody else says how it went
    ids = [text(agent.told[0], "sub_session_id") if agent.told else "" for agent in agents]
    taken = {text(sub, "sub_session_id") for own in subs.values() for sub in own}
    others = (name for number in count(1) if (name := f"sub-{number:03}") not in taken)
    ids = [name or next(others) for name in ids]
    if len(ids) == len(set(ids)):
        for name, agent in zip(ids, agents, strict=True):
            agent.told_id = name
    tasks = [[task_id_of(sub) for sub in agent.told] or [""] for agent in agents]
    taken = {*(name for own in tasks for name in own), *told_tasks(tree.said)}
    free = (name for number in count(1) if (name := f"task-{number:03}") not in taken)
    tasks = [[name or next(free) for name in own] for own in tasks]  # as a repair does
    for own, agent in zip(tasks, agents, strict=True):
        agent.told_tasks = own


def _cut_circles(tree: SessionTree) -> None:
    """Agents that made each other hang from the main one, by no call: that is one of an agent that they made."""
    safe = {tree.main}
    for start in tree.agents:
        way: dict[str, None] = {}
        at = start
        while at not in safe and at not in way:
            way[at] = None
            at = tree.agents[at].parent
        if at in way:
            agent = tree.agents[at]
            if agent.call is not None:
                tree.making[id(agent.call)].remove(agent)
            agent.parent, agent.call, agent.result = tree.main, None, None
        safe.update(way)


def _add_notices(tree: SessionTree) -> None:
    """Everything that brought words of an agent, or news of it, to its maker. What a hook says is no answer."""
    working = {agent.agent_id for agent in tree.agents.values() if not agent.is_hook}
    said = {
        event.message_id: event.agent_id
        for event in tree.events
        if isinstance(event, Response) and event.agent_id in working and event.message_id
    }
    by_name = {name: agent for agent in tree.agents.values() for name in _names(agent)}
    for event in tree.events:
        if not isinstance(event, Prompt | ToolResult):
            continue
        found = [tree.agents[one] for one in dict.fromkeys(said[link] for link in _links(event) if link in said)]
        if not found and isinstance(event, Prompt) and event.origin in _NOTICES:
            told = dict.fromkeys(one or other for one, other in _NAMED.findall(event.content[:10_000]))
            found = list({agent.agent_id: agent for name in told if (agent := by_name.get(name))}.values())
        for agent in found:
            if event is agent.result:
                agent.answered = True
            elif event.agent_id == agent.parent:
                agent.notices.append(event)


def _links(event: Event) -> tuple[str, ...]:
    return (event.substance,) if event.substance else event.causes()


def _names(agent: SpawnedAgent) -> Iterator[str]:
    yield agent.agent_id
    if agent.call is not None and agent.call.id:
        yield agent.call.id


def _settle(agent: SpawnedAgent, seen: SeenEvents) -> None:
    """When it began and ended, and how."""
    times = [event.time for event in agent.events if event.time is not None]
    agent.started = min(times) if times else agent.call.time if agent.call else None
    agent.launched = agent.result is not None and not agent.answered and (bool(agent.notices) or _goes_on(agent, seen))
    came = agent.notice or (None if agent.launched else agent.result)
    agent.finished = came is not None or _is_at_rest(agent.events)
    agent.failed = came is not None and is_failure(came)
    last = max(times, default=None)
    agent.ended = max((time for time in (last, came.time if came else None) if time is not None), default=None)


def _goes_on(agent: SpawnedAgent, seen: SeenEvents) -> bool:
    """Whether the agent worked on after its call had been answered. A call that failed launched nobody: its agent may
    still be told so, and say what it has to say."""
    if agent.result is None or agent.result.is_error:
        return False
    return seen.last.get(agent.agent_id, -1) > seen.place[id(agent.result)]


def _is_at_rest(events: list[Event]) -> bool:
    """Whether the last thing that an agent did is to have said something."""
    for event in reversed(events):
        if isinstance(event, Response):
            return True
        if isinstance(event, ToolCall | ToolResult | Prompt):
            return False
    return False


def is_failure(event: Prompt | ToolResult) -> bool:
    """Whether what came back says that the agent failed."""
    if isinstance(event, ToolResult) and event.is_error:
        return True
    return isinstance(event, Prompt) and _STATUS.search(event.content[:10_000]) is not None
