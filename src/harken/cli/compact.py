"""`harken compact`: a summary on top of a chain, which stays as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import me, print_made
from .options import REF, change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("compact")
@click.argument("ref", type=REF, shell_complete=completing.refs)
@click.option(
    "--summary",
    metavar="FILE",
    shell_complete=completing.files,
    help="The summary to use, from FILE or from stdin (-)",
)
@click.option("--model", metavar="M", help="Ask this model for the summary")
@json_option
@change_repo
def compact_command(repo: Repo, ref: str, summary: str | None, model: str | None, as_json: bool) -> None:
    """Fold a chain into a summary, and keep what it hides

    Without --summary or --model the summary is put together from the conversation's own words. A branch that is
    named moves along; a chain that was compacted before gets the new summary beside the old one. For example:

        harken compact review --summary notes.md

        harken materialize review --stop root
    """
    from harken.api.writing import CompactRequest, compact

    if summary is not None and model is not None:
        raise click.UsageError("give --summary or --model, not both")
    text = _read(summary) if summary is not None else None
    made = compact(repo, CompactRequest(ref=ref, summary=text, model=model or "", who=me(repo)))
    print_made(made, as_json=as_json)
    if not made.branch:
        ui.note(
            f"{ref} stays where it was, without the summary; go on from {made.short}, "
            f"or give it a name: harken fork {made.short} --name NAME"
        )
    if not as_json:
        ui.note(f"the whole of it: harken materialize {made.short} --stop root")


def _read(name: str) -> str:
    from harken.errors import NotFound

    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise NotFound(
            f"cannot read {name}: {problem.strerror or problem}", hint="name a file, or `-` for stdin"
        ) from None
