"""Home: today and this week at a glance, what goes on, and what is worth a look."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from harken import clock
from harken.analytics.prices import PriceList
from harken.context import project_of
from harken.errors import BadRequest
from harken.index.spending import DAY, Spent, UsageWindow, price_together
from harken.repo import Repo
from harken.repo.numbers import read_price_file
from harken.store import SessionRow

from .base import ApiAnswer, ApiRequest, IndexedAnswer, index_fields, stamp
from .crossing import crosses
from .following import follow
from .home_days import DayWindow, LookedDay, active_days, look_into
from .home_hooks import Noticed
from .remembering import remembered
from .sessions_page import SessionPageRow, SessionsPageRequest, page_of

LONGEST = 18 * 60
"""Minutes that a zone may be ahead of UTC or behind it."""
RUNNING_SHOWN, RECENT_SHOWN, WORTH_SHOWN = 20, 6, 12


class HomeRequest(ApiRequest, frozen=True, kw_only=True):
    """Which day."""

    day: str = ""
    """The day, like 2026-01-31; empty for today."""
    zone: int = 0
    """How many minutes the zone in which days begin is ahead of UTC."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""


class DayFacts(ApiAnswer, frozen=True, kw_only=True):
    """What happened on the day."""

    sessions: int
    """Sessions in which something happened; those of sub-agents are part of theirs."""
    seconds: int
    """How long they were at work together; a person's turn and pauses are not."""
    price_usd_micros: int | None
    """What their requests cost at list price, in millionths of a dollar; the least it can be where `unpriced` names
    models. Null where no price is known."""
    unpriced: list[str]
    """Models whose price nobody knows."""
    files: int
    """Files that were written, edited or deleted by calls that did not fail."""
    projects: int
    """Folders that were worked in."""
    compactions: int
    """How often a conversation was folded into a summary."""
    folded: int
    """Prompts and responses that these folded away."""
    calls: int
    """Calls of tools."""
    failed: int
    """How many of these failed."""
    changed: int
    """Messages that a hook changed on their way, or kept from somebody."""
    prompts: int
    """How often a person spoke."""


class WeekDay(ApiAnswer, frozen=True, kw_only=True):
    """A day of the week that ends with the day."""

    day: str
    """Which day, like 2026-01-31."""
    price_usd_micros: int | None
    """What its requests cost at list price; null where no price is known."""
    projects: dict[str, int]
    """The same by project, where a price is known; the most expensive first. Empty is unknown."""
    sessions: int
    """Sessions in which something happened; those of sub-agents are part of theirs."""


class HomeSession(SessionPageRow, frozen=True, kw_only=True):
    """A session to go on with."""

    state: str
    """`running`; `asks` where it waits for a person's answer; `failed` where the last thing in it is a failure;
    `done`."""
    last: str
    """The last words, the question, or what failed."""
    record: str
    """The record that these stand in; empty where it has no name."""
    last_time: str | None
    """When that was."""


class WorthALook(ApiAnswer, frozen=True, kw_only=True):
    """Something that is worth a look."""

    kind: str
    """`changed` or `blocked` (a delivery), `failed` (the same call, several times in a row), `compaction`."""
    text: str
    """What it is, in a sentence."""
    detail: str
    """More of it: the hook, the words, or the tokens; may be empty."""
    session: str
    """The session."""
    title: str
    """What that is called."""
    record: str
    """The record to look at; empty where it has no name."""
    time: str | None
    """When it was."""


class DayBar(ApiAnswer, frozen=True, kw_only=True):
    """A session on the day, as a bar."""

    session: str
    """The session."""
    title: str
    """What it is called."""
    project: str
    """The folder that was worked in; empty where nobody knows."""
    runtime: str
    """The program that held it."""
    agents: int
    """Its sub-agents."""
    start: str | None
    """When it began on that day."""
    end: str | None
    """When something last happened in it on that day."""
    running: bool
    """Whether it is running."""


class HomeAnswer(IndexedAnswer, frozen=True, kw_only=True):
    """A day, and the week that ends with it."""

    day: str
    """The day, like 2026-01-31."""
    start: str | None
    """Its first instant."""
    end: str | None
    """The first instant behind it."""
    now: str | None
    """The present instant, as the server has it."""
    total: int
    """How many sessions there are altogether."""
    nearest: str | None
    """Where nothing happened on the day: the last day before it on which something did, else the first behind it."""
    facts: DayFacts
    """What happened on the day."""
    week: list[WeekDay]
    """Seven days, the last of them the day."""
    week_price_usd_micros: int | None
    """What these cost together; null where no price is known."""
    week_sessions: int
    """Sessions in which something happened on these days, each once."""
    running: list[HomeSession]
    """Those that are running, the last active first; at most 20."""
    recent: list[HomeSession]
    """Others that were last active, at most 6."""
    worth: list[WorthALook]
    """What is worth a look, the newest first; at most 12."""
    bars: list[DayBar]
    """The sessions of the day, by project and beginning."""


