"""What formats hand over: deltas, what was written, and what could not be."""

from __future__ import annotations

import msgspec


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something a writer could not say in its format."""

    what: str
    count: int
    why: str


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a writer made, and what it had to leave out."""

    data: bytes
    losses: tuple[Loss, ...] = ()


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a file that becomes one commit: `data[start:end]`.

    Deltas of type `delta` follow each other without a gap, so joining them gives the file again. A `compaction`
    repeats the boundary and summary lines that the delta before it ends with.
    """

    start: int
    end: int
    commit_type: str = "delta"
    checkpoint: str = "turn_boundary"
    time: int | None = None
    """The last instant written in it."""
    closed: bool = True
    """False for the tail, which a grown file would continue."""
    records: int = 0
    messages: int = 0
    """Prompts and responses in it (`Tally.messages`)."""
    content: bytes | None = None
    """Its bytes, where they are not the range of the file: a message of a document, and what stands around it."""
