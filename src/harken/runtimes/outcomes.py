"""What became of a file: the value an import hands out for each, and how its figures are made."""

from __future__ import annotations

import msgspec

from harken.events.tally import Figures
from harken.formats.facts import FileFacts
from harken.store import SessionRow

from .kept import Kept


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file."""

    session: str
    runtime: str
    source: str
    status: str
    """`new`, `grown`, `rewritten`, `unchanged`, `skipped` or `failed`."""
    tip: str = ""
    parent: str = ""
    agents: tuple[str, ...] = ()
    commits: int = 0
    records: int = 0
    opaque: int = 0
    bytes: int = 0
    total_commits: int = 0
    total_records: int = 0
    total_opaque: int = 0
    total_bytes: int = 0
    figures: Figures = Figures()
    """What the session amounts to, all of it; `stats` says the same."""
    forked_from: str = ""
    error: str = ""


def failed(source: str, why: str) -> Outcome:
    """The file could not be read."""
    return Outcome(session="", runtime="", source=source, status="failed", error=why)


def skipped(source: str) -> Outcome:
    """The file is no session."""
    return Outcome(session="", runtime="", source=source, status="skipped")


def kept_as(row: SessionRow, kept: Kept, *, status: str, before: Kept | None = None, commits: int = 0) -> Outcome:
    """The file is in the store; what this run added is the difference to what it had `before`; a
    file that shrank added nothing."""
    old = kept if status == "unchanged" else before
    return Outcome(
        session=row.session,
        runtime=row.runtime,
        source=row.source,
        status=status,
        tip=row.tip,
        parent=row.parent,
        agents=kept.agents,
        commits=commits,
        records=max(0, kept.records - (old.records if old else 0)),
        opaque=max(0, kept.opaque - (old.opaque if old else 0)),
        bytes=max(0, kept.size - (old.size if old else 0)),
        total_commits=kept.chain.commits + bool(kept.chain.tail),
        total_records=kept.records,
        total_opaque=kept.opaque,
        total_bytes=kept.size,
        figures=kept.tally.figures(),
        forked_from=kept.forked_from,
    )


def would_be(row: SessionRow, facts: FileFacts, *, status: str, size: int, before: Kept | None) -> Outcome:
    """What an import that only looks says of a file."""
    return Outcome(
        session=row.session,
        runtime=row.runtime,
        source=row.source,
        status=status,
        parent=row.parent,
        agents=facts.agents,
        commits=len(facts.deltas),
        records=facts.records - (before.records if before else 0),
        opaque=facts.opaque - (before.opaque if before else 0),
        bytes=size - (before.size if before else 0),
        figures=facts.tally.figures(),
    )
