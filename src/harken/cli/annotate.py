"""`harken annotate`: remarks about a commit, beside it and outside its hash."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import me
from .options import REF, change_repo, json_option

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("annotate")
@click.argument("ref", type=REF, shell_complete=completing.refs)
@click.argument("text")
@click.option("--key", default="summary", show_default=True, help="What kind of remark it is")
@json_option
@change_repo
def annotate_command(repo: Repo, ref: str, text: str, key: str, as_json: bool) -> None:
    """Add a remark to a commit

    The newest summary is the one that is shown; the older ones stay. TEXT of `-` is read from stdin. For example:

        harken annotate ctx-442044fa "found the leak: the cache is never emptied"
    """
    from harken.api.commits import AnnotateRequest, annotate

    said = sys.stdin.read() if text == "-" else text
    shown = annotate(repo, AnnotateRequest(ref=ref, text=said, key=key, who=me(repo)))
    if as_json:
        ui.json_line(shown)
