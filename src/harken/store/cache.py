"""The cache of derived bytes: a SQLite file of its own beside the store, bounded, checked, and free to delete.

Nothing here may ever fail a caller: whatever goes wrong, the answer is "not cached". A damaged file is deleted.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

from harken import clock
from harken.errors import Corrupt

from . import forking
from .blobs import FRAME_SIZE, Frame, open_frame, seal_frame
from .explaining import explain

LIMIT = 256 << 20
"""Bytes on disk that the cache keeps, more or less."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, used INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS pieces (key TEXT NOT NULL, piece INTEGER NOT NULL, hash BLOB NOT NULL,
  size INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, piece));
"""


class Cache:
    """Derived bytes by key; the least recently used goes first."""

    def __init__(self, path: str, *, limit: int = LIMIT) -> None:
        self.path = path
        self.limit = limit
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.forked = False
        with forking.OPENING:
            forking.USERS.add(self)

    @property
    def used_by_others(self) -> bool:
        """Whether a thread is inside."""
        return self._lock.locked()

    def get(self, key: str) -> bytes | None:
        """The bytes, if they are there and whole."""
        with self._lock, contextlib.suppress(OSError):
            if self._connection is None and not Path(self.path).exists():
                return None
            try:
                connection = self._open()
                rows = connection.execute(
                    "SELECT hash, size, data FROM pieces WHERE key = ? ORDER BY piece", (key,)
                ).fetchall()
                entry = connection.execute("SELECT size FROM entries WHERE key = ?", (key,)).fetchone()
                data = b"".join(open_frame(Frame(*row), name="a cached piece") for row in rows)
                if entry is None or entry[0] != len(data):
                    return None
                with contextlib.suppress(sqlite3.OperationalError):  # others write: then it counts as not used
                    connection.execute("UPDATE entries SET used = ? WHERE key = ?", (clock.now(), key))
                return data
            except (sqlite3.Error, Corrupt) as error:
                self._give_up(error)
        return None

    def put(self, key: str, data: bytes) -> None:
        """Keep the bytes; a quarter of the cache is the most that one entry may take."""
        if len(data) > self.limit // 4:
            return
        frames = [seal_frame(data[i : i + FRAME_SIZE], level=1) for i in range(0, len(data), FRAME_SIZE)]
        with self._lock, contextlib.suppress(OSError):
            try:
                connection = self._open()
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("DELETE FROM pieces WHERE key = ?", (key,))
                rows = [(key, n, frame.hash, frame.size, frame.data) for n, frame in enumerate(frames)]
                connection.executemany("INSERT INTO pieces VALUES (?, ?, ?, ?, ?)", rows)
                connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (key, clock.now(), len(data)))
                self._shrink(connection, self.limit)
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._give_up(error)

    def size(self) -> int:
        """Bytes on disk."""
        total = 0
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                total += Path(self.path + suffix).stat().st_size
        return total

    def clear(self) -> int:
        """Delete it all; the answer is how many bytes that freed."""
        with self._lock:
            freed = self.size()
            self._discard()
        return freed

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=1.0)
            self._connection = connection
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_SCHEMA)
        return self._connection

    def _shrink(self, connection: sqlite3.Connection, limit: int) -> None:
        (total,) = connection.execute("SELECT coalesce(sum(length(data)), 0) FROM pieces").fetchone()
        for (key,) in connection.execute("SELECT key FROM entries ORDER BY used").fetchall():
            if total <= limit:
                break
            (less,) = connection.execute("SELECT sum(length(data)) FROM pieces WHERE key = ?", (key,)).fetchone()
            connection.execute("DELETE FROM pieces WHERE key = ?", (key,))
            connection.execute("DELETE FROM entries WHERE key = ?", (key,))
            total -= less or 0

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _give_up(self, error: Exception) -> None:
        """Delete a damaged file. One that is busy, or has no room, holds what others count on; the next one may have
        more luck."""
        if isinstance(error, sqlite3.OperationalError) and not isinstance(explain(error, self.path), Corrupt):
            self._close()
        else:
            self._discard()

    def _discard(self) -> None:
        self._close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                Path(self.path + suffix).unlink()
