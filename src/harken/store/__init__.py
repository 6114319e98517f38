"""Bytes by hash, commits in chains, names that move; the store has never heard of an event."""

from __future__ import annotations

from .base import (
    CHECKPOINTS,
    COMMIT_TYPES,
    KINDS,
    POLICIES,
    Annotation,
    ArtifactInfo,
    BlobReader,
    BlobWriter,
    Change,
    Commit,
    CommitReader,
    CommitWriter,
    Content,
    Draft,
    Erasure,
    ErasureOrder,
    Feed,
    Maintenance,
    Move,
    Name,
    SessionRow,
    Sighting,
    Store,
    Tombstone,
    WalkStep,
    Writer,
)
from .maintenance import backup, fsck, gc
from .memory import MemoryStore
from .moves import find_move, undo
from .opening import open_store
from .packed import PackedFrame
from .reports import Finding, GcReport, Report
from .sqlite import SqliteStore
from .waiting import giving_up

__all__ = [
    "CHECKPOINTS",
    "COMMIT_TYPES",
    "KINDS",
    "POLICIES",
    "Annotation",
    "ArtifactInfo",
    "BlobReader",
    "BlobWriter",
    "Change",
    "Commit",
    "CommitReader",
    "CommitWriter",
    "Content",
    "Draft",
    "Erasure",
    "ErasureOrder",
    "Feed",
    "Finding",
    "GcReport",
    "Maintenance",
    "MemoryStore",
    "Move",
    "Name",
    "PackedFrame",
    "Report",
    "SessionRow",
    "Sighting",
    "SqliteStore",
    "Store",
    "Tombstone",
    "WalkStep",
    "Writer",
    "backup",
    "find_move",
    "fsck",
    "gc",
    "giving_up",
    "open_store",
    "undo",
]
