"""What a repair writes of what it did not find: the rows in the place of lost ones, which commit each is for, and the
rows in quarantine.

Whatever stands on a lost commit has a seal that is made with the seal of the lost one. So the same commit, made again
by an import, is known when it comes back, and nothing else can take its place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from harken import clock
from harken.errors import Corrupt

from . import sql, values
from .db import Row, checked
from .values import Draft

if TYPE_CHECKING:
    from .sqlite import SqliteStore


_LATER = (1 << 63) - 1
"""The time of a row that stands for a lost commit: no question about the past ever meets it."""


def lost_commit(number: int, artifact: int, origin: int, principal: int) -> Row:
    """The row in the place of a lost commit; what it points at is whatever there is."""
    return (number, b"", b"", 0, None, None, artifact, _LATER, origin, principal, None, None, 0, None, sql.LOST)


def lost_origin(number: int) -> Row:
    """The row in the place of a lost origin."""
    return (number, f"(lost {number})", *[""] * (len(sql.ORIGIN_COLUMNS) - 1), sql.LOST)


def stands_for_lost(table: str, row: Row) -> bool:
    """Whether a repair wrote this row in the place of one that it did not find."""
    if table == "commits":
        return row == lost_commit(row[0], row[6], row[8], row[9])
    return table == "origins" and row == lost_origin(row[0])


def quarantined(now: int, table: str, row: Mapping[str, object], why: str) -> Row:
    """A row of `quarantine`: the columns of another in hex, and its data as it is."""
    kept = {name: _hex(value) for name, value in row.items() if name != "data"}
    return now, table, why, msgspec.json.encode(kept).decode(), row.get("data")


def _hex(value: object) -> str:
    if not isinstance(value, bytes):
        value = ("" if value is None else str(value)).encode("utf-8", "surrogateescape")
    return value.hex().upper()


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
    draft = Draft(artifact=row[6].hex(), time=row[7], **dict(zip(sql.ORIGIN_COLUMNS, origin, strict=True)))
    return values.seal_of(draft, clock.format_seconds(row[7]), seal)
