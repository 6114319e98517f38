"""Bytes by hash, commits in chains, names that move; the store has never heard of an event."""

from __future__ import annotations

from .base import (
    CHECKPOINTS,
    COMMIT_TYPES,
    KINDS,
    POLICIES,
    Annotation,
    ArtifactInfo,
    Commit,
    Draft,
    Link,
    Move,
    Name,
    SessionRow,
    Sighting,
    Store,
    Writer,
)
from .memory import MemoryStore
from .opening import open_store
from .sqlite import SqliteStore

__all__ = [
    "CHECKPOINTS",
    "COMMIT_TYPES",
    "KINDS",
    "POLICIES",
    "Annotation",
    "ArtifactInfo",
    "Commit",
    "Draft",
    "Link",
    "MemoryStore",
    "Move",
    "Name",
    "SessionRow",
    "Sighting",
    "SqliteStore",
    "Store",
    "Writer",
    "open_store",
]
