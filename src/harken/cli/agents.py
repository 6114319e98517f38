"""`harken agents`: who took part in a session, from its log or from the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ui
from .options import json_option, pass_repo_or_file

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.store import SessionRow


@click.command("agents")
@click.argument("session")
@json_option
@pass_repo_or_file
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
    names = {each.session: each.agent or each.session for each in found}
    return [
        {
            "agent": names[each.session],
            "name": each.title,
            "session": each.session,
            "tip": _short(repo, each.tip),
            "parent": _maker(repo, each, names) if each.parent else None,
            "messages": each.messages,
        }
        for each in found
    ]


def _maker(repo: Repo, row: SessionRow, names: dict[str, str]) -> str:
    """The agent that made this one, as its chain says; the session's own where the chain does not."""
    origin = repo.store.get_commit(repo.store.walk(row.tip)[-1].id).spawned_from if row.tip else None
    made_by = str((origin or {}).get("session", ""))
    return names.get(made_by) or names.get(row.parent) or row.parent


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
