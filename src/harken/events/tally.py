"""Tokens, and the one fold that counts a session: prompts, tools, responses, errors, compactions, requests, times.

`Tally.of` counts any stream of events. A format that has to count without building events, for speed, calls the same
methods with the same classifier its reader has, so an import and a look at the events cannot come to different numbers.

Rule 1: unknown is not zero. A figure that nobody told is None, and stays None until somebody tells it.
Rule 2: usage belongs to a request (`Metric.request_key`) and counts once, over lines, files, forks and sub-agents; of
        several reports of one request the one with the largest output stands, then the one with the largest input.
Rule 3: money is added up first and rounded last, to whole millionths of a dollar.
Rule 4: a message is a prompt or a response: what somebody said in words, a person, an agent, the harness or a model.
        Thoughts, calls of tools and their results are none, nor is what a compaction puts in place of what was said.
Rule 5: a figure that cannot be (2**53 tokens or millionths of a dollar or more, less than nothing) is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from .base import LARGEST_COUNT, Event, Tokens, clean, figure, sum_of_known
from .figures import Figures, Prompts
from .messages import Prompt, Response, System
from .places import NOTHING, TOOL_RESULT, RecordSoFar, counted_as, place_of
from .records import by_record
from .runs import AGENT, AGENTS, EMBEDDED, SEVERAL, TOTAL, Error, Metric
from .session import TranscriptEdit
from .tools import ToolCall, ToolResult

SYNTHETIC = "<synthetic>"
"""The model of messages that a harness made up; nobody was asked and nothing was used."""
BOUNDARY = "compact_boundary"
MICROS = 1_000_000
NO_TOKENS = Tokens(input=0, output=0, cache_read=0, cache_write=0)


class RequestUsage(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """What one request used, as far as anybody told."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    model: str = ""
    cost_usd: float | None = None
    nested: bool = False
    """Known only from a record that embeds another agent's: it counts where its id is seen nowhere else."""
    agent: bool = False
    """A sub-agent's, as the stream of the agent that started it tells: no run's total includes it."""
    several: bool = False  # of several requests together, which nothing tells one by one

    @classmethod
    def of(cls, metric: Metric) -> RequestUsage:
        """What a metric of one request says."""
        told = metric.input_tokens, metric.output_tokens, metric.cache_read_tokens, metric.cache_write_tokens
        heard, said, read, written = map(figure, told)
        kinds = [metric.scope == kind for kind in (EMBEDDED, AGENT, SEVERAL)]
        return cls(heard, said, read, written, metric.model, metric.cost_usd, *kinds)

    @property
    def tokens(self) -> Tokens:
        """The tokens alone."""
        return Tokens(input=self.input, output=self.output, cache_read=self.cache_read, cache_write=self.cache_write)

    def beats(self, other: RequestUsage) -> bool:
        """Whether this report stands where both are of the same request."""
        if self.nested != other.nested:
            return other.nested
        if self.output != other.output:
            return (-1 if self.output is None else self.output) > (-1 if other.output is None else other.output)
        return self.tokens.prompt > other.tokens.prompt  # so that the order in which they come says nothing


Requests = dict[str, RequestUsage]
"""By `<API message id> <request id>`."""


