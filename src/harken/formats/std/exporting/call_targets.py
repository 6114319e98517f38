"""Calls that speak to an agent, or of one: what is sent to it later, and what stops it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from harken.events import ToolCall
from harken.events.base import holds
from harken.formats.std.arguments import params_of

from .session_links import SessionLinks
from .spawning import SpawnedAgent

_SENDING = ("agent", "task", "message", "send", "input", "team", "terminate")
"""What is in the names of tools that speak to an agent, or of one."""


class CallTargets:
    """Calls by the agents that they name."""

    def __init__(self, links: SessionLinks) -> None:
        self._by_agent: dict[str, list[tuple[int, ToolCall]]] = {}
        names: dict[str, list[str]] = {}
        for agent in links.tree.agents.values():
            for name in {agent.agent_id, agent.name}:
                names.setdefault(name, []).append(agent.agent_id)
        for place, event in enumerate(links.tree.events):
            if isinstance(event, ToolCall) and any(word in event.name.lower() for word in _SENDING):
                for named in _named(event, names):
                    self._by_agent.setdefault(named, []).append((place, event))

    def of(self, agent: str) -> list[tuple[int, ToolCall]]:
        """The calls that name an agent, in order."""
        return self._by_agent.get(agent, [])

    def sent(self, agent: SpawnedAgent, words: str, place: int) -> ToolCall | None:
        """The call that sent the agent these words: one of the last before it heard them."""
        words = words.strip()
        calls = self.of(agent.agent_id)
        end = bisect_left(calls, place, key=lambda item: item[0])
        for _, call in reversed(calls[max(0, end - 16) : end]):
            if call.agent_id != agent.agent_id and words and holds(call.input.decode("utf-8", "replace"), words):
                return call
        return None


def _named(call: ToolCall, names: dict[str, list[str]]) -> Iterator[str]:
    """The agents whose ids or names stand among the arguments; a name that several have names nobody."""
    found: dict[str, None] = {}
    for value in params_of(call.input).values():
        for word in value if isinstance(value, list) else (value,):
            if isinstance(word, str) and len(agents := names.get(word, [])) == 1:
                found.setdefault(agents[0])
    yield from found
