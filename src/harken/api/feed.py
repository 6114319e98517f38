"""The feed: what changed in the store, in the order it changed."""

from __future__ import annotations

from harken.errors import BadRequest
from harken.repo import Repo
from harken.store import Change

from .base import ApiAnswer, ApiRequest
from .crossing import crosses

LONGEST = 60.0
"""Seconds that a question may wait for an answer."""


class ChangesRequest(ApiRequest, frozen=True, kw_only=True):
    """From where on to tell."""

    after: int = 0
    """The number of the last change that is known; 0 for none."""
    epoch: str = ""
    """The epoch which that number belongs to; where the store has another one, all its changes are told, from the
    first. Empty: whatever the store has."""
    limit: int = 1000
    """At most so many."""
    wait: float = 0.0
    """Seconds to wait for a change where there is none yet; at most 60."""


class ChangeAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One change of the store."""

    number: int
    """Its number: no gap, always higher, never used again."""
    kind: str
    """`artifact`, `policy`, `commit`, `sighting`, `name`, `session`, `annotation`, `eviction` or `link`."""
    subject: str
    """The full name of an artifact or commit, a branch or tag, or a session; empty where it is no longer there."""
    detail: str
    """The policy, the principal of a sighting, `branch` or `tag`, or the key of an annotation."""
    problem: str
    """Why the subject has no name though it is there; empty where nothing is wrong."""


class ChangesAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What came after a number."""

    epoch: str
    """Tells a store from its backups and repairs: whoever knows another one starts over with these changes."""
    after: int
    """The number after which they come: the one that was asked for, or 0 where the store has another epoch."""
    last: int
    """The number of the newest change there is."""
    changes: list[ChangeAnswer]
    """The changes, oldest first."""


@crosses
def changes(repo: Repo, request: ChangesRequest) -> ChangesAnswer:
    """What changed in the store after a number, as search, pages and copies follow it."""
    if not 0 <= request.wait <= LONGEST or request.limit < 1 or request.after < 0:
        raise BadRequest(
            "a feed is asked with a number from 0, a limit from 1 and a wait of at most 60 seconds",
            hint="ask again after the wait instead of waiting longer",
        )
    known = request.epoch or repo.epoch
    if request.wait and known == repo.epoch:
        repo.wait(request.after, request.wait)
    after, epoch, last, found = _changes_of_one_epoch(repo, request.after, known, request.limit)
    return ChangesAnswer(
        epoch=epoch,
        after=after,
        last=last,
        changes=[
            ChangeAnswer(number=one.number, kind=one.kind, subject=one.subject, detail=one.detail, problem=one.problem)
            for one in found
        ],
    )


def _changes_of_one_epoch(repo: Repo, after: int, known: str, limit: int) -> tuple[int, str, int, list[Change]]:
    """Where they begin, their epoch, the newest number and the changes: of the epoch that is known, or from the first
    of another. A repair may come between any two questions, so the epoch is asked before and behind the others."""
    while True:
        epoch = repo.epoch
        start = after if epoch == known else 0
        found, last = repo.since(start, limit), repo.last_change()
        if repo.epoch == epoch:
            return start, epoch, last, found
