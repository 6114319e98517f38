"""The records of a session as its runtime wrote them, in bounded ranges."""

from __future__ import annotations

from harken.repo import Repo
from harken.repo.raw_records import RawPiece
from harken.store import Commit

from .base import ApiAnswer, ApiRequest, stamp
from .crossing import crosses
from .following import check_range

MOST_RECORDS = 200


class RawRecordsRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose records, and which of them."""

    session: str
    """The id of a session in the store, or a unique beginning of one."""
    start: int = 0
    """The first piece that is wanted; 0 is the oldest."""
    count: int = 50
    """How many pieces, up to 200."""


class RawRecord(ApiAnswer, frozen=True, kw_only=True):
    """What a commit added, or a piece of it: pieces have at most 16 KiB."""

    n: int
    """Its number."""
    commit: str
    """The short name of the commit."""
    commit_id: str
    """The full name of the commit."""
    time: str | None
    """When the commit was made."""
    start: int
    """How many bytes of the commit stand before this piece."""
    bytes: int
    """How many bytes the commit added."""
    text: str
    """The piece, as text; bytes that are none are shown as �."""
    problem: str
    """Why the bytes are not here; empty where they are."""


class RawRecordsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Pieces of a session's bytes, oldest first."""

    session: str
    """The id of the session."""
    total: int
    """How many pieces there are."""
    commits: int
    """How many commits added them."""
    bytes: int
    """How many bytes there are."""
    start: int
    """The number of the first piece here."""
    records: list[RawRecord]
    """The pieces."""


@crosses
def raw_records(repo: Repo, request: RawRecordsRequest) -> RawRecordsAnswer:
    """What a session's runtime wrote, commit by commit and byte by byte: nothing is read into it."""
    check_range(request.start, request.count, MOST_RECORDS)
    layout = repo.raw_records.layout(request.session)
    pieces = list(repo.raw_records.pieces(layout, request.start, request.count))
    commits = {name: repo.commit(name) for name in {piece.commit for piece in pieces}}
    return RawRecordsAnswer(
        session=layout.session,
        total=layout.total,
        commits=len(layout.commits),
        bytes=sum(layout.sizes),
        start=request.start,
        records=[_record(piece, commits[piece.commit]) for piece in pieces],
    )


def _record(piece: RawPiece, commit: Commit) -> RawRecord:
    return RawRecord(
        n=piece.number,
        commit=commit.short,
        commit_id=commit.id,
        time=stamp(commit.time or None),
        start=piece.start,
        bytes=piece.size,
        text=piece.data.decode("utf-8", "replace"),
        problem=piece.problem,
    )
