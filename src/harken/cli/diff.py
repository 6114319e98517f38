"""`harken diff`: what one context knows that another does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from . import ui
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.events import Event
    from harken.repo import Repo


@click.command("diff")
@click.argument("a")
@click.argument("b")
@json_option
@pass_repo
def diff_command(repo: Repo, a: str, b: str, as_json: bool) -> None:
    """Say what one context knows that another does not

    The newest commit both stand on, then the messages only A has (-) and those only B has (+). For example:

        harken diff review finding-1
    """
    found = repo.diff(a, b)
    if as_json:
        ui.json_line({"ancestor": found.ancestor.id if found.ancestor else None, "unread": found.unread})
    else:
        ui.line(f"common ancestor: {found.ancestor.short if found.ancestor else 'none'}")
    _side("-", "here", found.here, as_json=as_json)
    _side("+", "there", found.there, as_json=as_json)
    if found.unread:
        ui.warn(f"{found.unread} commits are in formats that nobody here can read")


def _side(sign: str, side: str, events: Sequence[Event], *, as_json: bool) -> None:
    from harken.context.lines import line
    from harken.events.wire import to_wire

    for event in events:
        if as_json:
            ui.json_line({"side": side, "event": to_wire(event)})
        else:
            ui.line(f"{sign} {line(event)}")
