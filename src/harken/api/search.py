"""Search: the messages that a query finds, and where each can be looked at and continued."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harken import formats
from harken.errors import HarkenError
from harken.index.search import Hit
from harken.repo import Repo

from .base import ApiAnswer, ApiRequest, IndexedAnswer, index_fields, stamp
from .crossing import crosses


class SearchRequest(ApiRequest, frozen=True, kw_only=True):
    """What to look for."""

    query: str
    """Words, "phrases", beginnings*, -not, OR, and filters like `role:human` and `since:7d`."""
    limit: int = 10
    """How many hits at most, up to 1,000."""


class SearchHit(ApiAnswer, frozen=True, kw_only=True):
    """A message that was found; the best comes first."""

    session: str | None
    """The session it is in."""
    message_id: str | None
    """The record it stands in; null where the record has no name."""
    agent: str | None
    """Whose it is, where the session has several agents."""
    role: str
    """`human`, `injected`, `assistant`, `thinking`, `call`, `result`, `system`, `title` or `summary`."""
    snippet: str
    """A piece of its text around what was found, on one line."""
    highlights: list[tuple[int, int]]
    """Where in the snippet it stands: beginnings and ends, in characters."""
    score: float
    """How well it fits; only the order within one answer means something."""
    time: str | None
    """When it was said."""
    runtime: str | None
    """The program that held the session."""
    project: str | None
    """The folder that was worked in."""
    title: str | None
    """What the session is called."""
    tool: str | None
    """The tool, for a call or its result."""
    model: str | None
    """The model that wrote it, where that is known."""
    commit: str | None
    """The short name of the commit that holds it; for a title, of its session's newest."""
    ref: str
    """What to cite: `SESSION@MESSAGE`, for a title the session, else the commit."""
    command: list[str]
    """What continues the conversation from there, or shows it where no program can continue it."""
    copies: list[str]
    """Other sessions that have the same message, by a fork or a resume."""
    problem: str
    """Why there is no snippet; empty where there is one."""


class SearchRest(IndexedAnswer, frozen=True, kw_only=True):
    """The last line, where the hits are not everything."""

    more: bool
    """Whether there are more hits than were asked for."""
    rebuilt: str
    """Why the index was built anew; empty where it was not."""


@crosses
def search(repo: Repo, request: SearchRequest) -> Iterator[SearchHit | SearchRest]:
    """The messages that a query finds, the best first; what a fork or a resume copied is one of them."""
    found = repo.search(request.query, limit=request.limit)
    shorts = repo.shorts({hit.commit for hit in found.hits if hit.commit})
    for hit in found.hits:
        yield _answer(hit, shorts.get(hit.commit) or _tip(repo, hit.session))
    rest = SearchRest(more=found.more, rebuilt=found.reached.rebuilt, **index_fields(found.reached))
    if any(msgspec.structs.astuple(rest)):
        yield rest


def _answer(hit: Hit, short: str) -> SearchHit:
    ref = _ref(hit, short)
    return SearchHit(
        session=hit.session or None,
        message_id=hit.message_id or None,
        agent=hit.agent or None,
        role=hit.role,
        snippet=hit.snippet.text,
        highlights=list(hit.snippet.spots),
        score=hit.score,
        time=stamp(hit.time),
        runtime=hit.runtime or None,
        project=hit.project or None,
        title=hit.title or None,
        tool=hit.tool or None,
        model=hit.model or None,
        commit=short or None,
        ref=ref,
        command=_command(hit, short or ref),
        copies=list(hit.copies),
        problem=hit.problem,
    )


def _tip(repo: Repo, session: str) -> str:
    """The short name of a session's newest commit: where a title leads."""
    try:
        return repo.commit(session).short if session else ""
    except HarkenError:  # it has none, or its row is damaged; the title was found all the same
        return ""


def _ref(hit: Hit, short: str) -> str:
    # A record that is called after its place is that one in its own chain alone; its commit stays what it is.
    if hit.session and hit.message_id and not hit.message_id.startswith("@"):
        return f"{hit.session}@{hit.message_id}"
    return short if hit.commit else hit.session


def _command(hit: Hit, ref: str) -> list[str]:
    """The command that goes on from the hit: in the program that held it, where that can."""
    known = formats.find(f"{hit.runtime}-v1") if hit.runtime else None
    if known is not None and known.runtime == hit.runtime and "write" in known.can:
        return ["harken", "resume", ref, "--in", hit.runtime]
    return ["harken", "show", ref]
