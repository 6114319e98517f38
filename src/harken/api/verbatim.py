"""What the store has as it is, without a word for people: rows of sessions, and events in their own bytes.

`harken.client` is made of these where the other operations tell less than `Repo` does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from harken.errors import BadRequest, PartlyCorrupt
from harken.events.cbor import encode_events
from harken.repo import Repo

from .base import ApiAnswer, ApiRequest
from .crossing import crosses

PIECE = 500
"""Events that are told at once."""


class SessionRowsRequest(ApiRequest, frozen=True, kw_only=True):
    """Which rows to give."""

    prefix: str = ""
    """Those whose session's id begins like this; empty for all."""


class SessionRowAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The row of a session, as docs/FORMAT.md has it. Instants are microseconds since 1970."""

    session: str
    """Its id."""
    runtime: str
    """The program that held it."""
    version: int
    """How often the row was saved."""
    tip: str
    """The full name of its newest commit; empty where it has none."""
    live: str
    """The full name of a commit above `tip` with what only a live recording has; empty where there is none."""
    older: list[str]
    """The full names of older tips, the newest first."""
    parent: str
    """The session that spawned it, for a sub-agent; else empty."""
    agent: str
    """The agent it belongs to, for a sub-agent; else empty."""
    title: str
    """What it is called."""
    source: str
    """The file it was read from."""
    template: str
    """This and the next four are what a run said of itself."""
    principal: str
    """Who ran it."""
    machine: str
    """Where it ran."""
    ticket_id: str
    """The ticket that was worked on."""
    thread_id: str
    """The thread it is part of."""
    started: int | None
    """When it began."""
    ended: int | None
    """When its newest record was written."""
    messages: int
    """Messages of its own agent."""
    cost_usd_micros: int | None
    """What it cost in millionths of a dollar; null where nobody said."""
    state: bytes
    """What whoever keeps it up to date needs to go on."""
    lost: bool
    """Whether a repair found only a part of it."""
    forgotten: bool
    """Whether it was forgotten on purpose."""


@crosses
def session_rows(repo: Repo, request: SessionRowsRequest) -> Iterator[SessionRowAnswer]:
    """The rows of the sessions in the store, as they are; what cannot be read is an error behind them."""
    problem: PartlyCorrupt | None = None
    try:
        rows = repo.sessions(request.prefix)
    except PartlyCorrupt as found:
        rows, problem = found.rest, found
    for row in rows:
        yield SessionRowAnswer(**msgspec.structs.asdict(row) | {"older": list(row.older)})
    if problem is not None:
        raise problem


class EventBytesRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose events: those of a session, or what a commit adds."""

    session: str = ""
    """The id of a session in the store, or a unique beginning of one: everything that its agents said and did."""
    commit: str = ""
    """A commit, in place of a session: what it adds to the conversation."""


class EventBytes(ApiAnswer, frozen=True, kw_only=True):
    """Some events."""

    body: bytes
    """The events in `events-v1` (docs/FORMAT.md)."""
    count: int
    """How many there are."""


@crosses
def event_bytes(repo: Repo, request: EventBytesRequest) -> Iterator[EventBytes]:
    """Events in their own bytes, some at a time; `events` tells the same in JSON."""
    if bool(request.session) == bool(request.commit):
        raise BadRequest("name a session or a commit", hint="give exactly one of the two")
    events = iter(repo.delta(request.commit) if request.commit else repo.events(request.session))
    while piece := list(islice(events, PIECE)):
        yield EventBytes(body=encode_events(piece), count=len(piece))
