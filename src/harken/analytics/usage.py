"""What a session used, request by request: the rows from which days, models, projects and money are added up.

`Tally` counts, and this gives the same counts one by one: the rows that a session did not carry over add up to the
tokens and the cost that `Tally` tells of those records. A row is one request, known by the key under which every
session that tells of it counts it once; or, where only a whole is told, what that whole has beyond its requests:

* `@run`: what runs say of themselves, where that is more than their requests tell (they then have no rows);
* `… total`: how much more a running total of a thread tells than the requests in it;
* `agents …`: what the sub-agents of a process used beyond what their requests told;
* `@process`: what a process says it cost, beyond what its requests say; it has no tokens.

A report that nothing names is a row under the name of its record, so that a copy of the record counts once too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harken.events import Metric, Tokens
from harken.events.base import sum_of_known
from harken.events.records import SessionRecord
from harken.events.runs import AGENTS, SEVERAL, TOTAL
from harken.events.tally import SYNTHETIC, RequestUsage, Tally, money

LOCAL = "@"
"""How a key begins of which `is_local` says whether it means something in one session only."""
TOTALS = " total"
"""How the key of what a running total has beyond its requests ends."""


def is_local(key: str) -> bool:
    """Whether a row's key means something in one session only. A request that its time and its cause name
    (`Metric.request_key`) is the same in every session that tells of it."""
    return key.startswith((f"{LOCAL}run", f"{LOCAL}process", f"{LOCAL} #"))


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one request used, or a whole beyond its requests; None where nobody told."""

    key: str
    api: str = ""
    """What reports of one message have in common: the API's id of it, or of a thread. Else it is the key."""
    time: int | None = None
    model: str = ""
    """As `served_model` says it."""
    agent: str = ""
    """The agent whose record tells of it; empty for the session's own."""
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    reasoning: int | None = None
    """How much of the output is reasoning."""
    said_usd: float | None = None
    """What the runtime said that it cost."""
    nested: bool = False
    """Told by another agent's record alone; it counts where its message is seen nowhere else."""
    carried: bool = False
    """The session began with it and did not make it: it counts where it was made."""
    several: bool = False
    """Of several requests together, so that no price for long requests applies."""
    partial: bool = False
    """Nobody told what went into it, not even a whole: what came out is not all that it cost."""

    @property
    def cache_write(self) -> int | None:
        """What went into the cache, for however long."""
        return sum_of_known((self.cache_write_5m, self.cache_write_1h))

    @property
    def tokens(self) -> Tokens:
        """The four counts that `Tally` has."""
        return Tokens(input=self.input, output=self.output, cache_read=self.cache_read, cache_write=self.cache_write)


def usage_rows(records: Sequence[SessionRecord]) -> list[UsageRow]:
    """Everything that the session tells, in the order it came; what it carried over is marked, and stands behind."""
    own = _Rows(record for record in records if not record.carried).rows()
    keys = {row.key for row in own}
    carried = _Rows(record for record in records if record.carried).rows()
    return [*own, *(msgspec.structs.replace(row, carried=True) for row in carried if row.key not in keys)]


def counted_rows(records: Iterable[SessionRecord]) -> tuple[Tally, list[UsageRow]]:
    """What records that were not carried over come to, and their rows, which add up to that."""
    found = _Rows(records)
    return found.tally, found.rows()


def served_model(model: str, served: str) -> str:
    """A model by the name under which it has its price: `claude-opus-5-5 (fast)`."""
    return f"{model} ({served})" if served else model


def total_tokens(rows: Iterable[UsageRow]) -> Tokens:
    """The sum of what is known."""
    found = [row.tokens for row in rows]
    return Tokens(
        input=sum_of_known(one.input for one in found),
        output=sum_of_known(one.output for one in found),
        cache_read=sum_of_known(one.cache_read for one in found),
        cache_write=sum_of_known(one.cache_write for one in found),
    ).possible


class _Told(msgspec.Struct, frozen=True, gc=False):
    """What `Tally` does not keep of a report."""

    time: int | None
    agent: str
    usage: RequestUsage
    metric: Metric


