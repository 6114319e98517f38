"""The living agents of one session: what they share, and how any of them is brought back from the log.

The log has everything but what lives in the program: models, tools and function hooks. These are kept here, so that
an agent that was evicted, or was never in this process, comes back whole when somebody asks for it. Agents refer to
each other by id through the pool, so there is never more than one of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import BadRequest, Conflict, NotFound
from harken.events import Metric
from harken.events.base import likeness
from harken.log import Session

from . import asking
from .actions import TOOLS
from .asking import Listener
from .entries import usable
from .hooks import Hook
from .limits import Ledger, Used
from .mcp import Connections
from .models import OPENERS, Model, Reply, Request, Retries, Usage, checked, open_model
from .reviving import Reviving
from .settings import Settings
from .side_by_side import PARALLEL
from .tools import Tool, Toolset

if TYPE_CHECKING:
    from .agent import Agent


class AgentPool:
    """The program's side of a session: its agents in memory, and what they share."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.models: dict[str, Model] = {}
        self.tools: dict[str, dict[str, Tool | Toolset]] = {}
        """The tools of each agent that was given its own in this process, by agent id."""
        self.offered: dict[str, Tool | Toolset] = {}
        """Every tool of the program, by name: the log knows the tools of an agent by their names."""
        self.servers: Connections | None = None
        """The servers among them, where there are any."""
        self.hooks: dict[str, Hook] = {}
        """The function hooks by name."""
        self.language_model: str | None = None
        """A model that stands for every agent, whatever the log says."""
        self.chosen: dict[str, str] = {}
        """The models that agents were given one by one in this process, by agent id; they come before all others."""
        self.made: set[str] = set()
        """The agents that were made in this process since the last load: these have the model they were logged with."""
        self.retries = Retries()
        self.parallel = PARALLEL
        """How many calls of one message work at a time."""
        self.window: int | None = None
        """How many tokens an agent may be shown before it makes room; None: as many as its model says it takes."""
        self.stream: Listener | None = None
        """Whoever is shown what models say while they say it."""
        self.missing: list[str] = []
        """Function hooks that the log knows and nobody has passed."""
        self.settings = Settings(self)
        self.is_plain = True
        """Whether no agent has settings, so that models are simply asked."""
        self.beside: dict[str, dict[str, Any]] = {}
        """What is to be logged on the line of each agent's next message."""
        self._ledger: Ledger | None = None
        self.unshown: dict[str, tuple[str, int]] = {}
        """What of each agent's message nobody was shown before it was whole."""
        self._living: dict[str, Agent] = {}
        self.reviving = Reviving(self)

    @classmethod
    def of(cls, session: Session) -> AgentPool:
        """The pool of a session; made when its first agent is."""
        if not isinstance(session, Session):
            raise BadRequest(
                f"an agent needs a session, and {session!r:.80} is none", hint="`Session(path)` makes one or opens it"
            )
        pool = session.extensions.get("agents")
        if not isinstance(pool, cls):
            pool = session.extensions["agents"] = cls(session)
            session.made_as = pool.made_as
        return pool

    def add(self, agent: Agent) -> None:
        """Remember a living agent, so that `get` gives back this one; there is never a second of its id."""
        if agent.agent_id in self._living:
            raise Conflict(f"agent {agent.agent_id!r} is in memory already", hint="`AgentPool.get` gives it")
        self._living[agent.agent_id] = agent

    def give_tools(self, agent_id: str, tools: dict[str, Tool | Toolset]) -> None:
        """Let an agent have these tools, and not those of its parent."""
        if taken := [ours.name for ours in TOOLS if tools.get(ours.name, ours) is not ours]:
            raise BadRequest(f"every agent has a tool {taken[0]!r} already", hint="give yours another name")
        self.tools[agent_id] = tools
        self.offered |= tools
        if any(isinstance(tool, Toolset) for tool in tools.values()):
            self.servers = self.servers or Connections()
            self.servers.take(self.session, tools.values())

    def made_as(self, agent_id: str) -> tuple[str | None, dict[str, Any]]:
        """What the log keeps of an agent that comes into being, whoever logs it: below whom it was made, and the tools
        it was given, unless it is the root, which has those of the program."""
        living, own = self._living.get(agent_id), self.tools.get(agent_id)
        tools = {} if own is None or self.session.root is None else {"tools": list(own)}
        return living.made_below if living is not None else None, tools | self.settings.made_with(agent_id)

    def tools_of(self, agent_id: str) -> dict[str, Tool | Toolset] | None:
        """The tools of its own that an agent has, given now or before a load; None: those of its parent."""
        if agent_id in self.tools:
            return self.tools[agent_id]
        info = self.session.agents.get(agent_id)
        names = info.attributes.get("tools") if info is not None else None
        if not isinstance(names, list):
            return None
        return {name: self.offered[name] for name in names if isinstance(name, str) and name in self.offered}

    def above(self, parent: Agent | str | None) -> str | None:
        """The id of the agent that a new one is made below; ids mean something only in their own session."""
        if parent is None:
            return None
        parent_id = parent if isinstance(parent, str) else parent.agent_id
        if not isinstance(parent, str) and parent.pool is not self:
            raise BadRequest(
                f"{parent.label} is an agent of another session and has nobody below it here",
                hint="make the agent below one of this session",
            )
        if parent_id not in self._living and parent_id not in self.session.agents:
            raise NotFound(f"no agent {parent_id!r} in {self.session.path}", hint="`session.agents` has every agent")
        return parent_id

    def take_hooks(self, hooks: Iterable[Hook]) -> None:
        """Know these functions, in place of others of their names; also where one of those watches an agent already."""
        self.hooks |= {hook.name: hook for hook in hooks}
        self.missing[:] = [name for name in self.missing if name not in self.hooks]
        for watcher in (watcher for agent in self._living.values() for watcher in agent.watchers):
            if isinstance(watcher.hook, Hook):
                watcher.hook = self.hooks.get(watcher.name, watcher.hook)

    def get(self, agent_id: str) -> Agent:
        """The agent of that id: the living one, or one brought back from the log."""
        if (living := self._living.get(agent_id)) is None:
            if agent_id not in self.session.agents:
                raise NotFound(f"no agent {agent_id!r} in {self.session.path}", hint="`session.agents` has every agent")
            living = self.reviving.revive(agent_id)
        return living

    def evict(self, agent_id: str) -> bool:
        """Free the memory an agent's transcript takes; whether there was any. The agent stays the object it is: whoever
        holds it, or asks for it again, has it as the log has it."""
        living = self._living.get(agent_id)
        return living is not None and living.evict()

    def check_name(self, name: str, *, below: str | None) -> None:
        """Refuse what cannot be a name, in the log or beside one that is not in the log yet."""
        self.session.check_name(name, below=below)
        for agent in self._living.values() if below is not None else ():
            if agent.info is None and agent.parent_id == below and likeness(agent.name or "") == likeness(name):
                raise BadRequest(
                    f"{self.get(below or '').label} already has a subagent {agent.name!r}",
                    hint="choose another name, or call the one that is there",
                )

    def take_model(self, model: str | Model) -> str:
        """The name of a model that is given by name or itself; one that is given itself is kept under its name."""
        name = model if isinstance(model, str) else getattr(model, "name", None)
        if not isinstance(name, str) or (model is not name and not callable(getattr(model, "complete", None))):
            raise BadRequest(
                f"a language_model is a name or a model, and {model!r:.80} is neither",
                hint="such as anthropic/claude-sonnet-4-5, or an object with `name` and `async complete(request)`",
            )
        if not isinstance(model, str):
            self.models[name] = model
        return name

    def model(self, name: str) -> Model:
        """A model by name, opened once."""
        if name not in self.models:
            openers = self.session.extensions.get(OPENERS)
            self.models[name] = open_model(name, near=Path(self.session.path).parent, openers=openers)
        return self.models[name]

    async def ask(self, agent: Agent, request: Request) -> Reply:
        """What the model of an agent replies; one that fails in passing is asked again, and each failure is logged.

        Whatever a model raises is its failure (`ModelError`), so that the turn stays open and can be resumed.
        """
        if not self.is_plain or (self.stream is not None and not request.purpose):
            return await asking.Asking(agent, request).answered()
        try:
            return checked(await agent.model.complete(request))
        except Exception as problem:  # noqa: BLE001  it is raised again where asking does not help
            return await asking.Asking(agent, request).answered(problem)

    def used(self, agent_id: str | None = None) -> Used:
        """What an agent and all below it have used; None: the session."""
        if self._ledger is None:
            self._ledger = Ledger(self.session)
        return self._ledger.of(agent_id)

    def meter(self, agent: Agent, reply: Reply, message_id: str | None) -> None:
        """Log what a reply cost, which model gave it and why it stopped, as far as the provider says."""
        if reply.usage is None and not (reply.model or reply.stop_reason):
            return
        usage = reply.usage or Usage()
        metric = Metric(
            agent_id=agent.agent_id,
            cause=message_id,
            cost_usd=usage.cost_usd,
            model=reply.model or agent.language_model,
            stop_reason=reply.stop_reason,
            api_id=reply.api_id,
        )
        self.session.append([metric.with_tokens(usage.tokens)])


