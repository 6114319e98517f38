"""`load_session`: the agents of a session log, brought back with their transcripts, their tree and their hooks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

from harken.errors import BadRequest
from harken.log import AgentInfo, Session
from harken.log.transcripts import entries_of_all

from .actions import remember
from .agent import Agent
from .hooks import POINTS, Hook, HookAgent, check_name
from .models import Model
from .patience import Patience
from .tools import Tool, ToolFunction
from .turns import Entry
from .watching import Watcher, instruct

_OF_THE_RECORD = frozenset({"event_type", "agent_id", "timestamp", "index", "api_id"})


class MissingHook(UserWarning):
    """A function hook that the session had, and that was not passed again."""


def load_session(
    session_file: str | os.PathLike[str],
    *,
    language_model: str | Model | None = None,
    system_prompt: str | None = None,
    tools: Iterable[ToolFunction | Tool] = (),
    hooks: Iterable[Hook | HookAgent] = (),
    patience: Patience | None = None,
    **options: Any,
) -> tuple[Agent, Session]:
    """The root agent with the tree below it, and its session; a file that does not exist is made.

    Agents and hook agents come back from the log. Functions live in the program: pass the tools and the function
    hooks again (a hook is known by its name; one that the log does not know is attached to the root). A model that
    is given stands for every agent. `options` are those of `Session`.
    """
    session = Session(session_file, **options)
    try:
        return Loader(session, language_model, list(tools), list(hooks), patience).load(system_prompt), session
    except BaseException:
        session.close()
        raise


class Loader:
    """Makes agents out of a session."""

    def __init__(
        self,
        session: Session,
        language_model: str | Model | None,
        tools: list[ToolFunction | Tool],
        hooks: list[Hook | HookAgent],
        patience: Patience | None,
    ) -> None:
        self.session = session
        self.language_model = language_model
        self.tools = tools
        self.hooks = {hook.name: hook for hook in hooks}
        self.patience = patience
        self._past: dict[str, list[Entry]] = {}
        self._spoken: dict[str, int] = {}

    def load(self, system_prompt: str | None) -> Agent:
        """The root; made where the session has none yet."""
        session = self.session
        session.reviver = self.revive
        root_id = session.root
        if root_id is None or session.agents[root_id].role == "hook":
            root = Agent(
                session,
                system_prompt,
                language_model=self.language_model,
                tools=self.tools,
                patience=self.patience,
            )
            with session.batch():
                root.create()
                for hook in self.hooks.values():
                    root.add_hook(hook)
            return root
        self._read(agent_id for agent_id, info in session.agents.items() if not info.terminated)
        root = self._agent(session.agents[root_id], None, "root")
        if system_prompt is not None and not root.transcript:
            root.instruct(system_prompt)
        self._grow(root)
        self._watch(root)
        self._past.clear()
        return root

    def revive(self, agent_id: str) -> Agent:
        """Any agent of the session, a terminated one too, as the log has it."""
        info = self.session.agents[agent_id]
        self._read([agent_id])
        parent = self.session.agent(info.parent) if info.parent in self.session.agents else None
        return self._agent(info, parent, info.role or "child")

    def _read(self, agent_ids: Iterable[str]) -> None:
        """Transcripts as they stand, and how much each agent has said, in one reading of the file."""
        wanted = set(agent_ids)

        def counted() -> Iterable[Entry]:
            for data in self.session.records():
                if data.get("role") == "assistant" and data.get("event_type") == "transcript_entry":
                    agent_id = str(data.get("agent_id"))
                    self._spoken[agent_id] = self._spoken.get(agent_id, 0) + 1
                yield data

        self._spoken = {}
        for agent_id, lines in entries_of_all(counted(), wanted).items():
            self._past[agent_id] = [
                {key: value for key, value in line.items() if key not in _OF_THE_RECORD} for line in lines
            ]

    def _agent(self, info: AgentInfo, parent: Agent | None, role: str) -> Agent:
        model = self.language_model or info.language_model or None
        agent = Agent(
            self.session,
            name=_usable(info.name),
            language_model=model,
            tools=self.tools,
            parent=parent,
            role=role,
            agent_id=info.agent_id,
            patience=self.patience,
        )
        agent.transcript = self._past.get(info.agent_id, [])
        agent.turns = self._spoken.get(info.agent_id, 0)
        return agent

    def _grow(self, root: Agent) -> None:
        """Hang the living agents below their parents; a loop or a lost parent in the file leaves an agent out."""
        children: dict[str | None, list[AgentInfo]] = {}
        for info in self.session.agents.values():
            if not info.terminated and info.role != "hook" and info.agent_id != root.agent_id:
                children.setdefault(info.parent, []).append(info)
        waiting = [root]
        while waiting:
            parent = waiting.pop()
            for info in children.pop(parent.agent_id, ()):
                child = self._agent(info, parent, "child")
                parent.subagents[child.name or child.agent_id] = child
                waiting.append(child)
            remember(parent, parent.transcript)

    def _watch(self, root: Agent) -> None:
        """Attach the hooks the log knows, then those it does not."""
        known: set[str] = set()
        for info in list(self.session.agents.values()):
            watched = self._watched(info, root)
            if watched is None:
                continue
            known.add(info.name)
            watcher = self._watcher(info, watched)
            if watcher is not None:
                watched.watchers.append(watcher)
            else:
                root.missing_hooks.append(info.name)
        for name, hook in self.hooks.items():
            if name not in known:
                root.add_hook(hook)
        if root.missing_hooks:
            names = ", ".join(repr(name) for name in root.missing_hooks)
            warnings.warn(
                MissingHook(f"the session had function hooks that were not passed again: {names}"), stacklevel=4
            )

    def _watched(self, info: AgentInfo, root: Agent) -> Agent | None:
        """The living agent a hook watches; None for what is no hook, or has nobody left to watch."""
        if info.role != "hook" or info.terminated:
            return None
        watches = info.attributes.get("watches", info.parent)
        found = self.session.agents.get(watches) if isinstance(watches, str) else None
        if found is None or found.terminated:
            return None
        living = self.session.agent(found.agent_id)
        return living if isinstance(living, Agent) else root

    def _watcher(self, info: AgentInfo, watched: Agent) -> Watcher | None:
        points = tuple(point for point in POINTS if point in info.attributes.get("points", ()))
        tree = info.attributes.get("tree") is not False
        if info.attributes.get("kind") == "function":
            passed = self.hooks.get(info.name)
            return Watcher(passed, info.agent_id, self.session) if isinstance(passed, Hook) else None
        agent = self._agent(info, watched, "hook")
        # A log of another program may not say where its hooks stand; reviewing is what all of them do.
        told = str(info.attributes.get("instructions", ""))
        hook = HookAgent(name=agent.label, points=points or ("finished",), instructions=told, tree=tree)
        instruct(agent, told, info.cause)
        return Watcher(hook, info.agent_id, self.session, agent)


def _usable(name: str) -> str | None:
    """A name from the log, if it can be one."""
    try:
        check_name(name)
    except BadRequest:
        return None
    return name
