"""What a database says of the sessions in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import msgspec


class SessionVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a database, as far as it is known without its rows."""

    key: str
    version: bytes
    """What changes whenever any of its rows does."""
    changed: int
    """When that was last, as its rows say: another change at the same instant may leave the same version."""
    rows: Callable[[], bytes]
    """Gives its rows, as `SessionReader.sessions` does."""


class Same(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One session of a database is as it was when it was kept."""

    key: str


def no_sessions(connection: sqlite3.Connection) -> Iterable[tuple[str, bytes]]:
    """Most runtimes keep no database."""
    return ()


def no_versions(connection: sqlite3.Connection) -> Iterable[SessionVersion]:
    """Most databases do not tell what has changed."""
    return ()
