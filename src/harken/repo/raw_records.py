"""The bytes of a session as they were taken in, in pieces of a bounded size: nothing is read into them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from harken.context.standing import standing
from harken.context.walk import all_deltas
from harken.errors import HarkenError
from harken.store import Store

PIECE = 16 << 10
"""Bytes of a piece: what a commit added is one piece, or several where it is more."""
KEPT = 3
"""How many layouts are kept beside the one that was asked for last."""


class RawLayout(NamedTuple):
    """Where the pieces of a session are."""

    session: str
    commits: list[str]
    """The commits of its chain, oldest first."""
    artifacts: list[str]
    sizes: list[int]
    first: list[int]
    """The number of each commit's first piece, and behind the last how many pieces there are."""

    @property
    def total(self) -> int:
        return self.first[-1]


class RawPiece(NamedTuple):
    """A piece of what a commit added."""

    number: int
    commit: str
    start: int
    """How many bytes of the commit stand before it."""
    size: int
    """How many bytes the commit added."""
    data: bytes
    problem: str = ""
    """Why the bytes are not here."""


class RawRecords:
    """The bytes of a store's sessions. Several threads may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._layouts: dict[str, RawLayout] = {}

    def layout(self, ref: str) -> RawLayout:
        """The pieces of a session, as it stands or stood at a commit."""
        row = standing(self._store, ref).row
        if (known := self._layouts.get(row.stand)) is not None and known.session == row.session:
            return known
        steps = all_deltas(self._store.walk(row.stand))[::-1] if row.stand else []
        infos = self._store.infos([step.artifact for step in steps])
        sizes = [infos[step.artifact].size if step.artifact in infos else 0 for step in steps]
        first = [0]
        for size in sizes:
            first.append(first[-1] + max(1, -(-size // PIECE)))
        made = RawLayout(row.session, [step.id for step in steps], [step.artifact for step in steps], sizes, first)
        # A few are kept for whoever asks for the next pieces; which of them hardly matters.
        self._layouts = {**dict(list(self._layouts.items())[-KEPT:]), row.stand: made}
        return made

    def pieces(self, layout: RawLayout, start: int, count: int) -> Iterator[RawPiece]:
        """So many pieces from a number on. Whole characters stay whole: one that a piece would end in belongs to it."""
        end = min(layout.total, start + count)
        number = start
        while number < end:
            at = bisect_right(layout.first, number) - 1
            behind = min(end, layout.first[at + 1])
            commit, size = layout.commits[at], layout.sizes[at]
            places = range((number - layout.first[at]) * PIECE, (behind - layout.first[at]) * PIECE, PIECE)
            held, problem = b"", ""
            try:
                held = _part(self._store, layout.artifacts[at], places[0], places[-1] + PIECE + 3)
            except HarkenError as refused:
                problem = str(refused)
            for place in places:
                data = _whole(held, place - places[0], first=place == 0)
                yield RawPiece(number, commit, place, size, data, problem)
                number += 1


def _part(store: Store, artifact: str, start: int, end: int) -> bytes:
    """The bytes of an artifact from here to there; no more of it is held."""
    held, place = bytearray(), 0
    for part in store.iter_parts(artifact):
        held += part[max(0, start - place) : max(0, end - place)]
        place += len(part)
        if place >= end:
            break
    return bytes(held)


def _whole(held: bytes, start: int, *, first: bool) -> bytes:
    """A piece from the first byte of a character to the last of one."""
    begin, end = start, min(len(held), start + PIECE)
    if not first:
        begin = _next_character(held, begin)
    return held[begin : _next_character(held, end)]


def _next_character(held: bytes, place: int) -> int:
    most = min(len(held), place + 3)
    while place < most and held[place] & 0xC0 == 0x80:
        place += 1
    return place
