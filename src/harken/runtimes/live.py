"""The chains of a run while it lasts: `events-v1` commits on the branch `live/SESSION`.

When the session's file is imported, the chain made from the file becomes the session's own; the live commits stay
where they are, so that an id a ticket carries never stops meaning something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harken.context import Tracker, find_session
from harken.store.base import SessionRow

from .recorder import Opening

if TYPE_CHECKING:
    from harken.repo import Repo

BRANCH = "live/"


def track(
    repo: Repo,
    opening: Opening,
    *,
    runtime: str,
    principal: str,
    template: str,
    ticket_id: str,
    thread_id: str,
    frequency: str,
    source: str,
    on_warning: Callable[[str], None],
) -> Tracker:
    """The tracker of an agent of a run. `source` is the commit that the run continues, if it continues one."""
    who = principal or f"{runtime}:{opening.session}"
    parent, spawned_from = source, None
    if opening.agent:
        who, parent, spawned_from = f"{who}/{opening.agent}", "", _spawned_from(repo, opening)
    elif not source and (known := find_session(repo.store, opening.session)):
        # The runtime itself continues a session that was imported: what that one knew, this one knows.
        parent = known.tip
    return Tracker(
        repo,
        session_id=opening.name,
        principal=who,
        template=template,
        machine=repo.machine,
        ticket_id=ticket_id,
        thread_id=thread_id,
        frequency=frequency,
        on_warning=on_warning,
        parent=parent,
        spawned_from=spawned_from,
        forked_from="" if opening.agent else source,
        row=SessionRow(
            session=opening.name,
            runtime=runtime,
            parent=opening.session if opening.agent else "",
            agent=opening.agent,
        ),
        branch=BRANCH + opening.name,
    )


def _spawned_from(repo: Repo, opening: Opening) -> dict[str, Any]:
    origin: dict[str, Any] = {"session": opening.session, "call_id": opening.call_id, "inherits": False}
    if opening.context_id:
        origin["commit"] = repo.commit(opening.context_id).id
    return origin
