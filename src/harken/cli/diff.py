"""`harken diff`: what one context knows that another does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .opening import pass_repo_or_session
from .options import REF, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("diff")
@click.argument("a", type=REF, shell_complete=completing.session_or_file)
@click.argument("b", type=REF, shell_complete=completing.session_or_file)
@json_option
@pass_repo_or_session
def diff_command(repo: Repo, a: str, b: str, as_json: bool) -> None:
    """Say what one context knows that another does not

    The newest commit both stand on, then the messages only A has (-) and those only B has (+). For example:

        harken diff review finding-1
    """
    from harken.api.commits import DiffRequest, DiffStart, diff

    unread = lines = 0
    for one in diff(repo, DiffRequest(a=a, b=b)):
        if as_json:
            ui.json_line(one)
        elif isinstance(one, DiffStart):
            ui.line(f"common ancestor: {one.ancestor_short or 'none'}")
        else:
            lines += 1
            mark, style = ("-", "bad") if one.side == "here" else ("+", "good")
            ui.row(ui.Styled(f"{mark} {one.line}", style))
        if isinstance(one, DiffStart):
            unread = one.unread
    if not (lines or unread or as_json):
        ui.note("nothing differs: both know the same")
    if unread:
        ui.warn(f"{unread} commits cannot be read here, and are on neither side")
