"""What can be read of a list in which something cannot: one bad row stops nothing else, and is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harken.errors import Corrupt, PartlyCorrupt

from .db import FSCK, Row, checked
from .values import SessionRow

if TYPE_CHECKING:
    from .commits import SqliteCommits


def rest_of_sessions(store: SqliteCommits, raw: Sequence[Row], prefix: str, parent: str | None) -> PartlyCorrupt:
    """The sessions that can be read, and the names of those that cannot."""
    rest, bad = list[SessionRow](), list[str]()
    for row in raw:
        try:
            rest += store.read_sessions([checked("sessions", row)])
        except Corrupt as problem:
            bad.append(f"{row[1]!r} ({problem})")
    return PartlyCorrupt(
        f"{len(bad)} of {len(raw)} sessions cannot be read: {', '.join(bad)}",
        hint=FSCK,
        rest=[row for row in rest if row.session.startswith(prefix) and parent in (None, row.parent)],
    )
