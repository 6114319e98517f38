"""`harken index`: what makes search quick, brought up to date or built anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harken import ids
from harken.errors import BadRequest

from . import ui
from .options import json_option, pass_repo
from .wholeness import tell_what_is_missing

if TYPE_CHECKING:
    from harken.api.index import IndexAnswer
    from harken.repo import Repo

LABEL = 10
"""Columns of the name of a fact."""


@click.command("index")
@click.option("--status", "look", is_flag=True, help="Only say how far it is")
@click.option("--rebuild", is_flag=True, help="Remove it and build it anew")
@json_option
@pass_repo
def index_command(repo: Repo, look: bool, rebuild: bool, as_json: bool) -> None:
    """Bring the index of words and numbers up to date

    The index is a file beside the store that holds what `harken search` and `harken stats` ask for. It follows the
    store by itself, and everything in it comes from there: it may be deleted at any time. For example:

        harken index --status
        harken index --rebuild
    """
    from harken.api.index import IndexRequest, index

    if look and rebuild:
        raise BadRequest("--status changes nothing, and --rebuild does", hint="give one of the two")
    with ui.progress("indexing", disable=as_json) as bar:
        answer = index(repo, IndexRequest(look=look, rebuild=rebuild), moved=bar.reach)
    if as_json:
        ui.json_line(answer)
    else:
        _print(answer)
    tell_what_is_missing(behind=0, damaged=answer.damaged)


def _print(answer: IndexAnswer) -> None:
    behind = f" ({answer.behind:,} behind)" if answer.behind else ""
    facts = {
        "file": answer.path or "none: nothing can be written beside the store, so it is held in memory",
        "size": f"{answer.bytes / 1e6:.1f} MB",
        "sessions": f"{answer.sessions:,}",
        "messages": f"{answer.messages:,}",
        "changes": f"{answer.at:,} of {answer.last:,}{behind}",
    }
    for name, value in facts.items():
        ui.fact(name, value, LABEL)
    if answer.rebuilt:
        ui.note(f"built anew: {answer.rebuilt}")
    for problem in answer.problems:
        commit = ids.commit_ref(problem.commit) if problem.commit else "the session's row"
        what = f"{commit} of {problem.session or 'no session'}: " if problem.commit or problem.session else ""
        ui.warn(f"not in the index: {what}{problem.why}")
