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


class LostPlaces:
    """The places that are still kept, in one transaction, and what stands on each."""

    def __init__(self, store: SqliteStore) -> None:
        self._db = store.db
        self._above: dict[int, list[tuple[Row, Row]]] = {}
        """The commits that stand on each place, with their origins."""
        for (number,) in store.db.all(sql.LOST_COMMITS):
            for row in store.db.all(sql.CHILDREN, (number + 1, number)):
                with contextlib.suppress(Corrupt):
                    origin = store.interned_rows("origins", {checked("commits", row)[8]})[row[8]]
                    self._above.setdefault(number, []).append((row, origin))

    def take(self, seal: str) -> int | None:
        """The place that was kept for a commit with this seal; it is free from now on."""
        for number, above in self._above.items():
            if any(seal_above(row, origin, seal) == row[2].hex() for row, origin in above):
                self._db.do("DELETE FROM commits WHERE n = ?", (number,))
                del self._above[number]
                return number
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
