"""`harken resolve`: what a principal knew at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .commits import print_made
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("resolve")
@click.argument("principal")
@click.argument("time", default="now")
@json_option
@pass_repo
def resolve_command(repo: Repo, principal: str, time: str, as_json: bool) -> None:
    """Find what a principal knew at a time

    The newest commit at or before TIME (like 2026-11-15T10:30:00Z; `now` unless given). For example:

        harken resolve claude-code:3f2a91bc 2026-11-15T10:30:00+01:00
    """
    from harken.api.commits import ResolveRequest, resolve

    found = resolve(repo, ResolveRequest(principal=principal, time=None if time == "now" else time))
    print_made(found, as_json=as_json)
