"""`harken materialize`: the conversation a commit stands for, in its own format or another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import size_line
from .opening import pass_repo_or_session
from .options import REF, json_option, store_file
from .targets import check_target, target_folder, write_target

if TYPE_CHECKING:
    from harken.api.writing import MaterializeAnswer
    from harken.repo import Repo


@click.command("materialize")
@click.argument("ref", type=REF, shell_complete=completing.session_or_file)
@click.option(
    "--format",
    "format",
    metavar="F",
    help="The format to write (default: that of the newest commit)",
    shell_complete=completing.formats,
)
@click.option(
    "--stop",
    default="compaction",
    show_default=True,
    metavar="S",
    shell_complete=completing.stops,
    help="How far back to go: `compaction` (as it stands), `root` (everything) or an ancestor",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="With narrative-v1: tell it in at most so many tokens, the newest turns best",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to FILE instead of stdout")
@click.option("--force", is_flag=True, help="Replace a FILE that is there already")
@json_option
@pass_repo_or_session
def materialize_command(
    repo: Repo,
    ref: str,
    format: str | None,
    stop: str,
    budget: int | None,
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write out the conversation that a commit stands for

    The answer names how it was made: native (the bytes as they are kept), structural (translated, with a list of
    what was lost) or raw. With --json that, and not the conversation, goes to stdout. For example:

        harken materialize review --format codex-v1 -o rollout.jsonl
    """
    from harken.api.writing import MaterializeRequest, materialize

    path = None if output is None else Path(output)
    if path is not None:
        target_folder(str(output))  # a folder that is not there; click refuses one that is
        check_target(path, store_file(repo), force=force)
    made = materialize(repo, MaterializeRequest(ref=ref, format=format, stop=stop, budget=budget))
    if path is not None:
        write_target(path, made.body, force=force)
    if as_json:
        ui.json_line(made)
        return
    if path is None:
        if ui.is_terminal() and not _is_text(made.body):
            raise click.UsageError(f"{made.format} is not text; write it to a file with -o FILE")
        ui.raw(made.body)
    _remark(made)


def _is_text(data: bytes) -> bool:
    try:
        data[:4096].decode()
    except UnicodeDecodeError as problem:
        return problem.start > 4000
    return b"\0" not in data[:4096]


def _remark(made: MaterializeAnswer) -> None:
    size = size_line(made.message_count, made.token_count, approximate=made.approximate)
    ui.note(f"{made.format}, tier {made.tier} ({made.tier_name}): {size} from {ui.count(made.commit_count, 'commit')}")
    for loss in made.losses:
        ui.note(f"lost: {loss.what} ×{loss.count}: {loss.why}")
    if made.tier == "4":
        ui.note(made.description)
