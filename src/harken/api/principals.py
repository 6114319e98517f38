"""What belongs to a principal: its sessions as they begin and end, what it keeps by keys, and its figures.

Whose it is, `principal` says. A service takes that, and the machine, from the token of whoever asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from harken.repo import Repo
from harken.repo.principal_figures import PrincipalFigures
from harken.repo.principals import KeptKey, TrackedSession

from .base import ApiAnswer, ApiRequest, IndexedAnswer, index_fields, stamp
from .crossing import crosses

# -- sessions ----------------------------------------------------------------------------------------------------------


class StartSessionRequest(ApiRequest, frozen=True, kw_only=True):
    """A session that begins."""

    session: str
    """Its id."""
    principal: str = ""
    """Who executes it."""
    machine: str = ""
    """Where; empty for this machine."""
    template: str = ""
    """What kind of agent it is."""
    ticket_id: str = ""
    """The ticket that is worked on."""
    thread_id: str = ""
    """The thread it is part of."""
    time: str | int | None = None
    """When it began; None for now."""


class TrackedSessionAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A session of a principal, as it was said to begin and to end."""

    principal: str
    """Who executes it."""
    session: str
    """Its id."""
    machine: str
    """Where."""
    template: str
    """What kind of agent it is."""
    ticket_id: str
    """The ticket that is worked on."""
    thread_id: str
    """The thread it is part of."""
    started: str | None
    """When it began."""
    ended: str | None
    """When it ended; null while it goes on."""
    running: bool
    """Whether nobody has said that it is over."""
    context: str
    """The full name of its last commit; of a session without one, of the principal's last since it began. Empty where
    there is none."""
    context_short: str
    """The short name of that commit."""


@crosses
def start_session(repo: Repo, request: StartSessionRequest) -> TrackedSessionAnswer:
    """Say that a session begins; said twice, it began the first time."""
    fields = {name: getattr(request, name) for name in request.__struct_fields__}
    return _tracked(repo, repo.start_session(fields.pop("session"), **fields))


class EndSessionRequest(ApiRequest, frozen=True, kw_only=True):
    """A session that is over."""

    session: str
    """Its id."""
    principal: str = ""
    """Who executed it."""
    time: str | int | None = None
    """When it ended; None for now."""


@crosses
def end_session(repo: Repo, request: EndSessionRequest) -> TrackedSessionAnswer:
    """Say that a session is over."""
    return _tracked(repo, repo.end_session(request.session, principal=request.principal, time=request.time))


class LatestSessionRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose session."""

    principal: str = ""
    """Who; over a service, empty for whoever asks."""


class LatestSessionAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The session of a principal that was last said to begin or to end."""

    latest: TrackedSessionAnswer | None
    """The session, and its last context; null where none was said to begin."""


@crosses
def latest_session(repo: Repo, request: LatestSessionRequest) -> LatestSessionAnswer:
    """The principal's latest session, and its last context."""
    found = repo.latest_session(request.principal)
    return LatestSessionAnswer(latest=None if found is None else _tracked(repo, found))


class RunningSessionsRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose sessions."""

    principal: str = ""
    """Who; empty for everybody."""


@crosses
def running_sessions(repo: Repo, request: RunningSessionsRequest) -> Iterator[TrackedSessionAnswer]:
    """The sessions that began and are not over, the newest first."""
    return (_tracked(repo, one) for one in repo.running_sessions(request.principal))


def _tracked(repo: Repo, one: TrackedSession) -> TrackedSessionAnswer:
    fields = msgspec.structs.asdict(one) | {"started": stamp(one.started), "ended": stamp(one.ended)}
    short = repo.shorts([one.context])[one.context] if one.context else ""
    return TrackedSessionAnswer(**fields, running=one.is_running, context_short=short)


# -- keys --------------------------------------------------------------------------------------------------------------


class PutKeyRequest(ApiRequest, frozen=True, kw_only=True):
    """What to keep, and by which key."""

    key: str
    """The key: at most 128 bytes of text, such as `notes/plan`."""
    principal: str = ""
    """Whose it is."""
    body: bytes | None = None
    """The bytes; or else `artifact`."""
    artifact: str | None = None
    """Bytes that are in the store already, by their name."""
    media_type: str = ""
    """What the bytes are, like `text/markdown`."""
    session: str = ""
    """The session in which it is said."""
    time: str | int | None = None
    """When it was; None for now."""


class KeyAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What a principal keeps by a key."""

    principal: str
    """Whose it is."""
    key: str
    """The key."""
    artifact: str
    """The full name of the bytes."""
    size: int
    """How many there are."""
    media_type: str
    """What they are, where somebody said so."""
    session: str
    """The session in which it was said; empty where nobody named one."""
    time: str | None
    """When it was said."""
    commit: str
    """The full name of the commit that says so; the chain behind it is what the key said before."""


