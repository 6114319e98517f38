"""What was used and what it costs at list price, over a window of time: by day, project, model and whatever else.

The index keeps totals by session, model, agent and quarter of an hour (`totals.py`); the rest is a fold. Costs are
added up exactly, and rounded by whoever shows them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from harken import clock, ids
from harken.analytics.activity import Peak, peak
from harken.analytics.prices import MICRO, PriceList, micros
from harken.context.chains import in_project
from harken.errors import BadRequest
from harken.events import Tokens
from harken.events.base import sum_of_known
from harken.events.tally import NO_TOKENS

from . import totals
from .file import StoreIndex
from .priced import TOKENS, OwnCost, own_models, usage_row
from .totals import QUARTER

DAY = 24 * 3600 * clock.SECOND
BY = ("day", "week", "month", "project", "model", "runtime", "agent", "tool", "session")
PER = ("runtime", "template")
SPLIT = ("project", "model", "runtime")
_ROWS = f"""
SELECT session, model, agent, time, several, partial, {TOKENS}
FROM usage
WHERE counted AND (time >= ? AND time < ? OR time IS NULL AND ?) AND model IN (SELECT value FROM json_each(?))
"""


class UsageWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Which usage is asked for. What nobody said the time of is in a window without a beginning and an end."""

    since: int | None = None
    until: int | None = None
    """The first instant that is no longer in it."""
    project: str = ""
    """Only of sessions in this folder or below it, or in one that is called so."""
    model: str = ""
    """Only of this model."""

    @property
    def values(self) -> tuple[int, int, bool]:
        """As the statements have it."""
        far = 1 << 62
        return (
            -far if self.since is None else self.since,
            far if self.until is None else self.until,
            self.since is None and self.until is None,
        )


class Spending(msgspec.Struct, kw_only=True):
    """What was used, and what it costs."""

    sessions: set[str] = msgspec.field(default_factory=set)
    """The sessions it is of; a sub-agent counts with the one that spawned it."""
    requests: int = 0
    tokens: Tokens = Tokens()
    cost: int = 0
    """At list price, as far as prices are known, in 1e-12 dollars."""
    priced: int | None = None
    """How many requests have a price; None where there are no requests at all."""
    unpriced: dict[str, int] = {}
    """Requests whose price nobody knows, by model."""
    unverified: dict[str, int] = {}
    """Requests at a price which nobody compared with what was published, by model."""
    said: list[float] = []
    """What runtimes said that it cost, in dollars."""
    calls: int = 0
    failed: int = 0
    took: int = 0
    """How long the calls took together, in microseconds."""
    uncounted: int = 0
    """Sessions and sub-agents in which a model answered and nobody counted."""

    @property
    def price_usd_micros(self) -> int | None:
        """What it costs at list price; None where no price is known, the least it can be where some are not."""
        return None if self.priced == 0 else micros(self.cost)

    @property
    def cost_usd_micros(self) -> int | None:
        """What runtimes said that it cost; None where nobody did."""
        return round(math.fsum(self.said) * MICRO) if self.said else None


def price_together(several: Collection[Spending]) -> int | None:
    """What several cost together at list price, rounded once; None where no price is known."""
    known = [one.cost for one in several if one.price_usd_micros is not None]
    return micros(sum(known)) if known else None


class UsageGroup(NamedTuple):
    """Everything of one day, project or whatever was asked for."""

    key: str
    title: str
    spending: Spending
    per: str = ""
    """The runtime or the template whose calls of a tool these are, or the part of a day that this is, where that was
    asked for."""


class _Part(NamedTuple):
    session: int
    slot: int | None
    model: str
    agent: str
    requests: int
    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    cost: int
    priced: int
    unpriced: int
    unverified: int
    said: float | None


class _Known(NamedTuple):
    name: str
    runtime: str
    project: str
    title: str
    agent: str
    pays: bool


