"""`harken current-context`: what a tool calls to learn what its agent knows at this moment."""

from __future__ import annotations

import os

import click

from . import ui
from .options import json_option


@click.command("current-context")
@json_option
def current_context_command(as_json: bool) -> None:
    """Print the commit that the running agent stands on

    Asks the context socket of the `harken run` that this was called from, and is answered for the agent whose tool
    it is. Outside a run, or when nothing has been committed yet, it prints nothing, and where it cannot be told which
    of several agents asks, it says so beside the answer. It never fails and never takes more than two seconds, so
    that a tool can put the answer onto a ticket without further thought:

        issue comment --context "$(harken current-context)"
    """
    from harken.api.running import CurrentContextRequest, current_context

    path = os.environ.get("HARKEN_CONTEXT_SOCKET") or os.environ.get("BUREAU_AGENT_CONTEXT_SOCKET") or ""
    found = current_context(None, CurrentContextRequest(socket=path))
    if as_json:
        ui.json_line(found)
    elif found.context_id:
        ui.line(found.context_id)
    elif found.reason:
        ui.note(f"no commit can be named: {found.reason}")
