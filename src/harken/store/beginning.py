"""Where a walk in SQLite ends: its root and what comes next, without what lies between them and its commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.errors import Corrupt

from . import sql
from .db import FSCK
from .values import WalkStep

if TYPE_CHECKING:
    from .commits import SqliteCommits


def first_steps(commits: SqliteCommits, number: int | None, count: int) -> list[WalkStep]:
    """The first steps of the walk from the commit of this row: each chain that it passes is looked at where it
    begins."""
    from .commits import parent_of

    passed: list[tuple[int, int]] = []
    while number is not None:
        first = number >> 32 << 32
        fork = commits.db.all(sql.LAST_FORK, (first, number))[0][0]
        passed.append((first if fork is None else fork, number))
        number = None if fork is None else parent_of(fork, commits.rows_at("commits", sql.COMMITS_AT, [fork])[0][5])
    found: list[WalkStep] = []
    for first, last in reversed(passed):
        wanted = min(count - len(found), last - first + 1)
        if wanted <= 0:
            break
        rows = commits.db.all(sql.BEGINNING, (first, last, wanted))
        if [row[0] for row in rows] != list(range(first, first + wanted)):
            raise Corrupt(f"chain {first >> 32} has a hole", hint=FSCK)
        found += commits.steps(rows)
    return found
