"""What agents were given beyond words: options and limits, as the log has them and as this program has changed them.

What an agent was made with is in `attributes` of its `agent_created`; a change is a notice (`system`) with the name of
the setting as its subtype. What an agent was not given it has from its parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from harken.events import System

from .limits import LIMITS, SESSION_LIMITS, RunLimits
from .options import OPTIONS, PLAIN, ModelOptions, read_options

if TYPE_CHECKING:
    from .agent import Agent
    from .core import AgentCore
    from .pool import AgentPool

NAMES = frozenset({OPTIONS, LIMITS, SESSION_LIMITS})
"""The settings there are."""


class Settings:
    """The settings of the agents of one session."""

    def __init__(self, pool: AgentPool) -> None:
        self.pool = pool
        self.trusted: set[str] = set()
        """Addresses that this program has named."""
        self._given: dict[tuple[str, str], dict[str, Any]] = {}

    def give(self, agent_id: str, name: str, value: ModelOptions | RunLimits) -> None:
        """Let an agent have this, in this program; whoever logs its creation logs it too."""
        if isinstance(value, ModelOptions) and value.fallbacks:
            names = tuple(self.pool.take_model(model) for model in value.fallbacks)
            value = msgspec.structs.replace(value, fallbacks=names)
        self._given[agent_id, name] = msgspec.to_builtins(value)
        self.pool.is_plain = False
        if isinstance(value, ModelOptions) and value.api_base is not None:
            self.trusted.add(value.api_base)

    def recall(self, agent_id: str, changes: dict[str, Any]) -> None:
        """What the log says of an agent that is brought back: what it was made with, and the changes since."""
        info = self.pool.session.agents.get(agent_id)
        made = info.attributes if info is not None else {}
        for name in NAMES:
            value = changes.get(name, made.get(name))
            if isinstance(value, dict) and (agent_id, name) not in self._given:
                self._given[agent_id, name] = value
                self.pool.is_plain = False

    def made_with(self, agent_id: str) -> dict[str, Any]:
        """What the line that makes an agent says of its settings."""
        return {name: value for (one, name), value in self._given.items() if one == agent_id}

    def change(self, agent: Agent, name: str, value: ModelOptions | RunLimits) -> None:
        """Let an agent have this from here on, and log it where the log says something else."""
        known = self._given.get((agent.agent_id, name), {})
        self.give(agent.agent_id, name, value)
        if agent.info is not None and known != (now := self._given[agent.agent_id, name]):
            data = orjson.dumps(now)
            self.pool.session.append([System(agent_id=agent.agent_id, subtype=name, metadata=data)])

    def of(self, agent_id: str, name: str) -> dict[str, Any] | None:
        """What an agent itself was given."""
        return self._given.get((agent_id, name))

    def options(self, agent: AgentCore) -> ModelOptions:
        """How the model of an agent is asked: as it was given, else as that of the agent above, or that it watches."""
        own, above = read_options(self.of(agent.agent_id, OPTIONS)), agent.parent
        if own is not None or above is None:
            return own or PLAIN
        if agent.role == "hook":
            return self.options(above).for_hook(same_model=agent.language_model == above.language_model)
        return self.options(above).below()
