"""`harken show`: one commit, with what it adds and what was said about it."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import age, event_cells, size_line, when
from .opening import pass_repo_or_session
from .options import REF, json_option

if TYPE_CHECKING:
    from harken.api.commits import ShowAnswer
    from harken.api.values import EventLine, NoteAnswer
    from harken.repo import Repo

INDENT = " " * 11
"""Before every line of a text that is shown whole: as far as the words for who speaks go."""
_FACTS = ("template", "principal", "machine", "session_id", "ticket_id", "thread_id", "forked_from")


@click.command("show")
@click.argument("ref", type=REF, shell_complete=completing.session_or_file)
@click.option("--no-content", is_flag=True, help="Leave out what the commit adds to the conversation")
@click.option("--full", is_flag=True, help="Show texts, arguments and results whole instead of one line of each")
@json_option
@pass_repo_or_session
def show_command(repo: Repo, ref: str, no_content: bool, full: bool, as_json: bool) -> None:
    """Show one commit, with what was said about it

    A REF is a commit, a branch, a tag, a session (where it stands), SESSION~1 (an older tip), SESSION@MESSAGE or
    SESSION/AGENT; the beginning of an id will do where only one begins so. The file of a session will do as well: it is
    read as an import would, into no store. For example:

        harken show ctx-442044fa

        harken show --full 3f2a91bc@msg_012
    """
    from harken.api.commits import ShowRequest, show

    shown = show(repo, ShowRequest(ref=ref, content=not no_content))
    if as_json:
        ui.json_line(shown)
        return
    _facts(shown)
    if shown.forgotten:
        ui.note(shown.forgotten)
    if no_content:
        return
    ui.line()
    for one in shown.content:
        if full:
            _whole(one)
        else:
            ui.row(*event_cells(one.line))
    if shown.unread:
        ui.note(shown.unread)


def _whole(one: EventLine) -> None:
    """An event with all of its text below its line; no line of it can look like one of ours."""
    said = one.event.get(one.event["type"], {})
    texts = [said.get(name) for name in ("content", "message", "output", "input", "raw")]
    whole = next((text for text in texts if isinstance(text, str) and text), "")
    if one.event["type"] == "tool_call":
        with contextlib.suppress(ValueError, RecursionError):
            whole = json.dumps(json.loads(whole), indent=2, ensure_ascii=False)
    who, what = event_cells(one.line)
    if whole in ("", what):
        ui.row(who, what)
    else:
        ui.row(who, what if one.event["type"] == "tool_call" else "")
        ui.block(whole, INDENT)


def _facts(shown: ShowAnswer) -> None:
    rows = [
        ("commit", f"{shown.short}  {shown.id}"),
        ("names", ", ".join(shown.names)),
        ("parent", shown.parent_short or "(root)"),
        ("children", ", ".join(shown.children_short)),
        ("type", f"{shown.commit_type}, at {shown.checkpoint}"),
        ("time", f"{when(shown.time)}, {age(shown.time)} ago" if shown.time else ""),
        ("content", f"{shown.artifact_ref}  {shown.format}"),
        ("size", _size(shown)),
        *((name.removesuffix("_id"), getattr(shown, name)) for name in _FACTS),
        ("run", _run(shown)),
        ("spawned", _origin(shown)),
        ("summary", shown.summary + ("  (derived)" if shown.derived else "")),
    ]
    for name, value in rows:
        if value:
            ui.fact(name, value)
    for note in shown.annotations:
        ui.line(f"{when(note.time)}  {_said(note)}" + (f"  ({note.who})" if note.who else ""))


def _run(shown: ShowAnswer) -> str:
    """What the session's run said of itself, where the commit does not say it."""
    facts = {name: getattr(shown.run, name) for name in shown.run.__struct_fields__} if shown.run else {}
    news = {name.removesuffix("_id"): value for name, value in facts.items() if value and value != getattr(shown, name)}
    return ", ".join(f"{name} {value}" for name, value in news.items())


def _said(note: NoteAnswer) -> str:
    """A remark; what Harken itself keeps of a session that goes on from here is put into words."""
    if note.key == "instantiated":
        with contextlib.suppress(ValueError, KeyError, TypeError):
            kept = json.loads(note.value)
            return f"continued in {kept['runtime']} as session {kept['session']}"
    return f"{note.key}: {note.value}"


def _size(shown: ShowAnswer) -> str:
    return size_line(shown.message_count, shown.token_count, approximate=shown.approximate)


def _origin(shown: ShowAnswer) -> str:
    origin = shown.spawned_from
    if not origin:
        return ""
    inherits = ", with its context" if origin.get("inherits") else ""
    return f"by {origin.get('session', '?')}, call {origin.get('call_id') or '?'}{inherits}"
