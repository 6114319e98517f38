"""Who hears a message of a document, also where it names several agents or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harken.events.base import named

from .document import Json
from .json_text import compact

EVERYBODY = ("all", "All", "ALL", "*", "everyone", "everybody", "team", "broadcast", "所有人", "全体", "大家")
"""Words that name no agent, where none is called so."""
_MOST_HEARD = 16_000_000
"""Bytes of messages to several agents, once for each that hears one: a small document must not become gigabytes."""


def id_of(value: object) -> str:
    """An id: text, or a whole number as its digits; empty for anything else."""
    if isinstance(value, str):
        return named(value)
    return str(value) if type(value) is int and abs(value) < 1 << 63 else ""


def agent_named(holder: object, key: str) -> str:
    """The id of the agent that an object names under a key; a text there is the id itself, as a repair takes it."""
    agent = holder.get(key) if isinstance(holder, dict) else None
    return id_of(agent.get("agent_id") if isinstance(agent, dict) else agent)


class Hearers:
    """Who hears each message of a document. The standard has one hearer; a list names each of them, and a word for
    everybody, unless somebody is called so, means all that are known but the sender.

    A small document can name many agents and say much to all of them: each hearing is an event and a line in a chain,
    so that only so much is heard, the first messages first."""

    def __init__(self, known: Sequence[str], messages: Iterable[Any], brought: Mapping[int, int] | None = None) -> None:
        """`brought` is how much a message brings beside its own words, by the `id` of the message."""
        self._known = [agent for agent in known if agent]
        self._called = frozenset(known)
        self._unheard: set[int] = set()
        left = _MOST_HEARD
        for message in messages:
            if isinstance(message, dict) and (count := self._count(message)) > 1:
                size = count * (len(compact(message)) + (brought or {}).get(id(message), 0))
                if size > left:
                    self._unheard.add(id(message))
                else:
                    left -= size

    def of(self, message: Json) -> list[str]:
        """The agents that hear a message; none where it is too much for all of them."""
        return [] if id(message) in self._unheard else self._named(message)

    def too_many(self, message: Json) -> int:
        """How many should have heard a message that is too much for all of them; else 0."""
        return self._count(message) if id(message) in self._unheard else 0

    def _count(self, message: Json) -> int:
        if self._is_for_everybody(message):
            return len(self._known) - (agent_named(message, "from_agent") in self._called)
        return len(self._named(message))

    def _named(self, message: Json) -> list[str]:
        if self._is_for_everybody(message):
            sender = agent_named(message, "from_agent")
            return [agent for agent in self._known if agent != sender]
        return _names(message)

    def _is_for_everybody(self, message: Json) -> bool:
        return any(name in EVERYBODY and name not in self._called for name in _names(message))


def _names(message: Json) -> list[str]:
    """The hearers that a message names, each once."""
    named = message.get("to_agent")
    each = named if isinstance(named, list) else [named]
    return list(dict.fromkeys(filter(None, (agent_named({"to": one}, "to") for one in each))))
