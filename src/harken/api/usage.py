"""What was used in a window of time, and what it costs: by day, project, model and whatever else is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken import clock
from harken.errors import BadRequest, Corrupt, Evicted
from harken.index.spending import BY, PER, PERIODS, SPLIT, Spending
from harken.repo import Repo

from .base import ApiAnswer, ApiRequest, TokensAnswer, index_fields, instant, stamp, tokens_answer
from .crossing import crosses


class UsageRequest(ApiRequest, frozen=True, kw_only=True):
    """What to add up."""

    since: str = ""
    """From this instant on (RFC 3339); empty for the beginning."""
    until: str = ""
    """Up to this instant, which is no longer in it (RFC 3339); empty for no end."""
    by: tuple[str, ...] = ("day",)
    """`day`, `week`, `month`, `project`, `model`, `runtime`, `agent`, `tool` or `session`; of several one after the
    other."""
    per: str = ""
    """`runtime` or `template`, to tell the tools of each apart where `by` has `tool`; empty for all together."""
    split: str = ""
    """`project`, `model` or `runtime`, to tell the parts of each day, week or month apart; empty for all together."""
    project: str = ""
    """Only of sessions in this folder or below it, or in a folder of this name; empty for all."""
    prices: str = ""
    """A file of prices whose entries stand over those that come with Harken; empty for none."""
    named: bool = False
    """Whether to name the sessions of each figure, too."""


class SpendingAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What was used, and what it costs."""

    sessions: int
    """In how many sessions; a sub-agent counts with the one that spawned it."""
    session_ids: list[str]
    """Their ids, where they were asked for (`named`); else none."""
    requests: int
    """Requests, each once. Tools have none: a request is nobody's tool."""
    usage: TokensAnswer
    """Tokens, each request once."""
    price_usd_micros: int | None
    """What they cost at list price, in millionths of a dollar; null where no price is known, the least it can be where
    some are not."""
    unpriced: dict[str, int]
    """Requests whose price nobody knows, by model."""
    unverified: dict[str, int]
    """Requests at a price which nobody compared with what was published, by model; they are in the price."""
    cost_usd_micros: int | None
    """What runtimes said that they cost; null where nobody did."""
    calls: int
    """Calls of tools, of which only tools and the total have a figure."""
    failed: int
    """How many of these failed."""
    took_seconds: float
    """How long they took together."""


class UsageAnswer(SpendingAnswer, frozen=True, kw_only=True):
    """A day, a project, or whatever was asked for."""

    by: str
    """What was asked for."""
    key: str
    """Which one it is: a day of the local time zone as 2026-01-31, a folder, a name; empty where nobody said."""
    title: str
    """What a session is called; else empty."""
    per: str
    """The runtime or template whose calls of the tool these are, where that was asked for (`per`); of a day, week or
    month the project, model or runtime that this part is of (`split`). Else empty."""


class UsageTotal(SpendingAnswer, frozen=True, kw_only=True):
    """The last line: everything together."""

    since: str | None
    """From when on."""
    until: str | None
    """Up to when."""
    zone: str
    """The local time zone, in which days are counted."""
    hours: list[list[int]]
    """Requests by weekday (Monday first) and hour of the local time zone."""
    peak_sessions: int
    """The most sessions that went on at the same time."""
    peak_at: str | None
    """When that was first so."""
    uncounted: int
    """Sessions and sub-agents in which a model answered and nobody counted: what they used is unknown."""
    behind: int
    """How many changes of the store are not in the index yet."""
    stale: int
    """Of how many sessions the numbers are not up to date yet."""
    problem: str
    """Why the index that they come from cannot be brought up to date; empty where it can."""
    missing: int
    """Commits and rows of the store that cannot be read, so that calls in them are not counted."""
    damaged: int
    """How many of these are damaged; others were evicted, or nothing here reads their format."""


@crosses
def usage(repo: Repo, request: UsageRequest) -> Iterator[UsageAnswer | UsageTotal]:
    """Tokens and what they cost at list price, each request once, over a window of time. What cannot be read is told at
    the end."""
    since, until = instant(request.since), instant(request.until)
    if since is not None and until is not None and until <= since:
        raise BadRequest("the window ends before it begins", hint="`until` has to be later than `since`")
    for by in request.by:
        if by not in BY:
            raise BadRequest(f"usage cannot be added up by {by!r}", hint=f"one of {', '.join(BY)}")
    if request.per and (request.per not in PER or "tool" not in request.by):
        raise BadRequest(f"nothing is told apart by {request.per!r}", hint="tools are, by `runtime` or `template`")
    if request.split and (request.split not in SPLIT or not set(request.by) & set(PERIODS)):
        raise BadRequest(f"no day is told apart by {request.split!r}", hint=f"days are, by {', '.join(SPLIT)}")
    spent, progress = repo.usage(since, until, project=request.project, prices=request.prices)
    for by in request.by:
        apart = request.split if by in PERIODS else ""
        for group in spent.split(by, apart) if apart else spent.groups(by, request.per):
            yield UsageAnswer(
                by=by, key=group.key, title=group.title, per=group.per, **_fields(group.spending, request.named)
            )
    total, peak = spent.total(), spent.peak()
    yield UsageTotal(
        since=stamp(since),
        until=stamp(until),
        zone=clock.local_zone(clock.now() if until is None else until),
        **index_fields(progress),
        hours=spent.hours(),
        peak_sessions=peak.sessions,
        peak_at=stamp(peak.time),
        uncounted=total.uncounted,
        **_fields(total, request.named),
    )
    if problems := spent.problems():
        gone = all("evicted" in problem or "were forgotten on" in problem for problem in problems)
        kind = Evicted if gone else Corrupt  # removed on purpose is not damaged
        raise kind("; ".join(problems), hint="`harken fsck` says what is damaged")


def _fields(spending: Spending, named: bool) -> dict[str, Any]:
    return {
        "sessions": len(spending.sessions),
        "session_ids": sorted(spending.sessions) if named else [],
        "requests": spending.requests,
        "usage": tokens_answer(spending.tokens.possible),
        "price_usd_micros": spending.price_usd_micros,
        "unpriced": dict(sorted(spending.unpriced.items())),
        "unverified": dict(sorted(spending.unverified.items())),
        "cost_usd_micros": spending.cost_usd_micros,
        "calls": spending.calls,
        "failed": spending.failed,
        "took_seconds": spending.took / clock.SECOND,
    }
