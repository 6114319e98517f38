"""`harken snapshot`: a conversation in one piece, on top of the chain it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing
from .commits import me, print_made
from .options import REF, change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("snapshot")
@click.argument("ref", type=REF, shell_complete=completing.refs)
@json_option
@change_repo
def snapshot_command(repo: Repo, ref: str, as_json: bool) -> None:
    """Store a commit's whole conversation, so that the walk is short

    The chain below stays; `--stop root` still goes through all of it. For chains of events or messages. For example:

        harken snapshot review
    """
    from harken.api.writing import SnapshotRequest, snapshot

    print_made(snapshot(repo, SnapshotRequest(ref=ref, who=me(repo))), as_json=as_json)
