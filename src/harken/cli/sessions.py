"""`harken sessions`: what sessions there are, where they came from and how far they go, one line each."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from harken import clock
from harken.errors import Corrupt

from . import completing, ui
from .options import Instant, json_option, pass_repo, project_option
from .session_table import gap, table

if TYPE_CHECKING:
    from harken.api.sessions import SessionAnswer
    from harken.repo import Repo


@click.command("sessions")
@click.argument("prefix", default="", shell_complete=completing.sessions)
@click.option("-n", "limit", type=click.IntRange(min=0), help="Show at most N sessions")
@click.option("--since", type=Instant(), metavar="WHEN", help="Only those active since then (see above)")
@project_option("Only those of this folder or name")
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
    since: int | None,
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
        since="" if since is None else clock.format_instant(since),
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
    elif runtime or since is not None or match or project:
        shown = _show(found, none="no such sessions; `harken sessions` lists all")
        if project and not shown and any(map(_lacks_project, sessions(repo, SessionsRequest()))):
            ui.note(NO_PROJECT)
    else:
        none = "" if limit == 0 else "no sessions; `harken import` imports some"
        _show(found, none=_none_with(prefix) if prefix else none)


def _none_with(prefix: str) -> str:
    """What is said where no id begins so: whoever gave the word may have meant something else by it."""
    word = shlex.quote(prefix)
    if clock.parse_when(prefix, clock.now()) is not None:
        return f"no session has an id that begins with {prefix!r}; for a time: `harken sessions --since {word}`"
    meant = f"`--project {word}` looks at folders, `--match {word}` at titles"
    return f"no session has an id that begins with {prefix!r}; {meant}"


NO_PROJECT = "sessions that an earlier Harken imported have no project until `harken import --verify` reads them again"
_NAMES_NONE = frozenset({"harken", "std-001", "std-008", "otel"})
"""Whose sessions never say in which folder they were held."""


def _lacks_project(row: SessionAnswer) -> bool:
    """Whether a session that names a folder is kept without it."""
    return bool(row.source) and not row.project and row.runtime not in _NAMES_NONE


def _show(found: Iterable[SessionAnswer], *, none: str) -> bool:
    """Show the table, or say that it has no lines; what cannot be read is told behind it."""
    rows, problem = list["SessionAnswer"](), None
    try:
        rows.extend(found)
    except Corrupt as error:
        problem = error
    wide = ui.width()
    ui.rows(table(rows, wide, head=ui.is_terminal()), gap=gap(wide))
    if not rows and none:
        ui.note(none)
    elif any(map(_lacks_project, rows)) and not any(row.project for row in rows):
        ui.note(NO_PROJECT)
    if problem is not None:
        raise problem
    return bool(rows)
