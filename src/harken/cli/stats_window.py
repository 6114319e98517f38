"""How a window of time is drawn: one screen with everything, or a table by one thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from harken import clock

from . import ui

if TYPE_CHECKING:
    from harken.api.usage import SpendingAnswer, UsageAnswer, UsageTotal

INSET = 2
OVERVIEW = ("day", "project", "model", "session", "tool")
TOP = 5
DAYS = 7
"""Days that have a line of their own; the sparkline has them all."""
MOST_BARS = 54
"""A bar is a day, or several in a long window."""
BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_NOBODY = {"project": "(no folder)", "model": "(no model)", "session": "(no session)"}
WIDEST = 100


def draw_overview(found: Sequence[UsageAnswer], total: UsageTotal, days: Sequence[str]) -> None:
    """The last days in one screen."""
    parts = {by: [one for one in found if one.by == by] for by in OVERVIEW}
    since, until = clock.parse_instant(total.since), clock.parse_instant(total.until)
    first = "the beginning" if since is None else clock.local_period(since)
    last = clock.local_period(clock.now() if until is None else until - 1)
    ui.row(f"{first} to {last} ({total.zone})")
    ui.fact(
        "", f"{price(total)} at list price, {ui.count(total.sessions, 'session')}, {total.requests:,} requests", INSET
    )
    tokens = total.usage
    read, written = short(tokens.cache_read), short(tokens.cache_write)
    ui.fact("", f"{short(tokens.input)} in, {short(tokens.output)} out, {read} cache read, {written} written", INSET)
    _draw_busiest(total)
    by_day = {one.key: one.price_usd_micros or 0 for one in parts["day"]}
    if any(by_day.values()) and days:
        step = -(-len(days) // MOST_BARS)
        ends = range(len(days), 0, -step)
        ui.row(
            f"  {sparkline([sum(by_day.get(day, 0) for day in days[max(0, end - step) : end]) for end in ends][::-1])}"
        )
    draw_table("day", parts["day"][-DAYS:])
    for by in OVERVIEW[1:]:
        draw_table(by, parts[by][:TOP], left=len(parts[by]) - TOP)
    draw_remarks(total)


def _draw_busiest(total: UsageTotal) -> None:
    most = max(map(max, total.hours))
    if most:
        day, hour = next((day, row.index(most)) for day, row in enumerate(total.hours) if most in row)
        at_once = ui.count(total.peak_sessions, "session")
        hours = f"{WEEKDAYS[day]} {hour:02d}:00 to {hour + 1:02d}:00"
        ui.fact("", f"busiest {hours}; at most {at_once} at the same time", INSET)


def draw_by(by: str, found: Sequence[UsageAnswer], total: UsageTotal, *, per: str = "") -> None:
    """A table by one thing, and the total."""
    draw_table(by, found, per=per)
    ui.row(f"total  {price(total)} at list price, {ui.count(total.sessions, 'session')} ({total.zone})")
    draw_remarks(total)


def draw_remarks(total: UsageTotal) -> None:
    """What the figures do not say."""
    if total.uncounted:
        ui.fact(
            "", f"what was used in {total.uncounted:,} of the sessions and sub-agents is not known: they do not say", 0
        )
    if total.unpriced:
        names = ", ".join(f"{model or '(no model)'} ({count:,})" for model, count in total.unpriced.items())
        ui.fact("", f"no list price is known for the requests to {names}", 0)
    if total.unverified:
        ui.fact("", f"the price was not checked of {', '.join(total.unverified)}", 0)
    if total.cost_usd_micros is not None:
        ui.fact("", f"the runtimes themselves said {money(total.cost_usd_micros)}, for what they tell the cost of", 0)


def draw_table(by: str, found: Sequence[UsageAnswer], *, left: int = 0, per: str = "") -> None:
    """Lines with a name in front, cut so that the figures fit."""
    if not found:
        return
    cells = [_tool_cells(one) if by == "tool" else _cells(one) for one in found]
    heads: tuple[str, ...] = (
        ("calls", "failed", "took") if by == "tool" else ("price", "sessions", "in", "out", "cached")
    )
    width = min(ui.width() or 80, WIDEST)
    while len(heads) > 1 and width - _wide(heads, cells) < 24:
        heads, cells = heads[:-1], [row[:-1] for row in cells]
    room = max(12, width - _wide(heads, cells))
    columns = [max(len(head), *(len(row[at]) for row in cells)) for at, head in enumerate(heads)]
    ui.line(_line(f"{by}s", room, heads, columns))
    for one, row in zip(found, cells, strict=True):
        ui.line(_line(f"  {_name(by, one, room - 2, per)}", room, row, columns))
    if left > 0:
        ui.line(f"  and {left:,} more")


def _line(name: str, room: int, cells: Sequence[str], columns: Sequence[int]) -> str:
    pad = " " * (room - ui.columns(name))
    return name + pad + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, columns, strict=True))


def _wide(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    return sum(2 + max(len(head), *(len(row[at]) for row in cells)) for at, head in enumerate(heads))


def _name(by: str, one: UsageAnswer, room: int, per: str) -> str:
    name = ui.one_line(one.key) or _NOBODY.get(by, "(unknown)")
    if by == "project" and (not ui.width() or ui.columns(name) <= room):
        return name  # whole in a pipe: behind a long one its own figures stand further to the right
    if by == "project":
        name = ui.fit_path(name, room)
    elif by == "session" and one.title:
        name = f"{name[:8]} {ui.one_line(one.title)}"
    elif per:
        name = f"{ui.one_line(one.per) or f'(no {per})'}: {name}"
    return ui.fit(name, room)


def _cells(one: UsageAnswer) -> list[str]:
    tokens = one.usage
    cached = [count for count in (tokens.cache_read, tokens.cache_write) if count is not None]
    return [
        price(one),
        f"{one.sessions:,}",
        short(tokens.input),
        short(tokens.output),
        short(sum(cached) if cached else None),
    ]


def _tool_cells(one: UsageAnswer) -> list[str]:
    return [f"{one.calls:,}", f"{one.failed:,}", f"{one.took_seconds:,.0f}s"]


def price(one: SpendingAnswer) -> str:
    """What it costs at list price; where prices are missing, the least it can be."""
    known = money(one.price_usd_micros)
    return f">= {known}" if one.unpriced and one.price_usd_micros is not None else known


def money(micros: int | None) -> str:
    """Dollars with cents, more exactly below one; `?` where nobody knows."""
    if micros is None:
        return "?"
    return f"${micros / 1e6:,.2f}" if micros >= 1_000_000 or not micros else f"${micros / 1e6:,.4f}"


def short(count: int | None) -> str:
    """A number in four or five characters; `?` where nobody counted."""
    if count is None:
        return "?"
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.1f}{name}"
    return str(count)


def sparkline(values: Iterable[int]) -> str:
    """A bar for each value; the smallest that is not zero can be seen."""
    values = list(values)
    bars = BARS if ui.speaks_unicode() else PLAIN_BARS
    most = max(values, default=0)
    return "".join(" " if not value else bars[(value * len(bars) - 1) // most if most else 0] for value in values)
