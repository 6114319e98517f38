"""The living agents of one session: what they share, and how any of them is brought back from the log.

The log has everything but what lives in the program: models, tools and function hooks. These are kept here, so that
an agent that was evicted, or was never in this process, comes back whole when somebody asks for it. Agents refer to
each other by id through the pool, so there is never more than one of each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harken.errors import BadRequest, NotFound
from harken.events.verdicts import POINTS
from harken.log import AgentInfo, Session
from harken.log.transcripts import entries_of_all

from .actions import DISCUSS
from .entries import Entry, as_entry, call_arguments, call_name, calls_of
from .hooks import Hook, HookAgent, check_name
from .models import Model, Retries, open_model
from .tools import Tool
from .watching import Watcher, instruct

if TYPE_CHECKING:
    from .agent import Agent


MODEL = "model"
"""The subtype of the `system` event that gives an agent another model; its message is the name."""


class History:
    """One agent's past, one record at a time."""

    def __init__(self) -> None:
        self.spoken = 0
        """How many messages it has produced."""
        self.speakers: list[str] | None = None
        self.listeners: list[str] | None = None
        self.model = ""
        """The model it was given last; empty where it kept the one it was made with."""
        self._open: dict[str, str] = {}

    def take(self, data: Entry) -> None:
        """Take in one record of this agent."""
        role = data.get("role")
        if role == "assistant":
            if not data.get("index"):
                self.spoken += 1
            for call in calls_of(data):
                self._open.pop(call["id"], None)  # a provider may use a call id twice
                if call_name(call) == DISCUSS.name:
                    self._open[call["id"]] = call_arguments(call)
        elif role == "tool":
            self._answered(data)
        elif data.get("event_type") == "system" and data.get("subtype") == MODEL:
            self.model = str(data.get("message") or "")

    def _answered(self, data: Entry) -> None:
        call_id = data.get("tool_call_id")
        arguments = self._open.pop(call_id, None) if isinstance(call_id, str) else None
        if arguments is None or data.get("is_error"):
            return
        with contextlib.suppress(BadRequest):
            seats = DISCUSS.bind(arguments)
            self.speakers = seats["speakers"] or self.speakers
            self.listeners = self.listeners if seats["listeners"] is None else seats["listeners"]

    def forget(self, name: str) -> None:
        """A subagent has left the tree; another of its name is another."""
        for names in (self.speakers, self.listeners):
            if names is not None:
                names[:] = [one for one in names if one != name]


