"""The chains of a run while it lasts: `events-v1` commits on the branch `live/SESSION`.

When the session's file is imported, the chain made from the file becomes the session's own; the live commits stay
where they are, so that an id a ticket carries never stops meaning something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harken import clock
from harken.context import Tracker, TrackerSettings, find_session, get_commit
from harken.context.names import LIVE_BRANCH
from harken.store import SessionRow, Store

from .recorder import Opening


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of itself, which goes onto every commit of it."""

    runtime: str
    principal: str = ""
    """Who runs it; the runtime and the session where nobody says."""
    template: str = ""
    machine: str = ""
    ticket_id: str = ""
    thread_id: str = ""
    frequency: str = "turn"
    """When to commit."""
    source: str = ""
    """The commit that the run continues, if it continues one."""


class _Keeper(msgspec.Struct, frozen=True):
    """The store and the clock, as a tracker wants them."""

    store: Store
    clock: clock.Clock


def track(
    store: Store, opening: Opening, facts: RunFacts, *, warn: Callable[[str], None], now: clock.Clock = clock.now
) -> Tracker:
    """The tracker of an agent of a run."""
    who = facts.principal or f"{facts.runtime}:{opening.session}"
    parent, spawned_from = facts.source, None
    if opening.agent:
        who, parent, spawned_from = f"{who}/{opening.agent}", "", _spawned_from(store, opening)
    elif not facts.source and (known := find_session(store, opening.session)):
        # The runtime itself continues a session: what its file holds, this one knows.
        parent = known.tip
    return Tracker(
        _Keeper(store, now),
        TrackerSettings(
            session_id=opening.name,
            principal=who,
            template=facts.template or facts.runtime,
            machine=facts.machine,
            ticket_id=facts.ticket_id,
            thread_id=facts.thread_id,
            frequency=facts.frequency,
            on_warning=warn,
            parent=parent,
            spawned_from=spawned_from,
            forked_from="" if opening.agent else facts.source,
            row=SessionRow(
                session=opening.name,
                runtime=facts.runtime,
                parent=opening.session if opening.agent else "",
                agent=opening.agent,
            ),
            branch=LIVE_BRANCH + opening.name,
        ),
    )


def _spawned_from(store: Store, opening: Opening) -> dict[str, Any]:
    origin: dict[str, Any] = {"session": opening.session, "call_id": opening.call_id, "inherits": False}
    if opening.context_id:
        origin["commit"] = get_commit(store, opening.context_id).id
    return origin