class Spent:
    """What was used in a window, to be looked at from several sides."""

    def __init__(
        self,
        index: StoreIndex,
        window: UsageWindow,
        prices: PriceList | None = None,
        templates: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._index, self._window, self._templates = index, window, templates
        self._known = {number: _Known(*facts) for number, *facts in index.query(_SESSIONS)}
        by_name = {known.name: number for number, known in self._known.items()}
        # A session that is only named, as another's parent, is not there: a sub-agent of it stands for itself.
        tops = ids.tops(dict(index.query(_PARENTS)))
        self._top = {number: by_name[tops.get(known.name, known.name)] for number, known in self._known.items()}
        parts = (part for part in self._read(prices) if window.model in ("", part.model))
        self._parts = [part for part in parts if self._is_wanted(part.session)]

    @cached_property
    def _calls(self) -> list[tuple[Any, ...]]:
        """What was called; a list of sessions does not ask."""
        since, until, timeless = self._window.values
        wanted = {number for number in self._known if self._is_wanted(number)}
        return [call for call in totals.called(self._index, since, until, timeless=timeless) if call[0] in wanted]

    def groups(self, by: str, per: str = "") -> list[UsageGroup]:
        """One of `BY`; days in their order, everything else with the most expensive first. Tools may be told apart by
        the `runtime` or the `template` of their sessions (`PER`)."""
        if by == "tool":
            return self._tools(per)
        key = self._keys(by)
        parts: dict[str, list[_Part]] = {}
        for part in self._parts:
            parts.setdefault(key(part), []).append(part)
        found = {name: self._together(group) for name, group in parts.items()}
        names = sorted(found) if by in PERIODS else sorted(found, key=lambda name: _rank(name, found[name]))
        titles = {self._session(n): self._known[self._top[n]].title for n in self._known} if by == "session" else {}
        return [UsageGroup(name, titles.get(name, ""), found[name]) for name in names]

    def split(self, by: str, apart: str) -> list[UsageGroup]:
        """Periods in their order, each told apart by one of `SPLIT`: a stacked drawing is made of it."""
        period, side = self._keys(by), self._keys(apart)
        parts: dict[tuple[str, str], list[_Part]] = {}
        for part in self._parts:
            parts.setdefault((period(part), side(part)), []).append(part)
        return [UsageGroup(place[0], "", self._together(parts[place]), place[1]) for place in sorted(parts)]

    def by_day(self, ahead: int, by: str = "project") -> dict[int, dict[str, Spending]]:
        """By day, counted from 1970, in a zone so many microseconds ahead of UTC; and in each by project, or another of
        `BY` that is no time and no tool."""
        key = self._keys(by)
        parts: dict[tuple[int, str], list[_Part]] = {}
        for part in self._parts:
            if part.slot is not None:
                parts.setdefault(((part.slot * QUARTER + ahead) // DAY, key(part)), []).append(part)
        found: dict[int, dict[str, Spending]] = {}
        for (day, name), several in parts.items():
            found.setdefault(day, {})[name] = self._together(several)
        return found

    def total(self) -> Spending:
        """Everything together."""
        whole = self._together(self._parts) if self._parts else Spending(tokens=NO_TOKENS)
        for _, _, _, calls, failed, took in self._calls:
            whole.calls += calls
            whole.failed += failed
            whole.took += took
        since, until, _ = self._window.values
        silent = [n for (n,) in self._index.query(_UNCOUNTED, (since, until)) if self._is_wanted(n)]
        whole.uncounted = len(silent)
        return whole

    def hours(self, ahead: int | None = None) -> list[list[int]]:
        """Requests by weekday (Monday first) and hour of the local time zone, or of one so many microseconds ahead of
        UTC."""
        slots: Counter[int | None] = Counter()
        for part in self._parts:
            slots[part.slot] += part.requests
        counts = [[0] * 24 for _ in range(7)]
        for slot, requests in slots.items():
            if slot is not None and (place := _hour(slot * QUARTER, ahead)) is not None:
                counts[place[0]][place[1]] += requests
        return counts

    def peak(self) -> Peak:
        """The most sessions that went on at the same time in the window; sub-agents are part of theirs. What a copy
        begins with went on elsewhere."""
        since, until, _ = self._window.values
        spans = self._index.query(_WENT_ON, (until, since))
        tops = [(start, end) for n, start, end in spans if self._top[n] == n and self._is_wanted(n)]
        return peak((max(start, since), min(end, until)) for start, end in tops)

    def problems(self) -> list[str]:
        """What could not be counted."""
        told = "SELECT problem FROM figures WHERE problem != '' UNION SELECT why FROM problems WHERE \"commit\" = ''"
        return [text for (text,) in self._index.query(told)]

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, prices: PriceList | None) -> Iterator[_Part]:
        own = set(own_models(self._index, prices))
        again = self._price(sorted(own), prices) if own and prices is not None else {}
        unverified = {model for (model,) in self._index.query("SELECT model FROM unverified")} - own
        unverified |= {model for model in own if prices is not None and not prices.is_verified(model)}
        since, until, timeless = self._window.values
        for session, slot, model, agent, *counts in totals.used(self._index, since, until, timeless=timeless):
            *used, whole, fraction, priced, unpriced, said = counts
            cost = (whole or 0) * MICRO + (fraction or 0)
            if model in own:
                cost, priced, unpriced = again.get((session, model, agent, slot), OwnCost())
            doubtful = priced if cost and model in unverified else 0
            if said is not None and self._is_paid_for(session):
                said = None
            yield _Part._make((session, slot, model, agent, *used, cost, priced, unpriced, doubtful, said))

    def _price(self, models: Sequence[str], prices: PriceList) -> dict[tuple[Any, ...], OwnCost]:
        """What the requests of models cost that somebody has prices of their own for."""
        sums: dict[tuple[Any, ...], OwnCost] = {}
        values = (*self._window.values, msgspec.json.encode(models).decode())
        for session, model, agent, time, several, partial, *tokens in self._index.query(_ROWS, values):
            row = usage_row(model, time, tokens, several, partial)
            key = (session, model, agent, None if time is None else time // QUARTER)
            sums[key] = sums.get(key, OwnCost()).and_one(row, prices)
        return sums

    def _is_paid_for(self, session: int) -> bool:
        """Whether what it cost is in what the process of its session says."""
        top = self._top[session]
        return top != session and self._known[top].pays and not self._known[session].pays

    def _is_wanted(self, session: int) -> bool:
        wanted = self._window.project
        return not wanted or in_project(self._project(session), wanted)

    def _together(self, parts: Sequence[_Part]) -> Spending:
        """Everything that several parts tell. Column by column: thousands are added up several times."""
        if len(parts) == 1:
            (one,) = parts
            used: Sequence[int | None] = one[5:9]
            requests, cost, priced = one.requests, one.cost, one.priced
            sessions, said = {one.session}, [one.said] if one.said is not None else []
        else:
            numbers, _, _, _, counts, *tokens, costs, known, _, _, told = zip(*parts, strict=True)
            used = [sum_of_known(column) for column in tokens]
            requests, cost, priced = sum(counts), sum(costs), sum(known)
            sessions, said = set(numbers), [one for one in told if one is not None]
        given, output, read, written = used
        found = Spending(
            sessions={self._session(number) for number in sessions},
            requests=requests,
            tokens=Tokens(input=given, output=output, cache_read=read, cache_write=written),
            cost=cost,
            priced=priced,
            said=said,
        )
        for part in parts:
            if part.unpriced:
                found.unpriced[part.model] = found.unpriced.get(part.model, 0) + part.unpriced
            if part.unverified:
                found.unverified[part.model] = found.unverified.get(part.model, 0) + part.unverified
        return found

    # -- sides -------------------------------------------------------------------------------------------------

    def _keys(self, by: str) -> Callable[[_Part], str]:
        if by in PERIODS:
            days: dict[int | None, str] = {None: ""}
            for slot in {part.slot for part in self._parts if part.slot is not None}:
                days[slot] = clock.local_period(slot * QUARTER, by)
            return lambda part: days[part.slot]
        keys: dict[str, Callable[[_Part], str]] = {
            "project": lambda part: self._project(part.session),
            "model": lambda part: part.model,
            "runtime": lambda part: self._known[part.session].runtime,
            "agent": lambda part: self._agent(part),
            "session": lambda part: self._session(part.session),
        }
        if by not in keys:
            raise BadRequest(f"usage cannot be added up by {by!r:.99}", hint=f"one of {', '.join(BY)}")
        return keys[by]

    def _session(self, number: int) -> str:
        return self._known[self._top[number]].name

    def _project(self, number: int) -> str:
        return self._known[number].project or self._known[self._top[number]].project

    def _agent(self, part: _Part) -> str:
        known = self._known[part.session]
        return part.agent or known.agent or (known.name if self._top[part.session] != part.session else known.runtime)

    def _tools(self, per: str) -> list[UsageGroup]:
        found: dict[tuple[str, str], Spending] = {}
        told = self._pers(per)
        for session, _, tool, calls, failed, took in self._calls:
            group = found.setdefault((told(session), tool), Spending())
            group.sessions.add(self._session(session))
            group.calls += calls
            group.failed += failed
            group.took += took
        ranked = sorted(found, key=lambda place: (place[0], -found[place].calls, place[1]))
        return [UsageGroup(tool, "", found[place, tool], place) for place, tool in ranked]

    def _pers(self, per: str) -> Callable[[int], str]:
        if per == "runtime":
            return lambda session: self._known[session].runtime
        templates = self._templates() if per == "template" else {}
        return lambda session: templates.get(self._known[session].name) or templates.get(self._session(session), "")


_UNCOUNTED = """
SELECT n FROM sessions s JOIN figures f ON f.session = n
WHERE responses + calls > 0 AND coalesce(ended, started, 0) >= ? AND coalesce(started, ended, 0) < ?
  AND CASE WHEN NOT EXISTS (
    SELECT 1 FROM usage u WHERE u.session = n AND coalesce(input, output, cache_read) IS NOT NULL
  ) THEN json_extract(report, '$.amplification.responses') + json_extract(report, '$.amplification.calls') > 0 END
"""
"""What was carried over used nothing there: the report, which has what was made, is read of those without usage."""
_WENT_ON = """
SELECT * FROM (
  SELECT n, iif(problem = '', began, started) AS began, iif(problem = '', last, ended) AS last
  FROM sessions LEFT JOIN figures ON figures.session = n
) WHERE began < ? AND last >= ?
"""
"""Of a session that was not counted yet, or could not be, only its row says when it went on."""
PERIODS = ("day", "week", "month")
_PARENTS = "SELECT session, coalesce(parent, '') FROM sessions WHERE runtime IS NOT NULL"
_BELOW = "(SELECT max({fact}) FROM sessions AS below WHERE below.parent = s.session)"
_SESSIONS = f"""
SELECT n, s.session, coalesce(runtime, {_BELOW.format(fact="runtime")}, ''),
       coalesce(project, {_BELOW.format(fact="project")}, ''), coalesce(title, ''), coalesce(agent, ''),
       coalesce(pays, 0)
FROM sessions s LEFT JOIN figures f ON f.session = n
"""
"""Of a session that is not in the store its sub-agents say which runtime and project it was."""


def _hour(instant: int, ahead: int | None) -> tuple[int, int] | None:
    if ahead is None:
        return clock.local_hour(instant)
    day, rest = divmod(instant + ahead, DAY)
    return (day + 3) % 7, rest // (DAY // 24)  # 1970 began on a Thursday


def _rank(name: str, spending: Spending) -> tuple[object, ...]:
    tokens = spending.tokens
    return -spending.cost, -(tokens.output or 0), -tokens.prompt, name
