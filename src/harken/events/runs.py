"""How the run went: what it cost, what failed, and what nobody could read."""

from __future__ import annotations

from typing import ClassVar

from .base import Event, Tokens

EMBEDDED = "embedded"
SO_FAR = "so_far"
AGENT = "agent"
AGENTS = "agents"
TOTAL = "total"
SEVERAL = "several"


class Metric(Event, frozen=True, kw_only=True, gc=False):
    """Tokens, cost and time, of one API message or of a whole run."""

    kind: ClassVar[str] = "metric"

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    """How much of what went into the cache is kept for an hour; the rest is for five minutes."""
    reasoning_tokens: int | None = None
    """How much of the output is reasoning."""
    cost_usd: float | None = None
    duration_seconds: float = 0.0
    turn_count: int = 0
    status: str = ""
    """How a run ended, and with that, that it did: `success`, `error_max_turns`, `error_during_execution`,
    `error_max_budget_usd`. The figures are then the run's own."""
    scope: str = ""
    """What else the figures are of than one request or a run that ended: `embedded`, a request that another agent's
    record tells of; `so_far`, everything the process has done until now; `agent`, a request of a sub-agent, as the
    stream of the agent that started it tells; `agents`, what the sub-agents of a process used together beyond what
    their requests told, of which the last report of a `request_id` stands; `total`, everything that the requests of
    this `api_id` used until now; `several`, what requests used together that nothing tells one by one."""
    model: str = ""
    """The model that answered."""
    stop_reason: str = ""
    """Why it stopped, in the provider's words: `stop`, `length`, `content_filter`, …"""
    served: str = ""
    """How it was served where that was not the standard way and has another price, in the provider's words: `batch`,
    `priority`, `fast`, `us`; several with a comma between."""
    request_id: str = ""
    """With `api_id` the key under which usage is counted once."""

    @property
    def request_key(self) -> tuple[str, str]:
        """By what its request is known: the API's message id and the request's id, or in a log of ours the message it
        brought about. Some providers give one id to several replies, or none; then the message tells them apart,
        within one log by its id and beyond it by its time."""
        if self.request_id or not isinstance(self.cause, str):
            return self.api_id, self.request_id
        if self.time is None:
            return self.api_id, self.cause
        return (self.api_id, f"{self.cause}@{self.time}") if self.api_id else (f"@{self.time}", self.cause)

    @property
    def ends_run(self) -> bool:
        """Whether a run is over; a running figure ends nothing."""
        return bool(self.status)

    @property
    def of_process(self) -> bool:
        """Whether the figures are those of a process, until now or as a whole. What it cost includes what its
        sub-agents cost."""
        return self.ends_run or self.scope == SO_FAR

    @property
    def tokens(self) -> Tokens:
        """The four counts as one value."""
        return Tokens(
            input=self.input_tokens,
            output=self.output_tokens,
            cache_read=self.cache_read_tokens,
            cache_write=self.cache_write_tokens,
        )

    def with_tokens(self, tokens: Tokens) -> Metric:
        """The same metric with these counts."""
        counted: Metric = self.replace(
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cache_read_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
        )
        return counted


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
