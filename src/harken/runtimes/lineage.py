"""Where a session comes from: a fork copies another's records, a resumed one was written by Harken, a thread may say.

The link is found when the file is first seen, and is outside names and seals: a chain never depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.formats.facts import FileFacts
from harken.store import SessionRow, Store

from .base import Identity, Runtime
from .memory import recall

RESUMED = "resumed/"
"""Branches of this prefix name a session that Harken wrote, and point at the commit it continues."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The commit a session goes on from, and the artifacts its first records repeat, in order."""

    commit: str
    artifacts: list[str]


class Beginnings:
    """Which session begins with which record, so that a copy finds its original without a search."""

    def __init__(self, rows: Iterable[SessionRow]) -> None:
        self._known: dict[tuple[str, str], str] = {}
        for row in rows:
            self.add(row)

    def add(self, row: SessionRow) -> None:
        """Note a session; the first that begins like this is the original."""
        for known in recall(row).values() if row.tip and not row.parent else ():
            if known.first:
                self._known.setdefault((row.runtime, known.first), row.session)

    def find(self, runtime: str, facts: FileFacts) -> str:
        """The session that this file copies or builds on; empty where none is known."""
        if facts.forked_from:
            return facts.forked_from
        return self._known.get((runtime, facts.fingerprint[0]), "") if facts.fingerprint else ""


def find_origin(
    store: Store, original: SessionRow | None, identity: Identity, runtime: Runtime, beginning: bytes
) -> Origin | None:
    """What this file goes on from, if the store knows it; `original` is the session it seems to copy, `beginning` its
    first megabytes."""
    if identity.parent:
        return None
    if (name := store.find_name(RESUMED + identity.session)) is not None:
        return Origin(commit=name.target, artifacts=_deltas(store, name.target))
    if original is None or not original.tip or original.session == identity.name:
        return None
    commit = _last_shared(store, original.tip, runtime, beginning)
    return Origin(commit=commit or original.tip, artifacts=_deltas(store, original.tip))


def _deltas(store: Store, tip: str) -> list[str]:
    return [link.artifact for link in reversed(store.walk(tip))]


def _last_shared(store: Store, tip: str, runtime: Runtime, beginning: bytes) -> str:
    """The original's newest commit that holds a record which the copy has too."""
    names = set(runtime.read.record_names(beginning))
    if not names:
        return ""
    for link in store.walk(tip):
        (data,) = store.get_many([link.artifact])
        if names.intersection(runtime.read.record_names(data)):
            return link.id
    return ""
