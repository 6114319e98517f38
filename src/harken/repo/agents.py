"""Who took part in a session: from its chains in the store, or from its log file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harken.context import get_session
from harken.errors import BadRequest
from harken.log import Session
from harken.store import SessionRow, Store


class SessionAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of a session."""

    agent: str
    name: str = ""
    session: str = ""
    """The name of its chain in the store; empty where it has none."""
    tip: str = ""
    """The full name of its newest commit."""
    parent: str = ""
    """The agent that made it."""
    messages: int = 0
    role: str = ""
    """`root`, `child` or `hook`, as far as a log says."""
    language_model: str = ""
    terminated: bool = False


def agents_in_store(store: Store, session: str) -> list[SessionAgent]:
    """The agents whose chains belong to a session, its own first."""
    row = get_session(store, session)
    found = [row, *(other for other in store.sessions(prefix=row.session) if other.parent == row.session)]
    names = {each.session: each.agent or each.session for each in found}
    return [
        SessionAgent(
            agent=names[each.session],
            name=each.title,
            session=each.session,
            tip=each.tip,
            parent=_maker(store, each, names) if each.parent else "",
            messages=each.messages,
        )
        for each in found
    ]


def _maker(store: Store, row: SessionRow, names: dict[str, str]) -> str:
    """The agent that made this one, as its chain says; the session's own where the chain does not."""
    origin = store.get_commit(store.walk(row.tip)[-1].id).spawned_from if row.tip else None
    made_by = str((origin or {}).get("session", ""))
    return names.get(made_by) or names.get(row.parent) or row.parent


def agents_in_log(store: Store, path: Path) -> list[SessionAgent]:
    """The agents of a log file, with their chains where the store has them."""
    if not path.is_file():
        raise BadRequest(f"{path} is not a file", hint="name a session's log file, or a session in the store")
    kept = {row.agent: row for row in store.sessions(source=str(path.resolve()))}
    empty = SessionRow(session="", runtime="")
    with Session(path, readonly=True) as log:
        return [
            SessionAgent(
                agent=info.agent_id,
                name=info.name,
                session=kept.get(info.agent_id, empty).session,
                tip=kept.get(info.agent_id, empty).tip,
                parent=info.parent or "",
                messages=info.entries,
                role=info.role,
                language_model=info.language_model,
                terminated=info.terminated,
            )
            for info in log.agents.values()
        ]