class AgentPool:
    """The program's side of a session: its agents in memory, and what they share."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.models: dict[str, Model] = {}
        self.tools: dict[str, dict[str, Tool]] = {}
        """The tools of each agent that is not content with those of its parent, by agent id."""
        self.hooks: dict[str, Hook] = {}
        """The function hooks by name."""
        self.language_model: str | None = None
        """A model that stands for every agent, whatever the log says."""
        self.chosen: dict[str, str] = {}
        """The models that agents were given one by one in this process, by agent id; they come before all others."""
        self.retries = Retries()
        self.window: int | None = None
        """How many tokens an agent may be shown before it makes room; None: as many as its model says it takes."""
        self.missing: list[str] = []
        """Function hooks that the log knows and nobody has passed."""
        self._living: dict[str, Agent] = {}
        self._relations: Relations | None = None
        self._past: dict[str, list[Entry]] = {}
        self._history: dict[str, History] = {}

    @classmethod
    def of(cls, session: Session) -> AgentPool:
        """The pool of a session; made when its first agent is."""
        pool = session.extensions.get("agents")
        if not isinstance(pool, cls):
            pool = session.extensions["agents"] = cls(session)
        return pool

    def add(self, agent: Agent) -> None:
        """Remember a living agent, so that `get` gives back this one."""
        self._living[agent.agent_id] = agent

    def get(self, agent_id: str) -> Agent:
        """The agent of that id: the living one, or one brought back from the log."""
        if (living := self._living.get(agent_id)) is None:
            if agent_id not in self.session.agents:
                raise NotFound(f"no agent {agent_id!r} in {self.session.path}", hint="`session.agents` has every agent")
            living = self._living[agent_id] = self.revive(agent_id)
        return living

    def evict(self, agent_id: str) -> bool:
        """Forget an agent in memory; the log has all of it. Whether there was one."""
        return self._living.pop(agent_id, None) is not None

    def model(self, name: str) -> Model:
        """A model by name, opened once."""
        if name not in self.models:
            self.models[name] = open_model(name, near=Path(self.session.path).parent)
        return self.models[name]

    # -- bringing agents back ---

    @contextlib.contextmanager
    def bringing_back_many(self, agent_ids: Iterable[str]) -> Iterator[None]:
        """Read the file and the registry once for all of them."""
        self.read(agent_ids)
        self._relations = Relations(self.session)
        try:
            yield
        finally:
            self._relations = None
            self._past.clear()
            self._history.clear()

    def read(self, agent_ids: Iterable[str]) -> None:
        """Take transcripts as they stand, and what each agent did in all, from one reading of the file."""
        wanted = set(agent_ids)
        self._history |= {agent_id: History() for agent_id in wanted}
        for agent_id, lines in entries_of_all(self._observed(wanted), wanted).items():
            self._past[agent_id] = [as_entry(line) for line in lines]

    def _observed(self, wanted: set[str]) -> Iterator[Entry]:
        """Every record, each shown to the history of its agent on the way."""
        for data in self.session.records():
            agent_id = data.get("agent_id")
            if isinstance(agent_id, str) and agent_id in wanted:
                self._history[agent_id].take(data)
            if data.get("event_type") == "agent_terminated":
                gone = self.session.agents.get(str(agent_id))
                if gone is not None and gone.parent in wanted:
                    self._history[str(gone.parent)].forget(usable(gone.name) or gone.agent_id)
            yield data

    def revive(self, agent_id: str) -> Agent:
        """Any agent of the session, a terminated one too, as the log has it."""
        from .agent import Agent

        info = self.session.agents[agent_id]
        if agent_id not in self._past:
            self.read([agent_id])
        history = self._history.pop(agent_id)
        parent = info.parent if info.parent in self.session.agents else None
        agent = Agent(
            self.session,
            init_prompt=self._past.pop(agent_id),
            name=usable(info.name),
            language_model=self._model_of(info, history),
            parent=parent,
            role=info.role or ("root" if agent_id == self.session.root else "child"),
            agent_id=agent_id,
        )
        agent.turns = history.spoken
        if info.terminated or agent.role == "hook":
            return agent
        relations = self._relations or Relations(self.session)
        for child in relations.children.get(agent_id, ()):
            agent.subagents.add(usable(child.name) or child.agent_id, child.agent_id)
        agent.speakers = history.speakers
        agent.listeners = history.listeners
        for names in (agent.speakers, agent.listeners):
            if names is not None:
                names[:] = [name for name in names if name in agent.subagents]
        agent.watchers.extend(self._watchers(relations.hooks.get(agent_id, ())))
        return agent

    def _model_of(self, info: AgentInfo, history: History) -> str | None:
        return self.chosen.get(info.agent_id) or self.language_model or history.model or info.language_model or None

    def _watchers(self, hooks: Iterable[AgentInfo]) -> Iterator[Watcher]:
        for info in hooks:
            watcher = self._watcher(info)
            if watcher is not None:
                yield watcher
            elif info.name not in self.missing:
                self.missing.append(info.name)

    def _watcher(self, info: AgentInfo) -> Watcher | None:
        if info.attributes.get("kind") == "function":
            hook = self.hooks.get(info.name)
            if hook is None:
                return None
            if info.agent_id not in self._past:
                self.read([info.agent_id])
            self._history.pop(info.agent_id)
            return Watcher(hook, info.agent_id, self, past=self._past.pop(info.agent_id))
        agent = self.get(info.agent_id)
        told = str(info.attributes.get("instructions", ""))
        instruct(agent, told, info.cause)
        points = tuple(point for point in POINTS if point in info.attributes.get("points", ()))
        # A log of another program may not say where its hooks stand; reviewing is what all of them do.
        seen = HookAgent(
            name=agent.label,
            points=points or ("finished",),
            instructions=told,
            tree=info.attributes.get("tree") is not False,
        )
        return Watcher(seen, info.agent_id, self, past=agent.transcript)


class Relations:
    """Who hangs below whom, and who is watched by whom; the terminated left out."""

    def __init__(self, session: Session) -> None:
        self.children: dict[str, list[AgentInfo]] = {}
        self.hooks: dict[str, list[AgentInfo]] = {}
        for info in session.agents.values():
            if info.terminated:
                continue
            if info.role != "hook":
                above, place = info.parent, self.children
            else:
                above, place = info.attributes.get("watches", info.parent), self.hooks
            if isinstance(above, str):
                place.setdefault(above, []).append(info)


class Subagents(Mapping[str, "Agent"]):
    """The agents below one agent, by name; each is looked up in the pool, which brings it back where it must."""

    def __init__(self, pool: AgentPool) -> None:
        self._pool = pool
        self._ids: dict[str, str] = {}

    def __getitem__(self, name: str) -> Agent:
        return self._pool.get(self._ids[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __setitem__(self, name: str, agent: Agent) -> None:
        raise BadRequest(
            "an agent is not put below another by hand",
            hint="`agent.spawn(name, system_prompt)` makes it and logs where it came from",
        )

    def __delitem__(self, name: str) -> None:
        raise BadRequest("an agent is not taken away by hand", hint="`agent.subagents[name].terminate()` logs it")

    def add(self, name: str, agent_id: str) -> None:
        """Put an agent under a name."""
        self._ids[name] = agent_id

    def remove(self, name: str) -> None:
        """Take a name away, if it is there."""
        self._ids.pop(name, None)

    def clear(self) -> None:
        """Take all names away."""
        self._ids.clear()

    def __repr__(self) -> str:
        return f"Subagents({self._ids!r})"


def usable(name: str) -> str | None:
    """A name from the log, if it can be one."""
    try:
        check_name(name)
    except BadRequest:
        return None
    return name
