"""A session as it stands, or as it stood at one of its commits: whatever a REF may name, to be looked at."""

from __future__ import annotations

import msgspec

from harken.errors import NotFound
from harken.store.base import Commit, SessionRow, Store

from .refs import get_commit, session_meant, session_of


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and whether it is meant as it was at an earlier time."""

    row: SessionRow
    """Its row; where it stood then, if so."""
    earlier: bool = False


def standing(store: Store, ref: str) -> Standing:
    """The session that is called like this, as it stands; where the REF names a commit in some other way (a branch, a
    tag, an older tip, a message), what had been said up to there."""
    if (row := session_meant(store, ref)) is not None:
        return Standing(row=row)
    return standing_at(store, get_commit(store, ref, whole=True))


def standing_at(store: Store, commit: Commit) -> Standing:
    """The session of a commit as it was there; a commit that is of no session has one to itself."""
    try:
        row = session_of(store, commit.short, commit)
    except NotFound:
        row = SessionRow(session=commit.session_id or commit.short, runtime=commit.template or "harken")
    if row.stand == commit.id:
        return Standing(row=row)
    # What a repair lost lies elsewhere, if the walk from here finds all of it.
    return Standing(row=msgspec.structs.replace(row, tip=commit.id, live="", older=(), lost=False), earlier=True)
