"""Bytes by hash, commits in chains, names that move; the store has never heard of an event."""

from __future__ import annotations

from .backup import backup
from .base import (
    CHECKPOINTS,
    COMMIT_TYPES,
    KINDS,
    POLICIES,
    Annotation,
    ArtifactInfo,
    Change,
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
from .fsck import Finding, Report, fsck
from .gc import GcReport, gc
from .memory import MemoryStore
from .moves import undo
from .opening import open_store
from .sqlite import SqliteStore

__all__ = [
    "CHECKPOINTS",
    "COMMIT_TYPES",
    "KINDS",
    "POLICIES",
    "Annotation",
    "ArtifactInfo",
    "Change",
    "Commit",
    "Draft",
    "Finding",
    "GcReport",
    "Link",
    "MemoryStore",
    "Move",
    "Name",
    "Report",
    "SessionRow",
    "Sighting",
    "SqliteStore",
    "Store",
    "Writer",
    "backup",
    "fsck",
    "gc",
    "open_store",
    "undo",
]