@crosses
def home(repo: Repo, request: HomeRequest) -> HomeAnswer:
    """Today and this week: what ran, what it cost, what goes on, and what is worth a look."""
    now = repo.clock()
    window = _window(request, now)
    rows = repo.chains.rows()  # before the index follows: what is remembered of them has to be all of it
    reached = follow(repo)
    listed = page_of(repo, SessionsPageRequest(count=RUNNING_SHOWN + RECENT_SHOWN, prices=request.prices), reached)
    first = DayWindow(window.day - 6, window.ahead)
    active = active_days(repo, rows, first, window, reached)
    days, late = look_into(repo, rows, active[window.day], window, reached)
    prices = read_price_file(request.prices)
    week, week_price = _week(repo, first, window, active, prices)
    running = [_home_session(repo, one) for one in listed.rows if one.running][:RUNNING_SHOWN]
    recent = [one for one in listed.rows if not one.running and one.messages][:RECENT_SHOWN]
    worth = sorted((one for day in days for one in day.worth), key=lambda one: one.time or 0, reverse=True)
    return HomeAnswer(
        day=window.name,
        start=stamp(window.since),
        end=stamp(window.until),
        now=stamp(now),
        total=listed.total,
        nearest=None if days else _nearest(rows, window),
        facts=_facts(repo, days, len(active[window.day]), window, prices),
        week=week,
        week_price_usd_micros=week_price,
        week_sessions=len(set().union(*active.values())),
        running=running,
        recent=[_home_session(repo, one) for one in recent],
        worth=[_worth(one) for one in worth[:WORTH_SHOWN]],
        bars=_bars(days, {one.session for one in running}),
        **index_fields(msgspec.structs.replace(reached, stale=max(reached.stale, late))),
    )


def _window(asked: HomeRequest, now: int) -> DayWindow:
    if abs(asked.zone) > LONGEST:
        raise BadRequest(
            f"a zone is at most {LONGEST} minutes from UTC", hint="give the minutes that it is ahead of it"
        )
    ahead = asked.zone * 60 * clock.SECOND
    if not asked.day:
        return DayWindow((now + ahead) // DAY, ahead)
    found = clock.parse_instant(asked.day) if len(asked.day) == len("2026-01-31") else None
    if found is None:
        raise BadRequest(f"{asked.day!r} is no day", hint="write it like 2026-01-31")
    return DayWindow(found // DAY, ahead)


def _nearest(rows: Sequence[SessionRow], window: DayWindow) -> str | None:
    times = [time for row in rows for time in (row.started, row.ended) if time is not None and clock.in_calendar(time)]
    before = [time for time in times if time < window.since]
    nearest = max(before) if before else min(times, default=None)
    return None if nearest is None else DayWindow((nearest + window.ahead) // DAY, window.ahead).name


def _facts(
    repo: Repo, days: Sequence[LookedDay], sessions: int, window: DayWindow, prices: PriceList | None
) -> DayFacts:
    total = Spent(repo.index, UsageWindow(since=window.since, until=window.until), prices).total()
    return DayFacts(
        sessions=sessions,
        seconds=sum(day.worked for day in days) // clock.SECOND,
        price_usd_micros=total.price_usd_micros if total.requests else None,
        unpriced=sorted(total.unpriced),
        files=len({path for day in days for path in day.files}),
        projects=len({project_of(day.row) for day in days} - {""}),
        compactions=sum(len(day.folded) for day in days),
        folded=sum(count or 0 for day in days for count in day.folded),
        calls=total.calls,
        failed=total.failed,
        changed=sum(day.changed for day in days),
        prompts=sum(day.prompts for day in days),
    )


def _week(
    repo: Repo, first: DayWindow, last: DayWindow, active: Mapping[int, Collection[str]], prices: PriceList | None
) -> tuple[list[WeekDay], int | None]:
    """The days of the week, and what they cost together."""
    spent = Spent(repo.index, UsageWindow(since=first.since, until=last.until), prices)
    by_day = spent.by_day(first.ahead)
    found = []
    for day in range(first.day, last.day + 1):
        projects = by_day.get(day, {})
        known = {name: one.price_usd_micros for name, one in projects.items()}
        told = {name: price for name, price in known.items() if price is not None}
        found.append(
            WeekDay(
                day=DayWindow(day, first.ahead).name,
                price_usd_micros=price_together(projects.values()),
                projects=dict(sorted(told.items(), key=lambda one: (-one[1], one[0]))),
                sessions=len(active[day]),
            )
        )
    return found, price_together([one for projects in by_day.values() for one in projects.values()])


def _home_session(repo: Repo, one: SessionPageRow) -> HomeSession:
    key = (one.session, one.tip_id)
    last = remembered(repo, "endings", key, lambda: repo.chains.ending(one.tip_id or ""), most=200)
    return HomeSession(
        **{name: getattr(one, name) for name in SessionPageRow.__struct_fields__},
        state="running" if one.running else last.state,
        last=last.text,
        record=last.record,
        last_time=stamp(last.time),
    )


def _worth(one: Noticed) -> WorthALook:
    return WorthALook(
        kind=one.kind,
        text=one.text,
        detail=one.detail,
        session=one.row.session,
        title=one.row.title,
        record=one.record,
        time=stamp(one.time),
    )


def _bars(days: Sequence[LookedDay], running: set[str]) -> list[DayBar]:
    ordered = sorted(days, key=lambda day: (project_of(day.row), day.start, day.row.session))
    return [
        DayBar(
            session=day.row.session,
            title=day.row.title,
            project=project_of(day.row),
            runtime=day.row.runtime,
            agents=day.agents,
            start=stamp(day.start),
            end=stamp(day.end),
            running=day.row.session in running,
        )
        for day in ordered
    ]
