"""`harken agents`: who took part in a session, from its log or from the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ui
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("agents")
@click.argument("session")
@json_option
@pass_repo
def agents_command(repo: Repo, session: str, as_json: bool) -> None:
    """List the agents of a session

    A SESSION is a log file, or the id of a session in the store or a unique beginning of one. For example:

        harken agents cafe.jsonl
    """
    rows = _from_log(repo, Path(session)) if Path(session).is_file() else _from_store(repo, session)
    for row in rows:
        if as_json:
            ui.json_line(row)
        else:
            tip = f"  {row['tip']}" if row["tip"] else ""
            above = f"  below {row['parent']}" if row["parent"] else ""
            gone = "  (terminated)" if row.get("terminated") else ""
            ui.line(f"{row['agent']}  {row['name']}  {row['messages']} messages{tip}{above}{gone}")


def _short(repo: Repo, tip: str) -> str | None:
    return repo.store.get_commit(tip).short if tip else None


def _from_store(repo: Repo, session: str) -> list[dict[str, Any]]:
    from harken.context import get_session

    row = get_session(repo.store, session)
    found = [row, *(other for other in repo.sessions() if other.parent == row.session)]
    return [
        {
            "agent": each.agent or each.session,
            "name": each.title,
            "session": each.session,
            "tip": _short(repo, each.tip),
            "parent": each.parent or None,
            "messages": each.messages,
        }
        for each in found
    ]


def _from_log(repo: Repo, path: Path) -> list[dict[str, Any]]:
    from harken.log import Session

    kept = {row.agent: row for row in repo.store.sessions(source=str(path.resolve()))}
    with Session(path, readonly=True) as log:
        return [
            {
                "agent": info.agent_id,
                "name": info.name,
                "session": kept[info.agent_id].session if info.agent_id in kept else None,
                "tip": _short(repo, kept[info.agent_id].tip) if info.agent_id in kept else None,
                "parent": info.parent,
                "messages": info.entries,
                "role": info.role,
                "language_model": info.language_model,
                "terminated": info.terminated,
            }
            for info in log.agents.values()
        ]
