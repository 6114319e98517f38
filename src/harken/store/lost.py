"""The places that a repair kept for commits it did not find, and which commit each is for.

Whatever stands on a lost commit has a seal that is made with the seal of the lost one. So the same commit, made again
by an import, is known when it comes back, and nothing else can take its place.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from harken import clock
from harken.errors import Corrupt

from . import sql, values
from .db import Row, checked
from .values import Draft

if TYPE_CHECKING:
    from .sqlite import SqliteStore


def place_of(store: SqliteStore, behind: int | None, seal: str) -> int | None:
    """Inside a transaction: the place that was kept for a commit with this seal, which is free from now on. `behind`
    is the place after its parent; elsewhere it can only lie at the beginning of a chain."""
    for (number,) in store.db.all(sql.LOST_COMMITS):
        if number == behind or not number & 0xFFFFFFFF:
            for row in store.db.all(sql.CHILDREN, (number + 1, number)):
                with contextlib.suppress(Corrupt):
                    origin = store.interned_rows("origins", {checked("commits", row)[8]})[row[8]]
                    if seal_above(row, origin, seal) == row[2].hex():
                        store.db.do("DELETE FROM commits WHERE n = ?", (number,))
                        return int(number)
    return None


def seal_above(row: Row, origin: Row, seal: str) -> str:
    """The seal of the commit in this row, if that of its parent is this one."""
    session_id, format, commit_type, checkpoint, template, ticket_id, thread_id = origin
    draft = Draft(
        artifact=row[6].hex(),
        format=format,
        time=row[7],
        commit_type=commit_type,
        checkpoint=checkpoint,
        template=template,
        session_id=session_id,
        ticket_id=ticket_id,
        thread_id=thread_id,
    )
    return values.seal_of(draft, clock.format_seconds(row[7]), seal)