@crosses
def put_key(repo: Repo, request: PutKeyRequest) -> KeyAnswer:
    """Keep bytes, or an artifact that is there, by a key; what the key said before stays on its chain."""
    options: dict[str, Any] = {name: getattr(request, name) for name in ("artifact", "media_type", "session", "time")}
    return _key(repo.put_key(request.principal, request.key, request.body, **options))


class GetKeyRequest(ApiRequest, frozen=True, kw_only=True):
    """Which key."""

    key: str
    """The key."""
    principal: str = ""
    """Whose; over a service, empty for whoever asks."""
    content: bool = True
    """Whether to give the bytes, too."""


class GetKeyAnswer(KeyAnswer, frozen=True, kw_only=True):
    """What a principal keeps by a key, and the bytes."""

    body: bytes
    """The bytes; empty where they were not asked for."""


@crosses
def get_key(repo: Repo, request: GetKeyRequest) -> GetKeyAnswer:
    """What a principal keeps by a key."""
    found = repo.get_key(request.principal, request.key)
    return GetKeyAnswer(
        **msgspec.structs.asdict(_key(found)), body=repo.get(found.artifact) if request.content else b""
    )


class KeysRequest(ApiRequest, frozen=True, kw_only=True):
    """Which keys to list."""

    principal: str = ""
    """Whose; over a service, empty for whoever asks."""
    prefix: str = ""
    """Those that begin like this; empty for all."""


@crosses
def keys(repo: Repo, request: KeysRequest) -> Iterator[KeyAnswer]:
    """What a principal keeps, by key; at most a thousand of them."""
    return map(_key, repo.keys(request.principal, request.prefix))


class DeleteKeyRequest(ApiRequest, frozen=True, kw_only=True):
    """Which key to let go of."""

    key: str
    """The key."""
    principal: str = ""
    """Whose it is."""
    time: str | int | None = None
    """When it was; None for now."""


class DeleteKeyAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A key that leads nowhere any more."""

    principal: str
    """Whose it was."""
    key: str
    """The key."""


@crosses
def delete_key(repo: Repo, request: DeleteKeyRequest) -> DeleteKeyAnswer:
    """Let go of a key; what it said stays in the store."""
    repo.delete_key(request.principal, request.key, time=request.time)
    return DeleteKeyAnswer(principal=request.principal, key=request.key)


def _key(one: KeptKey) -> KeyAnswer:
    return KeyAnswer(**msgspec.structs.asdict(one) | {"time": stamp(one.time)})


# -- figures -----------------------------------------------------------------------------------------------------------


class PrincipalMetricsRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose figures."""

    principal: str = ""
    """Who; empty for everybody together."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""


class PrincipalFiguresAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What was done in some sessions, each once."""

    sessions: int
    """How many; a sub-agent's counts with the session that spawned it."""
    commits: int
    """Commits."""
    messages: int
    """Messages in their deltas."""
    tokens: int
    """Tokens in their deltas, as far as they were counted."""
    approximate: bool
    """Whether some of the tokens are an estimate."""
    price_usd_micros: int | None
    """What the sessions cost at list price, in millionths of a dollar; null where no price is known."""
    unpriced: list[str]
    """Models whose price nobody knows."""
    cost_usd_micros: int | None
    """What runtimes said that they cost; null where nobody did."""


class PrincipalMetricsAnswer(IndexedAnswer, frozen=True, kw_only=True):
    """A principal's figures."""

    principal: str
    """Who; empty for everybody."""
    running: list[str]
    """The sessions that began and are not over, the newest first."""
    live: PrincipalFiguresAnswer
    """What was done in these."""
    total: PrincipalFiguresAnswer
    """What was done in all, and in commits of no session."""


@crosses
def principal_metrics(repo: Repo, request: PrincipalMetricsRequest) -> PrincipalMetricsAnswer:
    """Commits, messages, tokens and cost of a principal: in sessions that are running, and in all."""
    found = repo.principal_metrics(request.principal, prices=request.prices)
    return PrincipalMetricsAnswer(
        principal=found.principal,
        running=list(found.running),
        live=_figures(found.live),
        total=_figures(found.total),
        **index_fields(found.reached),
    )


def _figures(found: PrincipalFigures) -> PrincipalFiguresAnswer:
    return PrincipalFiguresAnswer(**msgspec.structs.asdict(found) | {"unpriced": list(found.unpriced)})
