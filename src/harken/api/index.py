"""The index beside the store: how far it is, brought up to date, built anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from harken.repo import Repo
from harken.store.explaining import explain

from .base import ApiAnswer, ApiRequest
from .crossing import crosses


class IndexRequest(ApiRequest, frozen=True, kw_only=True):
    """What to do about the index."""

    look: bool = False
    """Only say how far it is."""
    rebuild: bool = False
    """Remove it and build it anew."""


class IndexProblem(ApiAnswer, frozen=True, kw_only=True):
    """Something that could not be read, and cannot be found."""

    session: str
    """The session it belongs to; empty where that is not known."""
    commit: str
    """The commit's full name; empty where the session's row itself could not be read."""
    why: str
    """What is wrong with it."""


class IndexAnswer(ApiAnswer, frozen=True, kw_only=True):
    """How far the index is, and what it holds."""

    path: str
    """Its file; empty where it is held in memory."""
    at: int
    """The number of the last change of the store that was taken in."""
    last: int
    """The number of the store's last change."""
    behind: int
    """How many changes are missing."""
    taken: int
    """How many changes were taken in just now."""
    rebuilt: str
    """Why it was built anew just now; empty where it was not."""
    sessions: int
    """Sessions in it."""
    messages: int
    """Messages, calls, results, titles and summaries that can be found."""
    stale: int
    """Sessions whose numbers are not up to date."""
    bytes: int
    """The size of its files."""
    problems: list[IndexProblem]
    """What could not be read."""
    damaged: int
    """How many of these are damaged; others were evicted, or nothing here reads their format."""


@crosses
def index(repo: Repo, request: IndexRequest, *, moved: Callable[[int, int], None] | None = None) -> IndexAnswer:
    """Bring the index up to date, build it anew, or only look at it. `moved` is told how far it is meanwhile."""
    taken, rebuilt = 0, ""
    if not request.look:
        tell = moved or (lambda at, last: None)
        done = repo.index.rebuild(moved=tell) if request.rebuild else repo.index.catch_up(moved=tell)
        taken, rebuilt = done.taken, done.rebuilt
    try:
        status = repo.index.status()
    except sqlite3.Error as error:  # something that is no file stands in its place
        raise explain(error, str(repo.index.path)) from error
    return IndexAnswer(
        path=status.path,
        at=status.at,
        last=status.last,
        behind=max(0, status.last - status.at),
        taken=taken,
        rebuilt=rebuilt,
        sessions=status.sessions,
        messages=status.messages,
        stale=status.stale,
        bytes=status.bytes,
        problems=[IndexProblem(commit=commit, session=session, why=why) for commit, session, why in status.problems],
        damaged=status.damaged,
    )
