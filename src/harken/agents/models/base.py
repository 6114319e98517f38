"""What a language model is to us: something that is handed a request and gives back a reply.

A model remembers nothing. Whatever it needs to answer is in the request, so that an agent revived from the log in
another process gets the same answer from a script as it would have got before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from harken.events import Tokens

Message = dict[str, Any]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply cost, as the provider counts it."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a model may know when it is asked for the next message."""

    messages: list[Message]
    """The transcript in the shape providers take."""
    tools: list[Message] = []
    """The tools on offer, as JSON schema."""
    agent_id: str = ""
    path: tuple[str, ...] = ()
    """Names from the root down to this agent; the root is `root` unless it has a name."""
    turn: int = 0
    """How many messages this agent has produced so far, compacted ones included."""

    @property
    def name(self) -> str:
        """The name of the agent that asks."""
        return self.path[-1] if self.path else ""

    def last_heard(self) -> str:
        """The last thing the agent was told, by a user message or by a tool."""
        for message in reversed(self.messages):
            if message.get("role") in ("user", "tool"):
                return str(message.get("content") or "")
        return ""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The next message: words, tool calls or both."""

    content: str | None = None
    tool_calls: tuple[Message, ...] = ()
    thinking: str = ""
    usage: Usage | None = None


class Model(Protocol):
    """Anything that answers a request."""

    @property
    def name(self) -> str:
        """What the log calls it; `open_model` makes the same model from it again."""
        ...

    async def complete(self, request: Request) -> Reply:
        """The next message; `ModelError` where there is none."""
        ...


class ModelError(Exception):
    """A model did not answer; `retryable` says whether asking again may help."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


def tool_call(call_id: str, name: str, arguments: str) -> Message:
    """A tool call in the shape it has in a transcript."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a model that fails is asked again, and after how many seconds: bounded, and longer each time."""

    attempts: int = 5
    first: float = 1.0
    factor: float = 2.0
    longest: float = 60.0

    def pauses(self) -> Iterator[float]:
        """The pause after each failed attempt but the last."""
        pause = self.first
        for _ in range(self.attempts - 1):
            yield min(pause, self.longest)
            pause *= self.factor


RATIO = 4.0
"""Characters per token until a provider has counted."""
_LEARNING = 0.3


NEAR = 0.8
"""How full a model's window may get before the agent makes room."""


class Gauge:
    """How many tokens a transcript will cost: its characters, by a ratio learned from what the provider counted."""

    def __init__(self) -> None:
        self.ratio: float | None = None

    def learn(self, messages: list[Message], counted: int) -> None:
        """The provider counted this many tokens in these messages."""
        if counted > 0:
            seen = _characters(messages) / counted
            self.ratio = seen if self.ratio is None else (1 - _LEARNING) * self.ratio + _LEARNING * seen

    def is_full(self, messages: list[Message], window: int | None) -> bool:
        """Whether the messages nearly fill a model's window; one that nobody knows is never full."""
        return bool(window) and self.tokens(messages) >= NEAR * (window or 0)

    def tokens(self, messages: list[Message]) -> int:
        """What the messages will cost, nearly."""
        return int(_characters(messages) / max(self.ratio or RATIO, 0.1)) + 1


def _characters(messages: list[Message]) -> int:
    return sum(
        len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or "")) for message in messages
    )
