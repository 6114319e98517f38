"""Statistics of a window of time as the page shows them: cost by day, when agents answer, tools, delegation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harken import clock
from harken.context.chains import in_project
from harken.errors import BadRequest
from harken.events.tool_kinds import AGENT, tool_kind
from harken.index.delegation import DoneSession, done_sessions, medians, most_at_once, pressure
from harken.index.spending import DAY, Spending, Spent, UsageGroup, UsageWindow, price_together
from harken.repo import Repo
from harken.repo.numbers import read_price_file

from .base import ApiAnswer, ApiRequest, IndexedAnswer, TokensAnswer, index_fields, instant, stamp, tokens_answer
from .crossing import crosses
from .following import follow
from .home import LONGEST
from .home_days import DayWindow
from .remembering import remembered

MOST_DAYS = 400
CURVES, POINTS, DELEGATING = 4, 240, 10
SHARES = ("project", "model", "runtime")


class StatsPageRequest(ApiRequest, frozen=True, kw_only=True):
    """Which window of time."""

    since: str = ""
    """From this instant on (RFC 3339); empty for thirty days before the end."""
    until: str = ""
    """Up to this instant, which is no longer in it; empty for the end of today."""
    zone: int = 0
    """How many minutes the zone in which days begin is ahead of UTC."""
    project: str = ""
    """Only of sessions in this folder or below it, or in a folder of this name; empty for all."""
    model: str = ""
    """Only what this model used; empty for all. Tools and delegation are of all models."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""


class StatsShare(ApiAnswer, frozen=True, kw_only=True):
    """What one project, model or runtime used."""

    key: str
    """Which one; empty where nobody said."""
    price_usd_micros: int | None
    """What its requests cost at list price; null where no price is known."""
    requests: int
    """Requests, each once."""
    sessions: int
    """In how many sessions."""
    usage: TokensAnswer
    """Tokens."""


class StatsDay(ApiAnswer, frozen=True, kw_only=True):
    """A day of the window."""

    day: str
    """Which day, like 2026-01-31."""
    price_usd_micros: int | None
    """What its requests cost; null where no price is known."""
    requests: int
    """Requests, each once."""
    sessions: int
    """In how many sessions."""
    project: dict[str, int]
    """What they cost by project, where a price is known."""
    model: dict[str, int]
    """The same by model."""
    runtime: dict[str, int]
    """The same by runtime."""


class StatsTool(ApiAnswer, frozen=True, kw_only=True):
    """A tool."""

    tool: str
    """Its name."""
    calls: int
    """How often it was called."""
    failed: int
    """How many of these failed."""
    took_us: int
    """How long the calls took together, in microseconds."""
    median_us: int | None
    """How long one took in the middle; null where nobody knows. With a project, of all projects."""


class PressureCurve(ApiAnswer, frozen=True, kw_only=True):
    """How full a session's context was, request by request."""

    session: str
    """The session."""
    title: str
    """What it is called."""
    compactions: int
    """How often it was folded into a summary."""
    requests: int
    """How many requests there were."""
    tokens: list[int]
    """Tokens before the model at each, or at so many of them, evenly, with the peaks between."""


class DelegatingSession(ApiAnswer, frozen=True, kw_only=True):
    """A session that had others do something."""

    session: str
    """The session."""
    title: str
    """What it is called."""
    own: int
    """Calls of its own agent."""
    delegated: int
    """Calls of its sub-agents."""
    agents: int
    """How many these are."""


class StatsDelegation(ApiAnswer, frozen=True, kw_only=True):
    """What the sessions of the window did themselves, and what they had others do; all of what each did."""

    sessions: int
    """Sessions that had sub-agents."""
    agents: int
    """Their sub-agents."""
    own: int
    """Calls of the sessions' own agents."""
    delegated: int
    """Calls of sub-agents."""
    prompts: int
    """How often a person spoke."""
    at_once: int
    """The most sub-agents of one session that were at work at the same time."""
    waiting_us: int
    """How long calls that have another agent do something took together, in microseconds."""
    most: list[DelegatingSession]
    """Those that delegated most; at most ten."""


