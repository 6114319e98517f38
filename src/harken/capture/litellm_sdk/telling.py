"""Calls that LiteLLM's callbacks tell of: which of what they tell belongs to which call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harken.clock import from_datetime, now

from .calls import LiteLLMCall, OpenCalls
from .draining import drain_threads, in_event_loop
from .replies import APIS

_MOST = 10_000


class ToldCalls:
    """The calls of one capture that its callbacks tell of."""

    def __init__(self, calls: OpenCalls) -> None:
        self._calls = calls
        self.open: dict[str, LiteLLMCall] = {}
        """Those whose reply was not told yet, by LiteLLM's id."""
        self._over: dict[str, None] = {}
        """Ids of the others; the newest of them."""
        self._since = now()

    def sending(self, call_id: str, kwargs: Mapping[str, Any]) -> None:
        """A request goes out, for the first time or again."""
        if (call := self._known(call_id, kwargs) or self._begin(call_id, kwargs)) is not None:
            call.attempts += 1
            call.problem = None

    def _known(self, call_id: str, kwargs: Mapping[str, Any]) -> LiteLLMCall | None:
        """The call of which this is another attempt. A router gives each attempt another id, and all one trace."""
        trace = str(kwargs.get("litellm_trace_id"))
        for known, call in list(self.open.items()):
            if known == call_id or (call.problem is not None and call.trace == trace):
                self.open[call_id] = self.open.pop(known)
                return call
        return None

    def _begin(self, call_id: str, kwargs: Mapping[str, Any]) -> LiteLLMCall | None:
        """A call that is new; what failed before it was not tried again."""
        messages = kwargs.get("messages")
        if not in_event_loop():
            drain_threads(lambda: not self.is_behind(messages), 1.0)
        for known, call in list(self.open.items()):
            if call.problem is not None or call.is_before(messages):
                del self.open[known]
                call.give_up()
        api = APIS.get(str(kwargs.get("call_type")))
        if api is None:
            return None
        asked = kwargs.get("optional_params")
        given = {**(asked if isinstance(asked, Mapping) else {}), "model": _model(kwargs), api.given: messages}
        new = self._calls.begin(api, given)
        if new is not None:
            new.trace = str(kwargs.get("litellm_trace_id"))
            self.open[call_id] = new
        return new

    def is_behind(self, messages: Any) -> bool:
        """Whether messages go on behind a call whose reply was not told yet."""
        return any(call.is_before(messages) for call in list(self.open.values()))

    def answered(self, call_id: str, kwargs: Mapping[str, Any], response: Any) -> None:
        """A reply came. One that a cache had, or that the host made up, was never sent for."""
        if call_id in self._over:
            return
        call = self._known(call_id, kwargs)
        if call is None and self._is_new(kwargs.get("start_time")):
            call = self._begin(call_id, kwargs)
        if call is not None:
            remember(self._over, call_id, None)
            self.open.pop(call_id, None)
            call.answered(response, kwargs)

    def _is_new(self, started: Any) -> bool:
        """Whether a call was made since this listens: reports of earlier ones may come late."""
        return isinstance(started, datetime) and from_datetime(started.astimezone(UTC)) >= self._since

    def failed(self, call_id: str, problem: object) -> None:
        """An attempt failed; there may be another."""
        if (call := self.open.get(call_id)) is not None:
            call.problem = problem if isinstance(problem, BaseException) else Exception(str(problem))

    def close(self) -> None:
        """Nothing more is told."""
        while self.open:
            self.open.popitem()[1].give_up()


def remember(known: dict[str, Any], call_id: str, call: Any) -> None:
    """Keep a call, and forget the oldest of very many."""
    known[call_id] = call
    while len(known) > _MOST:
        del known[next(iter(known))]


def _model(kwargs: Mapping[str, Any]) -> str:
    """The model as it was asked for: LiteLLM keeps the provider apart."""
    model, provider = str(kwargs.get("model") or ""), kwargs.get("custom_llm_provider")
    return f"{provider}/{model}" if provider and not model.startswith(f"{provider}/") else model
