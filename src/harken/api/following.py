"""What operations of the page have in common: the index brought up to date, and a session with its sub-agents."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from harken.errors import BadRequest, HarkenError
from harken.index import IndexProgress
from harken.index.families import Families, FamilyMember
from harken.repo import Repo
from harken.store import SessionRow

SECONDS = 1.0
"""How long the index may catch up before it is asked; then the answer says what it lacks."""


def follow(repo: Repo, *, numbers: bool = True) -> IndexProgress:
    """Let the index catch up with the store. One in memory is followed to its end: nobody else goes on with it."""
    index = repo.index
    reached = index.catch_up(seconds=SECONDS, numbers=numbers)
    if index.path is None and (reached.behind or reached.stale):
        try:
            whole = index.catch_up(numbers=numbers)
        except (HarkenError, OSError, sqlite3.Error) as problem:
            return msgspec.structs.replace(reached, problem=reached.problem or str(problem))
        reached = msgspec.structs.replace(whole, problem=reached.problem)
    return reached


def family_of(repo: Repo, session: str) -> tuple[SessionRow, list[SessionRow]]:
    """A session's row, and those of its sub-agents."""
    return repo.chains.family(session)


def member(row: SessionRow) -> FamilyMember:
    """A session as one of its family."""
    return FamilyMember(row.session, row.parent, row.agent)


def families_of(rows: Sequence[SessionRow]) -> Families:
    """Who counts with whom."""
    return Families(map(member, rows))


def stands(rows: Sequence[SessionRow]) -> tuple[str, ...]:
    """The commits that sessions stand at: as long as these are the same, so is what can be said of them."""
    return tuple(row.stand for row in rows)


def check_range(start: int, count: int, most: int) -> None:
    """Refuse a range that is none, or more than is given at a time."""
    if start < 0 or not 0 < count <= most:
        raise BadRequest(f"a range begins at 0 or later and has 1 to {most} rows", hint="ask for fewer, then for more")
