"""`harken backup`: a copy of the store, made while others go on writing to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import ui
from .options import change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
@change_repo
def backup_command(repo: Repo, file: Path, as_json: bool) -> None:
    """Copy the store while it is in use

    FILE must be new; it is a store like the original, as of one moment, and appears only when it is whole. For
    example:

        harken backup /mnt/usb/harken-monday.db

    To put it back, stop whatever uses the store, remove the files that end in -wal and -shm beside it, and copy the
    backup over it. What runs have not stored yet is copied too, as FILE-spool-ID.
    """
    from harken.api.upkeep import BackupRequest, backup

    done = backup(repo, BackupRequest(path=str(file)))
    if as_json:
        ui.json_line(done)
    else:
        ui.note(f"{file}: {done.size:,} bytes")
