"""What a store in SQLite remembers of rows that never change, for as long as the epoch lasts in which it read them.

Only what is committed is kept: inside a transaction nothing is, since it may be taken back.
"""

from __future__ import annotations

import msgspec

from .db import Row
from .values import SessionRow

SavedSessions = dict[str | bytes, tuple[Row, SessionRow]]
"""Sessions by their ids: the row as it was written, its sum included, and what it says."""


class KeptRows(msgspec.Struct):
    """What was read or written in one epoch. A repair gives numbers to other rows, and begins another epoch; whoever
    still adds to this one then does no harm."""

    epoch: Row | None = None
    """The row that says which it is."""
    numbers: dict[str, tuple[int, str]] = {}
    """Row number and seal of commits, by their full names."""
    names: dict[int, str] = {}
    """The full names of commits, by their row numbers."""
    interned: dict[tuple[str, ...], int] = {}
    """The numbers of repeated text."""
    origins: dict[int, Row] = {}
    principals: dict[int, Row] = {}
    sessions: SavedSessions = {}
    watchwords: tuple[Row, ...] | None = None
    """Of secrets that are not let in, and of erasures; None before anybody has looked."""
