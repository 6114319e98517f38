"""`harken gc`: remove what nothing needs; commits and their bytes always stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .options import change_repo, json_option

if TYPE_CHECKING:
    from harken.api.upkeep import GcAnswer
    from harken.repo import Repo


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing")
@click.option("--keep-cache", is_flag=True, help="Leave the cache alone")
@json_option
@change_repo
def gc_command(repo: Repo, dry_run: bool, keep_cache: bool, as_json: bool) -> None:
    """Remove what nothing needs

    The cache (its conversations are made again when asked for), ephemeral artifacts past their time, and the empty
    space that packing left. Every commit stays, with its bytes. For example:

        harken gc --dry-run
    """
    from harken.api.upkeep import GcRequest, gc

    report = gc(repo, GcRequest(dry_run=dry_run, keep_cache=keep_cache))
    if as_json:
        ui.json_line(report)
    else:
        _print(report)


def _print(report: GcAnswer) -> None:
    verb = "would be removed" if report.dry_run else "removed"
    for name in report.names:
        ui.line(f"{name} {verb}")
    ui.note(
        f"{verb}: {report.expired} expired and {report.evicted} evicted artifacts ({report.freed:,} bytes), "
        f"{report.frames} frames, {report.cache:,} bytes of cache, {report.pages} empty pages; "
        f"{report.kept} artifacts stay"
    )