class Subagents(Mapping[str, "Agent"]):
    """The agents below one agent, by name, as the log has them; the pool brings each back where it must."""

    def __init__(self, pool: AgentPool, agent_id: str) -> None:
        self._pool = pool
        self._agent_id = agent_id
        self.hidden = False
        """Whether they are left in the registry."""
        self._known: tuple[int, dict[str, str]] = (-1, {})

    def _ids(self) -> dict[str, str]:
        session = self._pool.session
        if self.hidden:
            return {}
        if self._known[0] != session.registry.moves:
            children = (info for info in session.children(self._agent_id) if info.role != "hook")
            found = {usable(info.name) or info.agent_id: info.agent_id for info in children}
            self._known = (session.registry.moves, found)
        return self._known[1]

    def __getitem__(self, name: str) -> Agent:
        return self._pool.get(self._ids()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids())

    def __len__(self) -> int:
        return len(self._ids())

    def __setitem__(self, name: str, agent: Agent) -> None:
        raise BadRequest(
            "an agent is not put below another by hand",
            hint="`agent.spawn(name, system_prompt)` makes it and logs where it came from",
        )

    def __delitem__(self, name: str) -> None:
        raise BadRequest("an agent is not taken away by hand", hint="`agent.subagents[name].terminate()` logs it")

    def __repr__(self) -> str:
        return f"Subagents({self._ids()!r})"