class Tally(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The counts so far. Written as JSON into a session's row."""

    prompts: Prompts = msgspec.field(default_factory=Prompts)
    origins: dict[str, int] = {}
    tools: dict[str, int] = {}
    responses: int = 0
    errors: int = 0
    """Failures that the runtime or the provider reported."""
    compactions: int = 0
    """How often the conversation was replaced by a summary of it."""
    requests: Requests = {}
    unnamed: Tokens = Tokens()
    """What was used by requests that nothing names: added up as it comes."""
    unnamed_cost: float | None = None
    unnamed_requests: int = 0  # those of them that told anything
    runs: Tokens = Tokens()
    """What runs say of themselves as a whole."""
    run_cost: float | None = None
    """What finished processes cost."""
    process_cost: float | None = None
    """What the present process has cost so far: each of its reports includes the ones before."""
    agents: dict[str, Tokens] = {}
    """What sub-agents used beyond what their requests tell, by process: it counts where those requests do."""
    totals: Requests = {}
    """Running totals by the API id of the requests in them: they count as far as those requests tell less."""
    started: int | None = None
    ended: int | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> Tally:
        """The counts of a stream of events. A record counts once, however many things it says."""
        tally = cls()
        for record in by_record(events):
            tally.record(record)
        return tally

    def record(self, events: Sequence[Event], so_far: RecordSoFar = NOTHING) -> RecordSoFar:
        """Count the events of one record. Where they come in pieces, the answer goes along with the next one."""
        if so_far.replaced:
            return so_far
        places, replaced = list(so_far.places), False
        for event in events:
            if event.time is not None:
                self.at(event.time)
            # By type here and below, since every event goes by: `isinstance` takes three times as long.
            if type(event) is Prompt or type(event) is ToolResult:
                if (place := place_of(event)) is not None:
                    places.append(place)
            elif type(event) is System and event.subtype == BOUNDARY:
                self.compactions += 1
                places, replaced = [], True  # what a compaction puts in the place of the conversation was said before
                break
            else:
                self._count(event)
        if not places and not so_far.places and not replaced:
            return NOTHING
        now = counted_as(places)
        for place in now:
            if place not in so_far.places:
                self.prompt(place)
        for place in so_far.places:
            if place not in now:
                self.prompt(place, -1)
        return RecordSoFar(now, replaced)

    def _count(self, event: Event) -> None:
        if type(event) is ToolCall:
            self.call(event.name)
        elif type(event) is Response:
            if event.substance is None:  # else it was copied, and counts where it was said
                self.response(event.model)
        elif type(event) is Metric:
            self.metric(event)
        elif type(event) is Error:
            self.errors += 1
        elif type(event) is TranscriptEdit:
            self.compactions += event.action == "compact"

    # -- one thing at a time; a scan calls these ----------------------------------------------------------------------

    def at(self, instant: int) -> None:
        """Something was written down at this instant."""
        if self.ended is None or instant > self.ended:
            self.ended = instant
        if self.started is None or instant < self.started:
            self.started = instant

    def prompt(self, kind: str, count: int = 1) -> None:
        """Records in the user's place: a person's where `kind` is empty, else a tool's or injected."""
        if not kind:
            self.prompts.human += count
        elif kind == TOOL_RESULT:
            self.prompts.tool_result += count
        elif count:
            kind = _plain(kind)
            self.prompts.injected += count
            self.origins[kind] = self.origins.get(kind, 0) + count
            if not self.origins[kind]:
                del self.origins[kind]

    def call(self, name: str) -> None:
        """The model asked for a tool."""
        name = _plain(name)
        self.tools[name] = self.tools.get(name, 0) + 1

    def response(self, model: str = "") -> None:
        """The model said something in words."""
        self.responses += model != SYNTHETIC

    def request(self, api_id: str, request_id: str, usage: RequestUsage) -> None:
        """A report of what a request used; without an id it is added up, with one the largest output stands."""
        if usage.model == SYNTHETIC:
            return
        if usage.cost_usd is not None and money(usage.cost_usd) is None:
            usage = msgspec.structs.replace(usage, cost_usd=None)
        if not api_id:
            if not usage.nested:
                self.unnamed += usage.tokens
                self.unnamed_cost = _plus(self.unnamed_cost, usage.cost_usd)
                self.unnamed_requests += not usage.several and (usage.tokens != Tokens() or usage.cost_usd is not None)
            return
        merge_requests(self.requests, {_plain(f"{api_id} {request_id}"): usage})

    def metric(self, metric: Metric) -> None:
        """What a metric says: of a request, of a whole run, or of the process so far."""
        if metric.of_process:
            self.run(metric.tokens, metric.cost_usd)
        elif metric.scope == AGENTS:
            self.agents[_plain(metric.request_id)] = metric.tokens.possible
        elif metric.scope == TOTAL:
            usage = RequestUsage(*msgspec.structs.astuple(metric.tokens.possible))
            merge_requests(self.totals, {_plain(metric.api_id): usage})
        else:
            self.request(*metric.request_key, RequestUsage.of(metric))

    def run(self, tokens: Tokens | None, cost_usd: float | None) -> None:
        """A run's own total: its tokens are of the requests that tell no output, its cost is the process's so far."""
        if tokens is not None and tokens.output is not None and (unfinished := self._unfinished()):
            self.requests |= {key: RequestUsage(model=self.requests[key].model) for key in unfinished}
            self.unnamed += tokens.possible
        elif tokens is not None:
            self.runs += tokens.possible
        if (cost_usd := money(cost_usd)) is None:
            return
        if self.process_cost is not None and cost_usd < self.process_cost:
            self.run_cost = _plus(self.run_cost, self.process_cost)
        self.process_cost = cost_usd

    def _unfinished(self) -> list[str]:
        return [key for key, one in self.requests.items() if one.output is None is not one.input and not one.agent]

    # -- several together ---------------------------------------------------------------------------------------------

    def copy(self) -> Tally:
        """The same counts, which may then go their own way."""
        return msgspec.structs.replace(self.without_requests(), requests=dict(self.requests))

    def without_requests(self) -> Tally:
        """A copy that goes its own way, without the requests: those are merged by their ids, not gone on from."""
        return msgspec.structs.replace(
            self,
            prompts=msgspec.structs.replace(self.prompts),
            origins=dict(self.origins),
            tools=dict(self.tools),
            agents=dict(self.agents),
            totals=dict(self.totals),
            requests={},
        )

    @classmethod
    def merge(cls, tallies: Iterable[Tally]) -> Tally:
        """Several sessions, files or agents as one, in which each request counts once."""
        merged = cls()
        for tally in tallies:
            merged.take(tally)
        return merged

    def take(self, other: Tally) -> None:
        """Count another session, file or agent along; a request that both have counts once."""
        self._take_counts(other)
        self.agents |= other.agents
        merge_requests(self.totals, other.totals)
        if other.run_stands():
            # It has no key that another session could share, and stands in for that session's requests.
            merge_requests(self.requests, {key: usage for key, usage in other.requests.items() if usage.agent})
            self.unnamed += other.runs
            self.unnamed_cost = _plus(self.unnamed_cost, other._cost())
        else:
            merge_requests(self.requests, other.requests)
            self.unnamed += other.unnamed
            self.unnamed_requests += other.unnamed_requests
            self.unnamed_cost = _plus(self.unnamed_cost, other.cost_beside_requests())

    def _take_counts(self, other: Tally) -> None:
        for name in ("human", "injected", "tool_result"):
            setattr(self.prompts, name, getattr(self.prompts, name) + getattr(other.prompts, name))
        for mine, theirs in ((self.origins, other.origins), (self.tools, other.tools)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.responses += other.responses
        self.errors += other.errors
        self.compactions += other.compactions
        for instant in (other.started, other.ended):
            if instant is not None:
                self.at(instant)

    @property
    def messages(self) -> int:
        """How much was said in words (rule 4)."""
        return self.prompts.human + self.prompts.injected + self.responses

    def counted(self) -> Requests:
        """The requests that count: an embedded report does where its message is seen nowhere else."""
        seen = {key.partition(" ")[0] for key, usage in self.requests.items() if not usage.nested}
        return {
            key: usage for key, usage in self.requests.items() if not usage.nested or key.partition(" ")[0] not in seen
        }

    @property
    def tokens(self) -> Tokens:
        """All tokens; zero where no model was asked, unknown where one answered and nobody counted."""
        total = ((self.runs if self.run_stands() else self._by_request()) + self._by_agents()).possible
        if total == self.runs == Tokens() and not (self.responses or self.tools or self.requests or self.totals):
            return NO_TOKENS
        return total

    @property
    def cost_usd_micros(self) -> int | None:
        """What all of it cost in millionths of a dollar; None where nobody said."""
        cost = money(self._cost())
        return None if cost is None else round(cost * MICROS)

    def figures(self) -> Figures:
        """The numbers as they are handed out."""
        counted = self.counted()
        models: dict[str, list[RequestUsage]] = {}
        for usage in counted.values():
            models.setdefault(usage.model, []).append(usage)
        return Figures(
            usage=self.tokens,
            prompts=msgspec.structs.replace(self.prompts),
            injected={kind: count for kind, count in sorted(self.origins.items()) if count},
            tools=dict(sorted(self.tools.items(), key=lambda item: (-item[1], item[0]))),
            responses=self.responses,
            errors=self.errors,
            compactions=self.compactions,
            requests=sum(not usage.several for usage in counted.values()) + self.unnamed_requests,
            models={model: _total(models[model]).possible for model in sorted(models)},
            cost_usd_micros=self.cost_usd_micros,
            started=self.started,
            ended=self.ended,
        )

    def _by_request(self) -> Tokens:
        own = [usage for usage in self.counted().values() if not usage.agent]
        return _total([*own, self.unnamed, *map(self.beyond, self.totals)])

    def beyond(self, api_id: str) -> Tokens:
        """How much more a running total tells than the requests in it."""
        requested = _total([usage for key, usage in self.requests.items() if key.partition(" ")[0] == api_id])
        total = self.totals[api_id].tokens
        return total.minus(requested) if (total.output or 0) > (requested.output or 0) else Tokens()

    def _by_agents(self) -> Tokens:
        of_agents = [usage for usage in self.counted().values() if usage.agent]
        return _total([*of_agents, *self.agents.values()]) if of_agents else Tokens()

    def run_stands(self) -> bool:
        """Whether the runs' own totals stand over their requests': while a message streams its output is not known."""
        return (self.runs.output or 0) > (self._by_request().output or 0)

    def _request_costs(self) -> list[float]:
        return [usage.cost_usd for usage in self.counted().values() if usage.cost_usd is not None]

    def _cost(self) -> float | None:
        beside = self.cost_beside_requests()
        costs = self._request_costs()
        return math.fsum(costs if beside is None else [*costs, beside]) if costs or beside is not None else None

    def cost_beside_requests(self) -> float | None:
        """What is known to have been spent and is in no request: a run's report includes what its requests tell."""
        process = _plus(self.run_cost, self.process_cost)
        if process is None:
            return self.unnamed_cost
        return max(process - math.fsum(self._request_costs()), self.unnamed_cost or 0.0)


def merge_requests(into: Requests, more: Requests) -> None:
    """Add reports to a table in which each request stands once."""
    for key, usage in more.items():
        known = into.get(key)
        if known is None or usage.beats(known):
            into[key] = usage


def money(value: float | None) -> float | None:
    """A cost in dollars as a file tells it; None for what cannot be one, as an infinite one."""
    return value if value is not None and 0 <= value * MICROS < LARGEST_COUNT else None


def _total(rows: Sequence[Tokens | RequestUsage]) -> Tokens:
    """The sum of what is known, in one go: sessions have thousands of requests."""
    return Tokens(
        input=sum_of_known([row.input for row in rows]),
        output=sum_of_known([row.output for row in rows]),
        cache_read=sum_of_known([row.cache_read for row in rows]),
        cache_write=sum_of_known([row.cache_write for row in rows]),
    )


def _plain(text: str) -> str:
    return text if text.isascii() else clean(text)


def _plus(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
