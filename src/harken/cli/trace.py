"""`harken trace`: one message, back to its beginning and on to those who heard it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing
from .opening import open_view
from .options import SESSION, json_option, pass_repo_unless_file

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("trace")
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="SESSION MESSAGE",
    type=SESSION,
    shell_complete=completing.session_or_file,
)
@click.option(
    "--session",
    metavar="SESSION",
    type=SESSION,
    shell_complete=completing.session_or_file,
    help="The session, where it is not the first argument",
)
@click.option("--full", is_flag=True, help="Show texts whole instead of one line of each")
@json_option
def trace_command(words: tuple[str, ...], session: str | None, full: bool, as_json: bool) -> None:
    """Follow a message back to where it came from and on to who heard it

    A SESSION is the file of a session, the id of a session in the store or a unique beginning of one, at least four
    characters, or a REF, at which it stood; SESSION@MESSAGE names both in one word. What the message repeats, what
    triggered it and the call it answers are followed to the end; then come those who heard the same content, and the
    tool results it went into. For example:

        harken trace cafe.jsonl msg_020

        harken trace msg_020 --session cafe.jsonl
    """
    if len(words) == 1 and not session and "@" in words[0][1:]:
        words = tuple(words[0].split("@", 1))
    if len(words) != (1 if session else 2) or not all(words):
        raise click.UsageError("name one session and one message: `harken trace SESSION MESSAGE`")
    _trace(session or words[0], words[-1], full=full, as_json=as_json)


@pass_repo_unless_file
def _trace(repo: Repo, session: str, message: str, *, full: bool, as_json: bool) -> None:
    from harken.api.views import MessageViewRequest, trace

    from .view import show
    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    steps = list(trace(repo, MessageViewRequest(**place, message=message), viewer=viewer))
    show(steps, Painter(viewer.list_agents(), full=full).trace(steps), as_json=as_json)
