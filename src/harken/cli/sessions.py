"""`harken sessions`: what sessions there are, where they came from and how far they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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


@click.command("sessions")
@click.argument("prefix", default="", shell_complete=completing.sessions)
@click.option(
    "--runtime", default="", metavar="R", shell_complete=completing.runtimes, help="Only those of this runtime"
)
@click.option("--top", is_flag=True, help="Leave out the sessions of sub-agents")
@json_option
@pass_repo
def sessions_command(repo: Repo, prefix: str, runtime: str, top: bool, as_json: bool) -> None:
    """List the sessions in the store

    Newest first; those whose id begins with PREFIX, or all. A sub-agent's session stands below its parent's. In a
    narrow window an id is shortened to a beginning that no other session has. For example:

        harken sessions --runtime claude-code --top
    """
    from harken.api.sessions import SessionsRequest, sessions

    found = sessions(repo, SessionsRequest(prefix=prefix, runtime=runtime, top=top))
    if as_json:
        for one in found:
            ui.json_line(one)
        return
    rows = list(found)
    narrow = 0 < ui.width() < NARROW
    short = _shortened([row.session for row in rows if not row.parent]) if narrow else {}
    for row in rows:
        ui.row(*(_narrow(row, short) if narrow else _wide(row)))
    if not rows:
        ui.note("no sessions" + (f" begin with {prefix!r}" if prefix else "; `harken import` imports some"))


def _wide(row: SessionAnswer) -> list[str]:
    inset = "└ " if row.parent else ""
    title = excerpt(row.title, TITLE)
    started, counted = f"{when(row.started):<19}", f"{row.messages:>5} messages"
    return [row.tip or "(empty)     ", started, counted, f"{row.runtime:<11}", inset + row.session, title]


def _narrow(row: SessionAnswer, short: dict[str, str]) -> list[str]:
    """The same in a narrow window: no year, no seconds, no runtime."""
    name = "└ " + (row.agent or row.session) if row.parent else short[row.session]
    return [row.tip or "(empty)     ", f"{when(row.started)[5:16]:<11}", f"{row.messages:>4}", name, row.title]


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
