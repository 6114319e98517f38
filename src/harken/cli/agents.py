"""`harken agents`: who took part in a session, from its log or from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import excerpt
from .opening import place_of
from .options import SESSION, json_option, pass_repo_or_file

if TYPE_CHECKING:
    from harken.repo import Repo

TITLE = 60


@click.command("agents")
@click.argument("session", type=SESSION, shell_complete=completing.session_or_file)
@json_option
@pass_repo_or_file
def agents_command(repo: Repo, session: str, as_json: bool) -> None:
    """List the agents of a session

    A SESSION is the file of a session, or the id of one in the store or a unique beginning of it, at least four
    characters; a commit or a branch stands for the session it is of. For example:

        harken agents cafe.jsonl
    """
    from harken.api.sessions import AgentsRequest, agents

    found = list(agents(repo, AgentsRequest(**place_of(repo, session))))
    if not found:
        ui.note(f"{session} has no agents")
    for one in found:
        if as_json:
            ui.json_line(one)
            continue
        above = f"below {one.parent}" if one.parent else ""
        gone = "(terminated)" if one.terminated else ""
        ui.row(
            ui.Styled(one.agent, "name"),
            one.name or excerpt(one.title, TITLE),
            ui.count(one.messages, "message"),
            one.tip or "",
            above,
            gone,
        )
