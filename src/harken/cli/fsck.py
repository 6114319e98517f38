"""`harken fsck`: is everything in the store what it says it is?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.api.upkeep import FsckCounts
    from harken.repo import Repo

CORRUPT = 9


@click.command("fsck")
@click.option("--read-data", is_flag=True, help="Read every byte, not only the tables")
@click.option("--repair", is_flag=True, help="Move what is damaged into quarantine; the file is copied aside first")
@json_option
@pass_repo
def fsck_command(repo: Repo, read_data: bool, repair: bool, as_json: bool) -> int:
    """Check the store, and repair it on request

    Names, seals, links and sums; with --read-data every frame and artifact as well. Changes nothing without
    --repair, which says what is lost. Exits with 9 where something is corrupt and was not repaired. For example:

        harken fsck --read-data
    """
    from harken.api.upkeep import FsckFinding, FsckRequest, fsck

    findings, ok = 0, True
    for one in fsck(repo, FsckRequest(read_data=read_data, repair=repair)):
        if isinstance(one, FsckFinding):
            findings += 1
        else:
            ok = one.report.ok
        if as_json:
            ui.json_line(one)
        elif isinstance(one, FsckFinding):
            repaired = "  (repaired)" if one.repaired else ""
            ui.line(f"{one.severity:<8} {one.what} {one.which}: {one.why}{repaired}")
        else:
            _remark(one.report, read_data=read_data, findings=findings)
    return 0 if ok else CORRUPT


def _remark(counts: FsckCounts, *, read_data: bool, findings: int) -> None:
    looked = f"{counts.commits} commits, {counts.artifacts} artifacts, {counts.frames} frames"
    bytes_read = f", {counts.bytes_read:,} bytes read" if read_data else ""
    ui.note(f"{'ok' if counts.ok else 'CORRUPT'}: {looked}{bytes_read}, {findings} findings")
    if counts.saved:
        ui.note(f"the file as it was: {counts.saved}")
    elif not counts.ok:
        ui.note("`harken fsck --repair` moves what is damaged into quarantine, and says what is lost")
