"""`harken sessions`: what sessions there are, where they came from and how far they go, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harken import clock
from harken.errors import PartlyCorrupt

from . import completing, ui
from .options import PROJECT, json_option, pass_repo
from .session_table import gap, table

if TYPE_CHECKING:
    from harken.api.sessions import SessionAnswer
    from harken.repo import Repo


class SinceWhen(click.ParamType):  # type: ignore[type-arg]
    """A time as people say it; the answer is the instant as RFC 3339."""

    name = "when"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The instant that `today`, `yesterday`, `7d`, `12h`, a day (local time) or an RFC 3339 text means."""
        if not value:
            return ""
        instant = clock.parse_when(value, clock.now())
        if instant is None or not clock.in_calendar(instant):
            self.fail(
                f"{value!r} is no time; `yesterday`, `7d`, `12h`, 2026-01-31 or 2026-01-31T12:00:00Z are", param, ctx
            )
        return clock.format_instant(instant)


@click.command("sessions")
@click.argument("prefix", default="", shell_complete=completing.sessions)
@click.option("-n", "limit", type=click.IntRange(min=0), help="Show at most N sessions")
@click.option("--since", type=SinceWhen(), default="", metavar="WHEN", help="Only those active since then (see above)")
@click.option(
    "--project",
    type=PROJECT,
    default="",
    metavar="P",
    shell_complete=completing.projects,
    help="Only those of this folder or name",
)
@click.option(
    "--runtime", default="", metavar="R", shell_complete=completing.runtimes, help="Only those of this runtime"
)
@click.option("--match", default="", metavar="TEXT", help="Only those with TEXT in the title or the file's path")
@click.option("--all", "everything", is_flag=True, help="List sub-agents and copies that nobody used, too")
@click.option("--top", is_flag=True, help="Leave out the sessions of sub-agents, with --json too")
@json_option
@pass_repo
def sessions_command(
    repo: Repo,
    prefix: str,
    limit: int | None,
    since: str,
    project: str,
    runtime: str,
    match: str,
    everything: bool,
    top: bool,
    as_json: bool,
) -> None:
    """List the sessions in the store

    The last active first; those whose id begins with PREFIX, or all. A line has a beginning of the id that no other
    session has (in a pipe all of it), how long ago something happened, the runtime, the folder that was worked in, the
    title, the messages of the session as it stands, what it cost with its sub-agents, and where it was continued. The
    cost is that at list price (with a `+` where a model has none), else what the runtime said.

    With --all come the sessions of sub-agents, below the one that made them, and those that `harken resume` wrote and
    nobody used; --json has them always (`parent`, `unused`). P is the path of a folder, with all below it, or the name
    of one. WHEN is `today`, `yesterday`, a day like 2026-01-31 (of the local time zone), so many hours or days like
    `12h` or `7d`, or an instant as RFC 3339. For example:

        harken sessions --since yesterday
        harken sessions --project harken -n 5
    """
    from harken.api.sessions import SessionsRequest, sessions

    from .config import prices

    request = SessionsRequest(
        prefix=prefix,
        limit=limit,
        since=since,
        project=project,
        runtime=runtime,
        match=match,
        costs=True,
        prices=prices() or "",
        top=top or not (everything or as_json or "/" in prefix),
        unused=everything or as_json or bool(prefix),
    )
    found = sessions(repo, request, note=ui.warn)
    if as_json:
        for one in found:
            ui.json_line(one)
        return
    rows, problem = list["SessionAnswer"](), None
    try:
        rows.extend(found)
    except PartlyCorrupt as error:
        problem = error
    wide = ui.width()
    ui.rows(table(rows, wide, head=ui.is_terminal()), gap=gap(wide))
    if not rows and (runtime or since or match or project):
        ui.note("no such sessions; `harken sessions` lists all")
    elif not rows:
        ui.note("no sessions" + (f" begin with {prefix!r}" if prefix else "; `harken import` imports some"))
    if problem is not None:
        raise problem
