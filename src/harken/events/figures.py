"""The numbers of a session, as they are handed out."""

from __future__ import annotations

import msgspec

from .base import Tokens


class Prompts(msgspec.Struct, kw_only=True):
    """What stood in the user's place, by record."""

    human: int = 0
    """A person wrote it."""
    injected: int = 0
    """Another agent or the harness put it there."""
    tool_result: int = 0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a session, or of several: what `import` reports and `stats` prints."""

    usage: Tokens = Tokens()
    prompts: Prompts = msgspec.field(default_factory=Prompts)
    injected: dict[str, int] = {}
    """Injected prompts by what they are."""
    tools: dict[str, int] = {}
    """Calls by the tool's name, the most frequent first."""
    responses: int = 0
    errors: int = 0
    compactions: int = 0
    requests: int = 0
    """Requests whose usage is known, each once."""
    models: dict[str, Tokens] = {}
    """Usage by model, where it is known per request."""
    cost_usd_micros: int | None = None
    started: int | None = None
    ended: int | None = None
