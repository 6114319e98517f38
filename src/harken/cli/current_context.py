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

    Asks the context socket of the `harken run` that this was called from. Outside a run, or when nothing has been
    committed yet, it prints nothing; it never fails and never takes more than two seconds, so that a tool can put
    the answer onto a ticket without further thought:

        issue comment --context "$(harken current-context)"
    """
    from harken.runtimes.socket import ask

    path = os.environ.get("HARKEN_CONTEXT_SOCKET") or os.environ.get("BUREAU_AGENT_CONTEXT_SOCKET") or ""
    found = ask(path) if path else ""
    if as_json:
        ui.json_line({"context_id": found})
    elif found:
        ui.line(found)