class StatsPageAnswer(IndexedAnswer, frozen=True, kw_only=True):
    """A window of time in numbers; each session and each token once."""

    since: str | None
    """The first instant of the window."""
    until: str | None
    """The first behind it."""
    sessions: int
    """Sessions that made requests; a sub-agent counts with the one that spawned it."""
    requests: int
    """Requests, each once."""
    usage: TokensAnswer
    """Tokens."""
    price_usd_micros: int | None
    """What they cost at list price; null where no price is known, the least it can be where some are not."""
    unpriced: dict[str, int]
    """Requests whose price nobody knows, by model."""
    cost_usd_micros: int | None
    """What runtimes said that they cost; null where nobody did."""
    uncounted: int
    """Sessions and sub-agents in which a model answered and nobody counted."""
    calls: int
    """Calls of tools."""
    failed: int
    """How many of these failed."""
    days: list[StatsDay]
    """Every day of the window, in order."""
    project: list[StatsShare]
    """By project, the most expensive first."""
    model: list[StatsShare]
    """By model."""
    runtime: list[StatsShare]
    """By runtime."""
    hours: list[list[int]]
    """Requests by weekday (Monday first) and hour of the zone."""
    tools: list[StatsTool]
    """Tools, the most used first."""
    pressure: list[PressureCurve]
    """The sessions that were folded most often, or had most requests; at most four."""
    delegation: StatsDelegation
    """Who did what."""


@crosses
def stats_page(repo: Repo, request: StatsPageRequest) -> StatsPageAnswer:
    """Cost by day, project, model and runtime, when agents answer, tools, how full contexts were, and delegation."""
    window, ahead = _window(repo, request)
    reached = follow(repo)
    since, until = window.since or 0, window.until or 0
    spent = Spent(repo.index, window, read_price_file(request.prices))
    total = spent.total()
    done = [one for one in done_sessions(repo.index, since, until) if _is_of(one, request.project)]
    tools = spent.groups("tool")
    key = (reached.at, reached.stale, since, until)
    middle = remembered(repo, "medians", key, lambda: medians(repo.index, since, until), most=4, opened=reached.opened)
    return StatsPageAnswer(
        since=stamp(since),
        until=stamp(until),
        sessions=len(total.sessions),
        requests=total.requests,
        usage=tokens_answer(total.tokens.possible),
        price_usd_micros=_price(total),
        unpriced=dict(sorted(total.unpriced.items())),
        cost_usd_micros=total.cost_usd_micros,
        uncounted=total.uncounted,
        calls=total.calls,
        failed=total.failed,
        days=_days(spent, window, ahead),
        hours=spent.hours(ahead),
        tools=[_tool(group, middle) for group in tools],
        pressure=_pressure(repo, done),
        delegation=_delegation(done, tools),
        project=_shares(spent, "project"),
        model=_shares(spent, "model"),
        runtime=_shares(spent, "runtime"),
        **index_fields(reached),
    )


