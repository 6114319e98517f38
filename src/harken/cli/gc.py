"""`harken gc`: let go of what nothing needs; commits and what they hold are never among it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.store import GcReport


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing")
@click.option("--keep-cache", is_flag=True, help="Leave the remembered conversations alone")
@json_option
@pass_repo
def gc_command(repo: Repo, dry_run: bool, keep_cache: bool, as_json: bool) -> None:
    """Let go of what nothing needs

    Remembered conversations (they are made again when asked for), ephemeral artifacts past their time, and the room
    that packing left. Every commit stays, with its bytes. For example:

        harken gc --dry-run
    """
    from harken.store import gc

    report = gc(repo.store, dry_run=dry_run, keep_cache=keep_cache, now=repo.clock())
    if as_json:
        import msgspec

        ui.json_line(msgspec.structs.asdict(report))
    else:
        _print(report)


def _print(report: GcReport) -> None:
    verb = "would go" if report.dry_run else "went"
    for name in report.names:
        ui.line(f"{name} {verb}")
    ui.note(
        f"{verb}: {report.expired} expired and {report.evicted} evicted artifacts ({report.freed:,} bytes), "
        f"{report.frames} frames, {report.cache:,} bytes of cache, {report.pages} empty pages; "
        f"{report.kept} artifacts stay"
    )
