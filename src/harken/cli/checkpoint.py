"""`harken checkpoint`: a commit from a file, from stdin or from an artifact that is there already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harken.api.writing import CHECKPOINTS, COMMIT_TYPES

from . import completing
from .commits import print_made
from .options import REF, SESSION, json_option, make_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("checkpoint")
@click.argument("file", required=False, shell_complete=completing.files)
@click.option(
    "--format",
    "format",
    metavar="F",
    help="The format of the bytes (default: what they look like)",
    shell_complete=completing.formats,
)
@click.option(
    "--parent",
    metavar="REF",
    help="The commit to go on from; a branch moves along",
    type=REF,
    shell_complete=completing.refs,
)
@click.option("--artifact", metavar="ART", help="Bytes that are in the store already, in place of FILE")
@click.option(
    "--type",
    "commit_type",
    type=click.Choice(COMMIT_TYPES),
    default="delta",
    show_default=True,
    help="What it is: something new, a summary of what was before, or everything in one piece",
)
@click.option(
    "--trigger",
    "checkpoint",
    type=click.Choice(CHECKPOINTS),
    default="explicit",
    show_default=True,
    help="Why it is made",
)
@click.option("--created-at", metavar="TIME", help="When it was (default: now)")
@click.option("--template", help="What kind of agent it is")
@click.option("--principal", help="Who executed it")
@click.option("--machine", help="Where it ran (default: this machine)")
@click.option(
    "--session", "session_id", type=SESSION, shell_complete=completing.sessions, help="The session it belongs to"
)
@click.option("--ticket", "ticket_id", help="The ticket that was worked on")
@click.option("--thread", "thread_id", help="The thread it is part of")
@click.option("--summary", metavar="TEXT", help="A line about it")
@click.option("--messages", "message_count", type=click.IntRange(min=0), help="How many messages (default: counted)")
@click.option("--tokens", "token_count", type=click.IntRange(min=0), help="How many tokens (default: estimated)")
@json_option
@make_repo
def checkpoint_command(
    repo: Repo, /, file: str | None, format: str | None, artifact: str | None, as_json: bool, **facts: Any
) -> None:
    """Make a commit from a file or from stdin

    FILE holds what is new since the parent; `-` or nothing is stdin. The new commit's name is printed. For example:

        harken checkpoint turn.cbor --format events-v1 --parent review --summary "read the parser"
    """
    from harken.api.writing import CheckpointRequest, checkpoint

    if artifact is not None and file is not None:
        raise click.UsageError("give FILE or --artifact, not both")
    data = None if artifact is not None else _read(file)
    request = CheckpointRequest(body=data, artifact=artifact, format=format, **facts)
    print_made(checkpoint(repo, request), as_json=as_json)


def _read(file: str | None) -> bytes:
    from harken.errors import NotFound

    if file in (None, "-"):
        return sys.stdin.buffer.read()
    try:
        return Path(str(file)).read_bytes()
    except OSError as problem:
        raise NotFound(
            f"cannot read {file}: {problem.strerror or problem}", hint="name a file, or `-` for stdin"
        ) from None
