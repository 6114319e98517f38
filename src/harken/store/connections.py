"""The connections of a pool."""

from __future__ import annotations

import sqlite3
from typing import Any

from .waiting import SLICE


class PooledConnection(sqlite3.Connection):
    """A connection, and what was known when it was last looked at."""

    looked_at: int | None = None
    """How many changes of others it had seen when the store's epoch was looked at."""
    files: tuple[object, ...] = ()
    """What the files were when it was made; of one that only reads."""


POOLED: dict[str, Any] = {
    "factory": PooledConnection,
    "isolation_level": None,
    "check_same_thread": False,
    "timeout": SLICE,
    "cached_statements": 256,
}
"""How each of them is made."""
