"""Tokens and money, counted once.

A message's figures stand in several records, are copied by forks and embedded by progress records. They belong to the
(API message id, request id), and the record with the largest output stands. A run's own total, where the runtime
gives one, stands over the sum of its messages if it is the larger: while a message streams its output is not known.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.events import Event, Metric

SYNTHETIC = "<synthetic>"
EMBEDDED = "embedded"
"""The status of a metric that belongs to another agent's message and was only seen from outside."""
MICROS = 1_000_000


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, and what they cost in millionths of a dollar."""

    input: int = 0
    """Without what came from the cache."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd_micros: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            cost_usd_micros=self.cost_usd_micros + other.cost_usd_micros,
        )


def usage(events: Iterable[Event]) -> Usage:
    """What all the messages among the events cost, each once."""
    counter = UsageCounter()
    for event in events:
        if isinstance(event, Metric):
            counter.add(event)
    return counter.total()


class UsageCounter:
    """The fold behind `usage`, for a caller that has events of several sessions and forks."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], Metric] = {}
        self._embedded: dict[tuple[str, str], Metric] = {}
        self._unnamed = Usage()
        self._runs = Usage()
        self._run_cost = 0.0
        self._cost_before = 0.0

    def add(self, metric: Metric) -> None:
        """Take in one metric."""
        if metric.model == SYNTHETIC:
            return
        if metric.api_id and metric.status in ("", EMBEDDED):
            table = self._embedded if metric.status == EMBEDDED else self._named
            key = (metric.api_id, metric.request_id)
            if key not in table or metric.output_tokens > table[key].output_tokens:
                table[key] = metric
        elif metric.status:
            self._runs += _figures(metric, cost=False)
            # The cost is that of the whole process so far; a smaller one is another process's.
            if metric.cost_usd < self._cost_before:
                self._run_cost += self._cost_before
            self._cost_before = metric.cost_usd
        else:
            self._unnamed += _figures(metric)

    def total(self) -> Usage:
        """Everything so far."""
        seen = {api_id for api_id, _ in self._named}
        outside = [metric for key, metric in self._embedded.items() if key[0] not in seen]
        messages = sum(map(_figures, [*self._named.values(), *outside]), self._unnamed)
        tokens = self._runs if self._runs.output > messages.output else messages
        cost = max(messages.cost_usd_micros, round((self._run_cost + self._cost_before) * MICROS))
        return msgspec.structs.replace(tokens, cost_usd_micros=cost)


def _figures(metric: Metric, *, cost: bool = True) -> Usage:
    return Usage(
        input=metric.input_tokens,
        output=metric.output_tokens,
        cache_read=metric.cache_read_tokens,
        cache_write=metric.cache_write_tokens,
        cost_usd_micros=round(metric.cost_usd * MICROS) if cost else 0,
    )
