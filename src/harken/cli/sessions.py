"""`harken sessions`: what sessions there are, where they came from and how far they go."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from harken import clock
from harken.errors import PartlyCorrupt

from . import completing, ui
from .commits import excerpt, when
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.api.sessions import SessionAnswer
    from harken.repo import Repo

NARROW = 100
"""Columns under which ids are shortened and less is shown."""
SHORT_ID = 8
TITLE = 60
HOUR = 3_600_000_000
"""Microseconds, as all instants are."""
DAY = 24 * HOUR


class SinceWhen(click.ParamType):  # type: ignore[type-arg]
    """A time as people say it; the answer is the instant as RFC 3339."""

    name = "when"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The instant that `today`, `yesterday`, `7d`, `12h`, a day or an RFC 3339 text means."""
        if not value:
            return ""
        now = clock.now()
        days = {"today": 0, "yesterday": 1}.get(value)
        ago = re.fullmatch(r"(\d{1,5})([hd])", value, re.ASCII)
        if days is not None:
            instant: int | None = now - now % DAY - days * DAY
        elif ago is not None:
            instant = now - int(ago[1]) * (DAY if ago[2] == "d" else HOUR)
        else:
            instant = clock.parse_instant(f"{value}T00:00:00Z" if len(value) == len("2026-01-31") else value)
        if instant is None or not clock.in_calendar(instant):
            self.fail(
                f"{value!r} is no time; `yesterday`, `7d`, `12h`, 2026-01-31 or 2026-01-31T12:00:00Z are", param, ctx
            )
        return clock.format_instant(instant)


@click.command("sessions")
@click.argument("prefix", default="", shell_complete=completing.sessions)
@click.option(
    "--runtime", default="", metavar="R", shell_complete=completing.runtimes, help="Only those of this runtime"
)
@click.option("--top", is_flag=True, help="Leave out the sessions of sub-agents")
@click.option("--since", type=SinceWhen(), default="", metavar="WHEN", help="Only those active since then (see above)")
@click.option("--match", default="", metavar="TEXT", help="Only those with TEXT in the title or the file's path")
@json_option
@pass_repo
def sessions_command(repo: Repo, prefix: str, runtime: str, top: bool, since: str, match: str, as_json: bool) -> None:
    """List the sessions in the store

    The last active first, with the time of that in UTC; those whose id begins with PREFIX, or all. A sub-agent's
    session stands below the one that made it. Messages are the prompts and responses of a session as it stands; `stats`
    counts those of its older versions as well, each record once. In a narrow window an id is shortened to a beginning
    that no other session has. WHEN is `today`, `yesterday`, a day like 2026-01-31, so many hours or days like `12h` or
    `7d`, or an instant as RFC 3339. For example:

        harken sessions --since yesterday --top
        harken sessions --runtime claude-code --match harken
    """
    from harken.api.sessions import SessionsRequest, sessions

    request = SessionsRequest(prefix=prefix, runtime=runtime, top=top, since=since, match=match)
    found = sessions(repo, request)
    if as_json:
        for one in found:
            ui.json_line(one)
        return
    rows, problem = list["SessionAnswer"](), None
    try:
        rows.extend(found)
    except PartlyCorrupt as error:
        problem = error
    narrow = 0 < ui.width() < NARROW
    short = _shortened([row.session for row in rows if not row.parent]) if narrow else {}
    for row in rows:
        ui.row(*(_narrow(row, short) if narrow else _wide(row)))
    if not rows and (runtime or top or since or match):
        ui.note("no such sessions; `harken sessions` lists all")
    elif not rows:
        ui.note("no sessions" + (f" begin with {prefix!r}" if prefix else "; `harken import` imports some"))
    if problem is not None:
        raise problem


def _wide(row: SessionAnswer) -> list[str]:
    inset = "└ " if row.parent else ""
    title = excerpt(row.title, TITLE) + _origin(row)
    active, counted = (
        f"{_minute(row.active):<20}",
        f"{row.messages:>5} {'message' if row.messages == 1 else 'messages':<8}",
    )
    return [row.tip or "(empty)     ", active, counted, f"{row.runtime:<11}", inset + row.session, title]


def _narrow(row: SessionAnswer, short: dict[str, str]) -> list[str]:
    """The same in a narrow window: no runtime, and of the time the day and the minute, or the date of another year."""
    name = "└ " + (row.agent or row.session) if row.parent else short[row.session]
    return [
        row.tip or "(empty)     ",
        f"{_short_time(row.active):<12}",
        f"{row.messages:>4}",
        name,
        row.title + _origin(row),
    ]


def _origin(row: SessionAnswer) -> str:
    lost = " (lost in part)" if row.lost else ""
    return lost + (f" (continues {(row.continues or row.continues_at)[:SHORT_ID]})" if row.continues_at else "")


def _minute(time: str | None) -> str:
    return f"{when(time)[:16]} UTC" if time else "?"


def _short_time(time: str | None) -> str:
    if not time:
        return "?"
    return f"{when(time)[5:16]}Z" if time[:4] == clock.format_instant(clock.now())[:4] else time[:10]


def _shortened(sessions: list[str]) -> dict[str, str]:
    """For each id the shortest beginning, of at least eight characters, that no other has."""
    ordered = sorted(sessions)
    found = {}
    for before, one, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_shared(one, before), _shared(one, after))
        found[one] = one[: max(SHORT_ID, shared + 1)]
    return found


def _shared(one: str, other: str) -> int:
    """How many first characters two ids have in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
