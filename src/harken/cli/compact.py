"""`harken compact`: a summary on top of a chain, which stays as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import ui
from .commits import me, print_made
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("compact")
@click.argument("ref")
@click.option("--summary", metavar="FILE", help="The summary to use, from FILE or from stdin (-)")
@click.option("--model", metavar="M", help="Ask this model for the summary")
@json_option
@pass_repo
def compact_command(repo: Repo, ref: str, summary: str | None, model: str | None, as_json: bool) -> None:
    """Fold a chain into a summary, and keep what it hides

    Without --summary or --model the summary is put together from the conversation's own words. A branch that is
    named moves along; a chain that was compacted before gets the new summary beside the old one. For example:

        harken compact review --summary notes.md

        harken materialize review --stop root
    """
    from harken.context import find

    if summary is not None and model is not None:
        raise click.UsageError("give --summary or --model, not both")
    text: str | None = None
    if summary is not None:
        text = _read(summary)
    elif model is not None:
        text = _ask(repo, ref, model)
    branch = find(repo.store, ref).branch
    commit = repo.compact(ref, text, who=me())
    print_made(commit, as_json=as_json, summary=repo.show(commit).summary)
    if branch is None:
        ui.note(
            f"{ref} stays where it was, without the summary; go on from {commit.short}, "
            f"or give it a name: harken fork {commit.short} --name NAME"
        )
    if not as_json:
        ui.note(f"the whole of it: harken materialize {commit.short} --stop root")


def _read(name: str) -> str:
    from harken.errors import NotFound

    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise NotFound(f"cannot read {name}: {problem.strerror or problem}") from None


def _ask(repo: Repo, ref: str, model: str) -> str:
    import asyncio

    from harken.agents.models import ModelError, Request, open_model
    from harken.context.compaction import events_at, foundation
    from harken.context.summary import request
    from harken.errors import ModelFailed

    asked = open_model(model)
    _, base = foundation(repo.store, ref)
    messages = [{"role": "user", "content": request(events_at(repo.store, base))}]
    try:
        reply = asyncio.run(asked.complete(Request(messages=messages, path=("compact",))))
    except ModelError as problem:
        raise ModelFailed(f"{asked.name} gave no summary: {problem}", hint="try again, or give --summary") from None
    if not (reply.content or "").strip():
        raise ModelFailed(f"{asked.name} gave an empty summary", hint="try again, or give --summary")
    return str(reply.content)