class _Rows:
    """One pass over records: `Tally` counts, and of each report it is noted who told it and when."""

    def __init__(self, records: Iterable[SessionRecord]) -> None:
        self.tally = Tally()
        self._told: dict[str, _Told] = {}
        self._unnamed: list[UsageRow] = []
        self._time: int | None = None
        self._model = ""
        """The model of the last request: a whole seldom says which one it is of."""
        self._models: dict[str, str] = {}
        self._lacking: set[str] = set()
        """The requests of which only the output was told, with no whole behind them that tells what went into them."""
        for record in records:
            self._take(record)

    def _take(self, record: SessionRecord) -> None:
        for event in record.events:
            self._time = event.time if event.time is not None else self._time
            if isinstance(event, Metric) and event.model != SYNTHETIC:
                self._note(event, record)
        self.tally.record(record.events)

    def _note(self, metric: Metric, record: SessionRecord) -> None:
        if metric.of_process or metric.scope in (AGENTS, TOTAL):
            return
        alone = Tally()
        alone.metric(metric)
        if metric.scope == SEVERAL and not _lacks(metric.tokens):
            self._lacking.clear()
        agent = record.agent or metric.agent_id if metric.scope else record.agent
        for key, usage in alone.requests.items():
            known = self._told.get(key)
            if known is None or usage.beats(known.usage):
                self._told[key] = _Told(self._time, agent, usage, metric)
                (self._lacking.add if _lacks(usage.tokens) else self._lacking.discard)(key)
            self._model = usage.model or self._model
            self._models[_api(key)] = usage.model
        if not alone.requests and (alone.unnamed != Tokens() or alone.unnamed_cost is not None):
            key = f"{record.name or LOCAL} #{metric.index or len(self._unnamed)}"
            row = _row(key, alone.unnamed, metric, said_usd=alone.unnamed_cost)
            if _lacks(alone.unnamed):
                self._lacking.add(key)
            model = served_model(metric.model, metric.served)
            self._unnamed.append(msgspec.structs.replace(row, time=self._time, agent=agent, model=model))

    def rows(self) -> list[UsageRow]:
        tally = self.tally
        stands = tally.run_stands()
        of_process = tally.run_cost is not None or tally.process_cost is not None
        requests = [row for row, usage in self._requests() if usage.agent or not stands]
        unnamed = [] if stands else [self._weighed(row) for row in self._unnamed]
        if stands or of_process:  # what they say they cost is in what the process says
            unnamed = [msgspec.structs.replace(row, said_usd=None) for row in unnamed]
        return [*requests, *unnamed, *self._wholes(stands, of_process)]

    def _requests(self) -> Iterator[tuple[UsageRow, RequestUsage]]:
        for key, usage in self.tally.counted().items():
            told = self._told[key]
            row = _row(key, usage.tokens, told.metric, said_usd=usage.cost_usd)
            model = served_model(usage.model, told.metric.served)
            facts = {"time": told.time, "agent": told.agent, "model": model, "nested": usage.nested}
            yield self._weighed(msgspec.structs.replace(row, api=_api(key), several=usage.several, **facts)), usage

    def _weighed(self, row: UsageRow) -> UsageRow:
        return msgspec.structs.replace(row, partial=True) if row.key in self._lacking else row

    def _wholes(self, stands: bool, of_process: bool) -> Iterator[UsageRow]:
        tally = self.tally
        rest = total_tokens(self._unnamed)
        wholes = {f"{LOCAL}run": tally.runs if stands else tally.unnamed.minus(rest)}
        wholes |= {} if stands else {api_id + TOTALS: tally.beyond(api_id) for api_id in tally.totals}
        if any(usage.agent for usage in tally.counted().values()):
            wholes |= {f"agents {process}": tokens for process, tokens in tally.agents.items()}
        for key, tokens in wholes.items():
            if any((tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)):
                api = _api(key) if key.endswith(TOTALS) else key
                model = self._models.get(api, "") or self._model
                yield msgspec.structs.replace(_row(key, tokens), api=api, time=self._time, model=model, several=True)
        cost = tally.cost_beside_requests()
        if stands:
            spent = [usage.cost_usd for usage in tally.counted().values() if not usage.agent]
            cost = _plus(cost, [usd for usd in spent if usd is not None])
        if (stands or of_process) and cost is not None:
            yield UsageRow(
                key=f"{LOCAL}process", api=f"{LOCAL}process", time=self._time, said_usd=money(cost), several=True
            )


def _lacks(tokens: Tokens) -> bool:
    """Whether only what came out is told."""
    return bool(tokens.output) and tokens.input is None and tokens.cache_read is None and tokens.cache_write is None


def _row(key: str, tokens: Tokens, metric: Metric | None = None, *, said_usd: float | None = None) -> UsageRow:
    written, reasoning = tokens.cache_write, None
    hour = metric.cache_write_1h_tokens if metric is not None else None
    if metric is not None and metric.reasoning_tokens is not None and tokens.output is not None:
        reasoning = min(metric.reasoning_tokens, tokens.output)
    hour = None if written is None or hour is None else min(hour, written)
    return UsageRow(
        key=key,
        api=key,
        input=tokens.input,
        output=tokens.output,
        cache_read=tokens.cache_read,
        cache_write_5m=None if written is None else written - (hour or 0),
        cache_write_1h=hour,
        reasoning=reasoning,
        said_usd=said_usd,
    )


def _api(key: str) -> str:
    return key.partition(" ")[0]


def _plus(cost: float | None, more: Sequence[float]) -> float | None:
    return sum(more, cost or 0.0) if more or cost is not None else None
