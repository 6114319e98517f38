"""`harken pin`: bytes that no clean-up may remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .options import REF, change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("pin")
@click.argument("ref", type=REF, shell_complete=completing.refs)
@click.option("--off", is_flag=True, help="Stop keeping them for ever")
@click.option("--only", is_flag=True, help="This commit's bytes alone, not those of the chain behind it")
@json_option
@change_repo
def pin_command(repo: Repo, ref: str, off: bool, only: bool, as_json: bool) -> None:
    """Keep a commit's bytes for ever, or stop doing so

    A commit is worth little without the chain behind it, so the chain is pinned too unless --only. For example:

        harken pin before-the-rewrite
    """
    from harken.api.names import PinRequest, pin

    done = pin(repo, PinRequest(ref=ref, off=off, only=only))
    if as_json:
        ui.json_line(done)
    else:
        how = "are no longer pinned" if off else "are kept for ever"
        ui.note(f"{done.artifacts} artifacts of {done.short} {how}")
