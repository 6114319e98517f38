"""`harken fsck`: is everything in the store what it says it is?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo

CORRUPT = 9


@click.command("fsck")
@click.option("--read-data", is_flag=True, help="Read every byte, not only the tables")
@click.option("--repair", is_flag=True, help="Move what is damaged into quarantine; the file is copied aside first")
@json_option
@pass_repo
def fsck_command(repo: Repo, read_data: bool, repair: bool, as_json: bool) -> int:
    """Check the store, and mend it on request

    Names, seals, links and sums; with --read-data every frame and artifact as well. Changes nothing without
    --repair, which says what is lost. Exits with 9 where something is corrupt and was not mended. For example:

        harken fsck --read-data
    """
    import msgspec

    from harken.store import fsck

    report = fsck(repo.store, read_data=read_data, repair=repair, now=repo.clock())
    for found in report.findings:
        if as_json:
            ui.json_line(msgspec.structs.asdict(found))
        else:
            mended = "  (repaired)" if found.repaired else ""
            ui.line(f"{found.severity:<8} {found.what} {found.which}: {found.why}{mended}")
    facts = {name: getattr(report, name) for name in ("commits", "artifacts", "frames", "bytes_read", "saved", "ok")}
    if as_json:
        ui.json_line({"report": facts})
    else:
        _remark(facts, read_data=read_data, findings=len(report.findings))
    return 0 if report.ok else CORRUPT


def _remark(facts: dict[str, object], *, read_data: bool, findings: int) -> None:
    looked = f"{facts['commits']} commits, {facts['artifacts']} artifacts, {facts['frames']} frames"
    bytes_read = f", {facts['bytes_read']:,} bytes read" if read_data else ""
    ui.note(f"{'ok' if facts['ok'] else 'CORRUPT'}: {looked}{bytes_read}, {findings} findings")
    if facts["saved"]:
        ui.note(f"the file as it was: {facts['saved']}")
    elif not facts["ok"]:
        ui.note("`harken fsck --repair` moves what is damaged into quarantine, and says what is lost")
