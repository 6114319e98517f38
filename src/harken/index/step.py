"""What is done in one transaction of the index: the next changes of the store, else the numbers of some sessions.

Most readers find nothing to do, so what does it is loaded only where there is something.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from harken.errors import Corrupt
from harken.formats.base import revision
from harken.store.base import Store

STALE = 50
"""Sessions whose numbers are made in one transaction."""
JOINED = 1000
"""Pages of words that are joined in one transaction."""


def take(
    connection: sqlite3.Connection, store: Store, goal: int | None, *, numbers: bool, go_on: Callable[[], bool]
) -> tuple[int, int, bool]:
    """Inside a transaction: where the index stood, where it stands now, and whether there is more to do. Changes behind
    `goal` are no reason to go on, else whoever asks would follow those who write for as long as they do. Numbers are
    made as long as it may go on."""
    at = place_of(connection)
    is_behind = last_of(store, at) > at and (goal is None or at < goal)
    if is_behind and (now := _follow(connection, store, at)) != at:
        return at, now, numbers or goal is None or now < goal
    return at, at, numbers and _count(connection, store, go_on) > 0


def last_known(store: Store) -> int | None:
    """The number of the store's last change; None where its row is damaged."""
    try:
        return store.last_change()
    except Corrupt:
        return None


def last_of(store: Store, at: int) -> int:
    """The number of the store's last change. Where its row is damaged, whether there is one after a number: then the
    next, since the feed is followed up to what can be read, and what cannot is written down."""
    try:
        return store.last_change()
    except Corrupt:
        try:
            return at + 1 if store.since(at, 1) else at
        except Corrupt:
            return at + 1


def place_of(connection: sqlite3.Connection) -> int:
    """The number of the last change that was taken in."""
    (at,) = connection.execute("SELECT value FROM state WHERE key = 'at'").fetchone()
    return int(at)


def _follow(connection: sqlite3.Connection, store: Store, at: int) -> int:
    from .follow import Batch

    (begun,) = connection.execute("SELECT value FROM state WHERE key = 'begun'").fetchone()
    batch = Batch(connection, store)
    now = batch.take(at, begun)
    for name in batch.formats:
        connection.execute("INSERT OR IGNORE INTO state VALUES (?, ?)", (f"revision {name}", revision(name)))
    connection.execute("UPDATE state SET value = ? WHERE key = 'at'", (now,))
    return now


def _count(connection: sqlite3.Connection, store: Store, go_on: Callable[[], bool]) -> int:
    if connection.execute("SELECT 1 FROM stale UNION ALL SELECT 1 FROM unsummed LIMIT 1").fetchone() is None:
        return 0
    from .figures import refresh
    from .totals import sum_up

    made = refresh(connection, store, limit=STALE, go_on=go_on)
    sum_up(connection)
    return made


def join_words(connection: sqlite3.Connection, go_on: Callable[[], bool]) -> None:
    """Join the words of all transactions into one piece, a part in each transaction, as long as it may go on.

    SQLite joins pieces of about one size as soon as there are sixteen. Large ones would be joined when a line is
    added, and whoever waits for that line would wait for all of them."""
    pages = -JOINED  # the first time: all pieces, of whatever size
    changed = 2
    while changed >= 2 and go_on():
        before = connection.total_changes
        connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (pages,))
        changed, pages = connection.total_changes - before, JOINED
