"""How the run went: what it cost, what failed, and what nobody could read."""

from __future__ import annotations

from typing import ClassVar

from .base import Event


class Metric(Event, frozen=True, kw_only=True, gc=False):
    """Tokens, cost and time, of one API message or of a whole run."""

    kind: ClassVar[str] = "metric"

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    duration_seconds: float = 0.0
    turn_count: int = 0
    status: str = ""
    """`success`, `error_max_turns`, `error_during_execution`, `error_max_budget_usd`, or empty."""
    model: str = ""
    request_id: str = ""
    """With `api_id` the key under which usage is counted once."""


class Error(Event, frozen=True, kw_only=True, gc=False):
    """The runtime or the provider reported a failure."""

    kind: ClassVar[str] = "error"

    message: str = ""


class Output(Event, frozen=True, kw_only=True, gc=False):
    """A record kept as it is, because it is not conversation or because nobody could read it."""

    kind: ClassVar[str] = "output"

    raw: bytes = b""
    why: str = ""
    """The reason it could not be read; empty where it was understood and is simply not conversation."""
    media_type: str = ""
    """What `raw` is, where it is not JSON text (`application/cbor`)."""