def _window(repo: Repo, asked: StatsPageRequest) -> tuple[UsageWindow, int]:
    if abs(asked.zone) > LONGEST:
        raise BadRequest(f"a zone is at most {LONGEST} minutes from UTC", hint="give the minutes that it is ahead")
    ahead = asked.zone * 60 * clock.SECOND
    until, since = instant(asked.until), instant(asked.since)
    if until is None:
        until = DayWindow((repo.clock() + ahead) // DAY, ahead).until
    if since is None:
        since = until - 30 * DAY
    if not since < until <= since + MOST_DAYS * DAY:
        raise BadRequest(f"a window has 1 to {MOST_DAYS} days", hint="its end comes behind its beginning")
    return UsageWindow(since=since, until=until, project=asked.project, model=asked.model), ahead


def _price(spending: Spending) -> int | None:
    return spending.price_usd_micros if spending.requests else None


def _days(spent: Spent, window: UsageWindow, ahead: int) -> list[StatsDay]:
    first, last = ((window.since or 0) + ahead) // DAY, ((window.until or 0) - 1 + ahead) // DAY
    sides = {by: spent.by_day(ahead, by) for by in SHARES}
    found = []
    for day in range(first, last + 1):
        groups = sides["project"].get(day, {}).values()
        found.append(
            StatsDay(
                day=DayWindow(day, ahead).name,
                price_usd_micros=price_together(groups),
                requests=sum(one.requests for one in groups),
                sessions=len(set().union(*(one.sessions for one in groups))),
                **{by: _prices(sides[by].get(day, {})) for by in SHARES},
            )
        )
    return found


def _prices(groups: Mapping[str, Spending]) -> dict[str, int]:
    known = {name: one.price_usd_micros for name, one in groups.items()}
    told = {name: price for name, price in known.items() if price is not None}
    return dict(sorted(told.items(), key=lambda one: (-one[1], one[0])))


def _shares(spent: Spent, by: str) -> list[StatsShare]:
    return [
        StatsShare(
            key=group.key,
            price_usd_micros=_price(group.spending),
            requests=group.spending.requests,
            sessions=len(group.spending.sessions),
            usage=tokens_answer(group.spending.tokens.possible),
        )
        for group in spent.groups(by)
    ]


def _tool(group: UsageGroup, middle: Mapping[str, int]) -> StatsTool:
    spending = group.spending
    return StatsTool(
        tool=group.key,
        calls=spending.calls,
        failed=spending.failed,
        took_us=spending.took,
        median_us=middle.get(group.key),
    )


# -- contexts and delegation -------------------------------------------------------------------------------------------


def _is_of(one: DoneSession, project: str) -> bool:
    return not project or in_project(one.project, project)


def _pressure(repo: Repo, done: Sequence[DoneSession]) -> list[PressureCurve]:
    tops = [one for one in done if one.top == one.session]
    tops.sort(key=lambda one: (-one.compactions, -one.responses, one.session))
    found: list[PressureCurve] = []
    for one in tops[: 2 * CURVES]:
        tokens = pressure(repo.index, one.session)
        if len(tokens) > 1 and len(found) < CURVES:
            found.append(
                PressureCurve(
                    session=one.session,
                    title=one.title,
                    compactions=one.compactions,
                    requests=len(tokens),
                    tokens=_fewer(tokens),
                )
            )
    return found


def _fewer(tokens: Sequence[int]) -> list[int]:
    """So many points at most; of each stretch the lowest and the highest stay, in their order."""
    if len(tokens) <= POINTS:
        return list(tokens)
    found: list[int] = []
    pairs = POINTS // 2
    for place in range(pairs):
        stretch = tokens[place * len(tokens) // pairs : (place + 1) * len(tokens) // pairs]
        low, high = min(stretch), max(stretch)
        found += [low, high] if stretch.index(low) <= stretch.index(high) else [high, low]
    return found


def _delegation(done: Sequence[DoneSession], tools: Sequence[UsageGroup]) -> StatsDelegation:
    tops = {one.session: one for one in done if one.top == one.session}
    below = [one for one in done if one.top != one.session]
    agents = Counter(one.top for one in below)
    calls: Counter[str] = Counter()
    for one in below:
        calls[one.top] += one.calls
    ranked = sorted(agents, key=lambda session: (-calls[session], session))
    return StatsDelegation(
        sessions=len(agents),
        agents=len(below),
        own=sum(one.calls for one in tops.values()),
        delegated=calls.total(),
        prompts=sum(one.prompts for one in tops.values()),
        at_once=most_at_once(list(done)),
        waiting_us=sum(group.spending.took for group in tools if tool_kind(group.key) == AGENT),
        most=[
            DelegatingSession(
                session=session,
                title=tops[session].title if session in tops else "",
                own=tops[session].calls if session in tops else 0,
                delegated=calls[session],
                agents=agents[session],
            )
            for session in ranked[:DELEGATING]
        ],
    )
