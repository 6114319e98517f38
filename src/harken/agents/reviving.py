"""How an agent is brought back from the log: its transcript, what it did in all, and who watches it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from harken.errors import BadRequest
from harken.log import AgentInfo, Session
from harken.log.transcripts import entries_of_all

from .actions import DISCUSS
from .entries import Entry, as_entry, call_arguments, call_name, calls_of, usable
from .hooks import recalled
from .settings import NAMES
from .watching import Watcher, instruct

if TYPE_CHECKING:
    from .agent import Agent
    from .pool import AgentPool


class History:
    """One agent's past, one record at a time."""

    def __init__(self) -> None:
        self.spoken = 0
        """How many messages it has produced."""
        self.speakers: list[str] | None = None
        self.listeners: list[str] | None = None
        self._open: dict[str, tuple[int, str]] = {}
        self.settings: dict[str, Any] = {}
        """Changes of its settings, the last of each."""
        self._asked = self._seated = 0  # how many discussions were asked for, and which of them gave the two lists

    def take(self, data: Entry) -> None:
        """Take in one record of this agent."""
        role = data.get("role")
        if role == "assistant":
            if not data.get("index"):
                self.spoken += 1
            for call in calls_of(data):
                self._open.pop(call["id"], None)  # a provider may use a call id twice
                if call_name(call) == DISCUSS.name:
                    self._asked += 1
                    self._open[call["id"]] = (self._asked, call_arguments(call))
        elif role == "tool":
            self._answered(data)
        elif data.get("event_type") == "system" and data.get("subtype") in NAMES:
            self.settings[data["subtype"]] = data.get("metadata")

    def _answered(self, data: Entry) -> None:
        call_id = data.get("tool_call_id")
        number, arguments = self._open.pop(call_id, (0, "")) if isinstance(call_id, str) else (0, "")
        if number <= self._seated or data.get("is_error"):
            return  # side by side, a later discussion may be over first
        with contextlib.suppress(BadRequest):
            seats = DISCUSS.bind(arguments)
            self._seated = number
            self.speakers = seats["speakers"] or self.speakers
            self.listeners = self.listeners if seats["listeners"] is None else seats["listeners"]

    def forget(self, name: str) -> None:
        """A subagent has left the tree; another of its name is another."""
        for names in (self.speakers, self.listeners):
            if names is not None:
                names[:] = [one for one in names if one != name]


class Reviving:
    """What brings the agents of a pool back."""

    def __init__(self, pool: AgentPool) -> None:
        self.pool = pool
        self.session = pool.session
        self._hooks: dict[str, list[AgentInfo]] | None = None
        self._past: dict[str, list[Entry]] = {}
        self._history: dict[str, History] = {}

    @contextlib.contextmanager
    def bringing_back_many(self, agent_ids: Iterable[str]) -> Iterator[None]:
        """Read the file and the registry once for all of them."""
        self.read(agent_ids)
        self._hooks = _hooks(self.session)
        try:
            yield
        finally:
            self._hooks = None
            self._past.clear()
            self._history.clear()

    def read(self, agent_ids: Iterable[str]) -> None:
        """Take transcripts as they stand, and what each agent did in all, from one reading of the file."""
        wanted = set(agent_ids)
        self._history |= {agent_id: History() for agent_id in wanted}
        for agent_id, lines in entries_of_all(self._observed(wanted), wanted).items():
            self._past[agent_id] = [as_entry(line) for line in lines]

    def _observed(self, wanted: set[str]) -> Iterator[Entry]:
        """Every record of these agents, each shown to the history of its agent on the way; that a subagent was
        terminated is part of it."""
        gone_ids = [info.agent_id for info in self.session.agents.values() if info.terminated and info.parent in wanted]
        for data in self.session.records_of({*wanted, *gone_ids}):
            agent_id = data.get("agent_id")
            if isinstance(agent_id, str) and agent_id in wanted:
                self._history[agent_id].take(data)
            if data.get("event_type") == "agent_terminated":
                gone = self.session.agents.get(str(agent_id))
                if gone is not None and gone.parent in wanted:
                    self._history[str(gone.parent)].forget(usable(gone.name) or gone.agent_id)
            yield data

    def past(self, agent_id: str) -> tuple[list[Entry], int]:
        """An agent's transcript as the log has it now, and how many messages it has produced."""
        self.read([agent_id])
        return self._past.pop(agent_id), self._history.pop(agent_id).spoken

    def revive(self, agent_id: str) -> Agent:
        """Any agent of the session, a terminated one too, as the log has it."""
        from .agent import Agent

        if agent_id not in self._past:
            self.read([agent_id])
        history = self._history.pop(agent_id)
        self.pool.settings.recall(agent_id, history.settings)
        agent = Agent(self.session, init_prompt=self._past.pop(agent_id), agent_id=agent_id)
        agent.turns = history.spoken
        if agent.is_terminated or agent.role == "hook":
            return agent
        info = self.session.agents[agent_id]
        instructions = info.attributes.get("instructions")
        if isinstance(instructions, str) and not info.entries and not self.session.readonly:
            agent.instruct(instructions, cause=info.cause)  # a crash came between the line that made it and the next
        agent.speakers = history.speakers
        agent.listeners = history.listeners
        for names in (agent.speakers, agent.listeners):
            if names is not None:
                names[:] = [name for name in names if name in agent.subagents]
        hooks = _hooks(self.session) if self._hooks is None else self._hooks
        agent.watchers.extend(self._watchers(hooks.get(agent_id, ())))
        return agent

    def _watchers(self, hooks: Iterable[AgentInfo]) -> Iterator[Watcher]:
        for info in hooks:
            watcher = self._watcher(info)
            if watcher.is_absent and info.name not in self.pool.missing:
                self.pool.missing.append(info.name)
            yield watcher

    def _watcher(self, info: AgentInfo) -> Watcher:
        if info.attributes.get("kind") == "function":
            name = (usable(info.name) or info.agent_id).strip()
            hook = self.pool.hooks.get(info.name) or recalled(name, info.attributes)
        else:
            agent = self.pool.get(info.agent_id)
            hook = recalled(agent.label.strip(), info.attributes)
            instruct(agent, str(info.attributes.get("instructions", "")), info.cause)
        return Watcher(hook, info.agent_id, self.pool, past=self._answered(info.agent_id))

    def _answered(self, hook_id: str) -> Iterator[Entry]:
        """All a hook was asked and answered, folded or not: a verdict stands, even where the hook has forgotten it."""
        lines = (line for line in self.session.records_of([hook_id]) if line.get("event_type") != "transcript_edit")
        return map(as_entry, entries_of_all(lines, [hook_id])[hook_id])


def _hooks(session: Session) -> dict[str, list[AgentInfo]]:
    """Who is watched by whom; the terminated left out."""
    found: dict[str, list[AgentInfo]] = {}
    for info in session.agents.values():
        watched = info.attributes.get("watches", info.parent)
        if info.role == "hook" and not info.terminated and isinstance(watched, str):
            found.setdefault(watched, []).append(info)
    return found
