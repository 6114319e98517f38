"""`harken show`: one commit, with what it adds and what was said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .commits import as_data, short_of, when
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.context import Shown
    from harken.repo import Repo

_FACTS = ("template", "principal", "machine", "session_id", "ticket_id", "thread_id", "forked_from")


@click.command("show")
@click.argument("ref")
@click.option("--no-content", is_flag=True, help="Leave out what the commit adds to the conversation")
@json_option
@pass_repo
def show_command(repo: Repo, ref: str, no_content: bool, as_json: bool) -> None:
    """Show one commit, with what was said about it

    A REF is a commit, a branch, a tag, a session id (its newest commit) or SESSION@MESSAGE. For example:

        harken show ctx-442044fa

        harken show 3f2a91bc@msg_012
    """
    shown = repo.show(ref)
    if as_json:
        ui.json_line(as_data(shown) | {"children": [child.id for child in repo.store.children(shown.id)]})
        return
    _facts(repo, shown)
    if not no_content:
        _content(repo, shown)


def _facts(repo: Repo, shown: Shown) -> None:
    from harken import ids

    rows = [
        ("commit", f"{shown.short}  {shown.id}"),
        ("names", ", ".join(shown.names)),
        ("parent", short_of(repo, shown.parent) if shown.parent else "(root)"),
        ("children", ", ".join(child.short for child in repo.store.children(shown.id))),
        ("type", f"{shown.commit_type}, at {shown.checkpoint}"),
        ("time", when(shown.time)),
        ("content", f"{ids.artifact_ref(shown.artifact)}  {shown.format}"),
        ("size", _size(shown)),
        *((name.removesuffix("_id"), getattr(shown, name)) for name in _FACTS),
        ("spawned", _origin(shown)),
        ("summary", shown.summary + ("  (derived)" if shown.derived else "")),
    ]
    for name, value in rows:
        if value:
            ui.line(f"{name:<12}{value}")
    for note in shown.annotations:
        ui.line(f"{when(note.time)}  {note.key}: {note.value}" + (f"  ({note.who})" if note.who else ""))


def _size(shown: Shown) -> str:
    about = "about " if shown.approximate else ""
    return f"{shown.message_count} messages, {about}{shown.token_count} tokens"


def _origin(shown: Shown) -> str:
    origin = shown.spawned_from
    if not origin:
        return ""
    inherits = ", with its context" if origin.get("inherits") else ""
    return f"by {origin.get('session', '?')}, call {origin.get('call_id') or '?'}{inherits}"


def _content(repo: Repo, shown: Shown) -> None:
    from harken.context.lines import lines
    from harken.errors import Evicted
    from harken.formats import find

    known = find(shown.format)
    try:
        data = repo.store.get(shown.artifact)
    except Evicted as problem:
        ui.note(str(problem))
        return
    ui.line()
    if known is None or "read" not in known.can:
        ui.note(f"nobody here can read {shown.format}; `harken materialize {shown.short}` writes its bytes")
        return
    for text in lines(known.read(data)):
        ui.line(text)
