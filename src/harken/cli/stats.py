"""`harken stats`: what sessions cost and what happened in them, each thing counted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from harken import clock
from harken.errors import Corrupt, Evicted

from . import completing, ui
from .options import SESSION, Instant, TimeSpan, is_file, json_option, pass_repo_or_file, project_option
from .wholeness import tell_what_is_missing

if TYPE_CHECKING:
    from harken.api.base import FiguresAnswer
    from harken.api.stats import PriceAnswer, StatsAnswer, StatsTotal
    from harken.repo import Repo

BY = ("day", "week", "month", "project", "model", "runtime", "agent", "tool", "session")
PER = ("runtime", "template")
LAST = 30
"""Days that are shown unless something else is asked for."""
DAY = 86_400 * clock.SECOND
MOST_DAYS = 1500
UNKNOWN = "?"
"""What a person is shown where nobody counted; nothing is not zero."""
WIDE = 112
"""Columns a table needs; a narrower window gets a few lines per session."""
HEADS = ("input", "output", "cache read", "written", "human", "injected", "results", "calls", "compacted", "cost")


@click.command("stats")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", type=SESSION, shell_complete=completing.session_or_file)
@click.option("--since", type=Instant(), metavar="WHEN", help="Only what was used since then (default: 30 days)")
@click.option("--until", type=Instant(end=True), metavar="WHEN", help="Only what was used until then")
@click.option("--by", type=click.Choice(BY), help="Add up by one thing")
@click.option("--per", type=click.Choice(PER), help="With `--by tool`: the tools of each apart")
@project_option("Only of this folder, or of one of this name")
@click.option("--details", is_flag=True, help="Of a SESSION: time, tools, files, compactions, who told whom")
@click.option("--window", type=TimeSpan(), metavar="SPAN", help="With --details: where the time went in each, like 10m")
@click.option("--no-agents", is_flag=True, help="Leave out the sub-agents of a SESSION")
@json_option
@pass_repo_or_file
def stats_command(
    repo: Repo,
    sessions: tuple[str, ...],
    since: int | None,
    until: int | None,
    by: str | None,
    per: str | None,
    project: str,
    details: bool,
    window: int | None,
    no_agents: bool,
    as_json: bool,
) -> None:
    """Count tokens, what they cost, prompts and tools, each once

    Without a SESSION it shows the last 30 days in one screen: what was used, what that costs at list price, the days,
    and the projects, models, sessions and tools with the most of it. Days are those of the local time zone. WHEN is
    `today`, `yesterday`, `7d`, `12h`, a day like 2026-01-31 or an instant as RFC 3339.

    A SESSION is the id of a session in the store, or a unique beginning of one, at least four characters, or the
    file of a session (sub-agents whose files lie beside it are counted along). A session's figures are its own, of
    every version of it, each record once; those with its sub-agents stand beside them. Of several sessions there is a
    total, in which what a fork copied counts once. So it is with --json where nothing else is asked for: every session
    in the store, and the total. For example:

        harken stats
        harken stats --since 7d --by project
        harken stats 5b6258c8
        harken stats 5b6258c8 --details --window 10m
        harken stats --since 7d --by tool --per template
        harken stats --json
    """
    windowed = since is not None or until is not None or bool(by or project)
    if sessions and windowed:
        raise click.UsageError("a SESSION is counted as a whole; name none with --since, --until, --by or --project")
    if per and by != "tool":
        raise click.UsageError("--per tells tools apart: say `--by tool`, too")
    if window and not details:
        raise click.UsageError("--window is for the --details of a SESSION")
    if details:
        _tell_details(repo, sessions, window or 0, as_json=as_json)
    elif sessions or (as_json and not windowed):
        _count_sessions(repo, sessions, agents=not no_agents, as_json=as_json)
    else:
        _count_window(repo, since, until, by, per or "", project, as_json=as_json)


def _tell_details(repo: Repo, sessions: tuple[str, ...], window: int, *, as_json: bool) -> None:
    from harken.api.report import ReportRequest, report

    from .stats_details import draw_details

    if not sessions:
        raise click.UsageError("--details is of a SESSION: name one, or more")
    for word in sessions:
        place = {"file" if is_file(word) else "session": word}
        one = report(repo, ReportRequest(**place, window_seconds=window))
        if as_json:
            ui.json_line(one)
        else:
            draw_details(one)


def _count_sessions(repo: Repo, sessions: tuple[str, ...], *, agents: bool, as_json: bool) -> None:
    from harken.api.stats import StatsRequest, stats

    from .config import prices

    files = tuple(word for word in sessions if is_file(word))
    known = tuple(word for word in sessions if word not in files)
    found: list[StatsAnswer | StatsTotal] = []
    try:
        for one in stats(repo, StatsRequest(sessions=known, files=files, agents=agents, prices=prices() or "")):
            if as_json:
                ui.json_line(one)
            found.append(one)
    except (Corrupt, Evicted):  # told when the others have been
        if not as_json:
            _draw(found)
        raise
    if not as_json:
        _draw(found)
    if not found:
        ui.note("no sessions; `harken import` imports some")


def _count_window(
    repo: Repo, since: int | None, until: int | None, by: str | None, per: str, project: str, *, as_json: bool
) -> None:
    from harken.api.usage import UsageAnswer, UsageRequest, UsageTotal, usage

    from .config import prices
    from .stats_window import OVERVIEW, draw_by, draw_overview

    now = clock.now()
    days = [clock.local_period(now - back * DAY) for back in range(LAST - 1, -1, -1)]
    is_named = since is not None or until is not None
    start = since if is_named else clock.parse_when(days[0], now)
    wanted = (by,) if by else ("day",) if as_json else OVERVIEW
    request = UsageRequest(
        since="" if start is None else clock.format_instant(start),
        until="" if until is None else clock.format_instant(until + 1),
        by=wanted,
        per=per,
        project=project,
        prices=prices() or "",
    )
    found, total = list[UsageAnswer](), None
    for one in usage(repo, request):
        if as_json:
            ui.json_line(one)
        if isinstance(one, UsageAnswer):
            found.append(one)
            continue
        assert isinstance(one, UsageTotal)
        total = one
        if not as_json and by:
            draw_by(by, found, one, per=per)
        elif not as_json:
            draw_overview(found, one, _days(start, until, now) if is_named else days)
        if not one.requests and not one.calls and not (one.behind or one.stale):
            where = f" in {ui.one_line(project)} (`harken stats --by project` names others)" if project else ""
            ui.note(
                f"nothing was used in that time{where}; `--since` looks further back, `harken import` imports sessions"
            )
    if total is not None:  # last, since what could not be counted is told with more words
        tell_what_is_missing(
            behind=total.behind,
            stale=total.stale,
            missing=total.missing,
            damaged=total.damaged,
            problem=total.problem,
        )


def _days(start: int | None, end: int | None, now: int) -> list[str]:
    """The days of a window, the last ones of a very long one; none where it has no beginning."""
    last = now if end is None else min(end, now)
    if start is None:
        return []
    start = max(start, last - MOST_DAYS * DAY)
    found = [clock.local_period(instant) for instant in range(start, last, DAY)]
    return list(dict.fromkeys([*found, clock.local_period(last)]))


class StatsLine(NamedTuple):
    """What is drawn: a session, an agent or several together."""

    name: str
    figures: FiguresAnswer
    counted: int = 1
    """How many sessions and agents are in it."""
    unknown: int = 0
    """Of how many of these nobody knows the cost."""
    price: PriceAnswer | None = None
    """What it costs at list price."""

    @property
    def cost(self) -> str:
        """What it cost; where parts are unknown, the least it can be."""
        cost = self.figures.cost_usd_micros
        return (">= " if self.unknown and cost is not None else "") + _money(cost)


def _draw(found: Sequence[StatsAnswer | StatsTotal]) -> None:
    lines = [line for one in found for line in _lines(one)]
    if len(lines) > 1 and ui.console().width >= WIDE:
        _draw_table(lines)
    else:
        for line in lines:
            _draw_block(line)
    for line in lines[-1:]:
        if line.unknown and line.counted > 1:
            least = (
                "unknown"
                if line.figures.cost_usd_micros is None
                else f"at least {_money(line.figures.cost_usd_micros)}"
            )
            ui.row(f"cost {least}, unknown for {line.unknown} of {line.counted}")


def _lines(one: StatsAnswer | StatsTotal) -> Iterator[StatsLine]:
    from harken.api.stats import StatsTotal

    if isinstance(one, StatsTotal):
        total = one.total
        agents = f", {ui.count(total.agents, 'sub-agent')}" if total.agents else ""
        name = f"total of {ui.count(total.sessions, 'session')}{agents}"
        yield StatsLine(name, total, total.sessions + total.agents, total.unknown_costs)
        return
    yield StatsLine(one.session, one, price=one.price)
    if one.carried is not None:
        yield StatsLine("  of these carried over", one.carried, price=one.price_carried)
    for agent in one.agents:
        yield StatsLine("  └ " + agent.session.removeprefix(one.session + "/"), agent, price=agent.price)
    if one.with_agents is not None:
        counted = 1 + len(one.agents)
        yield StatsLine("  with its agents", one.with_agents, counted, one.unknown_costs, one.price_with_agents)


def _cells(line: StatsLine) -> list[str]:
    row = line.figures
    tokens, prompts = row.usage, row.prompts
    numbers = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write]
    numbers += [prompts.human, prompts.injected, prompts.tool_result, sum(row.tools.values()), row.compactions]
    return [*map(_number, numbers), line.cost]


def _draw_table(drawn: Sequence[StatsLine]) -> None:
    rows = [_cells(line) for line in drawn]
    widths = [max(len(head), *(len(row[place]) for row in rows)) for place, head in enumerate(HEADS)]
    first = max(12, min(40, ui.console().width - sum(widths) - 2 * len(widths)))
    ui.line(" " * first + "".join(f"  {head:>{width}}" for head, width in zip(HEADS, widths, strict=True)))
    for line, cells in zip(drawn, rows, strict=True):
        # Of an id the beginning tells most; of a path the end.
        name = ui.one_line(line.name)
        short = ui.fit_path(name, first) if "/" in name else ui.fit(name, first)
        ui.line(
            ui.padded(short, first) + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        )


def _draw_block(line: StatsLine) -> None:
    name, row = line.name, line.figures
    inset = "    " if name.startswith(" ") else "  "
    tokens, prompts = row.usage, row.prompts
    ui.row(name, getattr(row, "title", ""))
    ui.row(f"{inset}tokens   {_number(tokens.input)} in, {_number(tokens.output)} out")
    ui.row(f"{inset}cache    {_number(tokens.cache_read)} read, {_number(tokens.cache_write)} written")
    ui.row(f"{inset}prompts  {prompts.human:,} human, {prompts.injected:,} injected")
    ui.row(f"{inset}results  {prompts.tool_result:,} of tools; {row.compactions:,} compactions")
    for tool, count in row.tools.items():
        ui.row(f"{inset}tool     {tool} {count:,}")
    ui.row(f"{inset}cost     {line.cost}")
    if line.price is not None:
        _draw_price(line.price, row.cost_usd_micros if not line.unknown else None, inset)


def _draw_price(price: PriceAnswer, said: int | None, inset: str) -> None:
    """What it costs at list price, how that differs from what the runtime said, and what has no price."""
    known = price.usd_micros
    least = ">= " if price.unpriced and known is not None else ""
    other = (
        "" if known is None or said is None or least else f" ({(known - said) / 1e6:+,.4f} to what the runtime said)"
    )
    ui.row(f"{inset}price    {least}{_money(known)}{other}")
    for model, count in price.unpriced.items():
        ui.row(f"{inset}         nobody knows what {ui.count(count, 'request')} of {model or '(no model)'} cost")
    if price.unverified:
        ui.row(f"{inset}         the price was not checked of {', '.join(price.unverified)}")


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _money(micros: int | None) -> str:
    return UNKNOWN if micros is None else f"${micros / 1e6:,.4f}"
