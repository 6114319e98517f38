"""What an import amounts to: the last line of it."""

from __future__ import annotations

from .base import ApiAnswer


class PassedOver(ApiAnswer, frozen=True, kw_only=True):
    """A file that is no session."""

    source: str
    """The file."""
    why: str
    """What tells so."""


class ImportCounts(ApiAnswer, frozen=True, kw_only=True):
    """The figures of an import."""

    sessions: int
    """Sessions that were looked at, each once; a sub-agent counts with the session that spawned it."""
    agents: int
    """Sub-agents of these that were looked at."""
    changed: int
    """Sessions that are new or have changed, or have a sub-agent that is or has."""
    commits: int
    """Commits that were added."""
    records: int
    """Records that were added."""
    opaque: int
    """Records among them that could not be read."""
    bytes: int
    """Bytes that were added."""
    failed: int
    """Files that could not be imported."""
    skipped: int
    """Files that are no sessions, or are not called like one in a folder that was named."""
    seconds: float
    """How long it took."""
    index: str
    """Why the index could not be brought up to date; empty where it was, or was not to be."""
    passed_over: list[PassedOver]
    """These files, and why."""
    unread: dict[str, int]
    """Programs whose sessions cannot be read yet, as people call them, to how many files of theirs were found: among
    those passed over, or where the program keeps its own."""


class ImportReport(ApiAnswer, frozen=True, kw_only=True):
    """The last line of an import."""

    report: ImportCounts
    """Everything together."""
