"""Packing: small frames of one chain become a large one, which takes a fraction of the room.

Content is read and compressed before anybody has to wait; then one transaction checks that nothing changed meanwhile,
adds the large frame and moves the slices. Whoever reads at that moment sees either state. The slot of a small frame
is free when no artifact points at it any more; nothing is written to say so, and the next small frame goes there.

What a checkpoint wrote goes through up to three places, and each step is taken only where it saves room:

    a small loose frame     as it was written; every further checkpoint of the chain adds one
    a larger loose frame    the chain's small ones together, below three quarters of a full frame: it is still loose, so
                            that the next packing makes one frame of it and of what came since
    a frame                 for good: full, or of several chains, or because another frame leans on it as its prefix

Slots are overwritten in place and numbers of frames are never used again. So a reader may remember a frame by its
number, and a slot only together with the hash that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from harken.errors import Corrupt

from . import sql
from .blob_writer import LOOSE_LIMIT, add_frame, fill_slot, place_artifact
from .blobs import FRAME_SIZE as FRAME_SIZE
from .blobs import PACKED, Frame, seal_frame
from .db import Row, checked

if TYPE_CHECKING:
    from .sqlite import SqliteStore

LOOSE_TOTAL = 4 * FRAME_SIZE
"""Content of small loose frames in the whole store that is gathered even where no chain has a frame full of it: many
short sessions would otherwise never be packed."""

SMALL = LOOSE_LIMIT
"""Below this a loose frame is as it was written; above, it has been packed once and may grow."""

FEW = 8
"""Fewer loose frames than this are left alone when a chain ends or a store is closed."""


class Loose(NamedTuple):
    """A loose frame: its slot, the chain it belongs to and the rows of artifacts it holds."""

    slot: int
    hash: bytes
    size: int
    chain: int
    first: int
    last: int

    @classmethod
    def of(cls, row: Row) -> Loose:
        """A row of the table, checked."""
        return cls(*checked("loose", row))


def pack(store: SqliteStore, chain: int | None) -> int:
    """Gather a chain's loose frames, or everybody's; the answer is how many small frames went."""
    gone = 0
    db = store.db
    rows = db.all(sql.LOOSE_ALL) if chain is None else db.all(sql.LOOSE_OF, (chain,))
    for group in _groups([Loose.of(row) for row in rows]):
        try:
            content, frame = _gather(store, group)
        except Corrupt:
            if all(db.one(sql.LOOSE_HASH, (loose.slot,)) for loose in group):
                raise
            continue  # others have packed it since, and closed the store, which gives the room of slots back
        with db.transaction():
            moved = _swap(store, group, content, frame)
        gone += moved
    return gone


def settle(store: SqliteStore, chain: int) -> None:
    """Inside a transaction: gather a chain's loose frames for good: another frame is going to lean on them."""
    rows = [Loose.of(row) for row in store.db.all(sql.LOOSE_OF, (chain,))]
    for group in _groups(rows):
        content, frame = _gather(store, group)
        _swap(store, group, content, frame, for_good=True)
    for row in store.db.all(sql.LOOSE_OF, (chain,)):
        _settle_one(store, Loose.of(row))


def _settle_one(store: SqliteStore, loose: Loose) -> None:
    """Inside a transaction: make a loose frame an ordinary one, as it is."""
    db = store.db
    number = highest_frame(store) + 1
    (data,) = db.one(sql.SLOT_DATA, (loose.slot,)) or (b"",)
    add_frame(db, number, Frame(loose.hash, loose.size, data))
    for row in _slices(store, loose):
        place_artifact(db, row, number, row[3])


def _slices(store: SqliteStore, loose: Loose) -> list[Row]:
    """The rows of the artifacts that lie in a loose frame."""
    rows = store.db.all(sql.SLICES_BETWEEN, (loose.first, loose.last, -loose.slot))
    return [checked("artifacts", row) for row in rows]


def _gather(store: SqliteStore, group: list[Loose]) -> tuple[int, Frame]:
    content = b"".join(store.frame(-loose.slot) for loose in group)
    return len(content), seal_frame(content, level=PACKED)


def _swap(store: SqliteStore, group: list[Loose], size: int, frame: Frame, *, for_good: bool = False) -> int:
    """Inside a transaction: put the large frame in the place of the small ones, unless something changed."""
    db, start = store.db, 0
    moves: list[tuple[Row, int]] = []
    for loose in group:
        # The group was read and compressed before this transaction began: another process may have packed it since,
        # and filled the slot anew. Then the work was for nothing, and nothing is lost.
        row = db.one(sql.LOOSE_ROW, (loose.slot,))
        if row is None or row[:-1] != tuple(loose):
            return 0
        # The slices must be the whole content, else those of the group behind them would get a wrong start.
        slices = _slices(store, loose)
        if sum(row[4] for row in slices) != loose.size:
            if slices:  # some of it was evicted: the frame stays as it is until gc writes it anew
                _settle_one(store, loose)
            return 0
        moves += [(row, start + row[3]) for row in slices]
        start += loose.size
    chains = {loose.chain for loose in group}
    # Made a frame now, a chain that grows slowly would leave one small frame for good at every packing.
    if len(chains) == 1 and size < FRAME_SIZE * 3 // 4 and not for_good:
        (slot,) = db.one(sql.NEXT["slot"]) or (1,)
        ends = (min(loose.first for loose in group), max(loose.last for loose in group))
        fill_slot(db, slot, frame, chains.pop(), *ends)
        number = -int(slot)
    else:
        number = highest_frame(store) + 1
        add_frame(db, number, frame)
    for slice, offset in moves:
        place_artifact(db, slice, number, offset)
    return len(group)


def highest_frame(store: SqliteStore) -> int:
    """The highest frame number given out so far."""
    (highest,) = store.db.one("SELECT coalesce(max(n), 0) FROM frames") or (0,)
    return int(highest)


def keep_highest(store: SqliteStore, highest: int) -> None:
    """After frames were dropped: a number is never used again, so an empty frame keeps the highest known.

    The next number is the highest in the table and one; without this, the number of a dropped frame would come back."""
    if highest_frame(store) < highest:
        add_frame(store.db, highest, seal_frame(b""))


def _groups(rows: list[Loose]) -> Iterator[list[Loose]]:
    """Neighbours that fill a frame together. A frame left alone has nothing to be gathered with."""
    group: list[Loose] = []
    size = 0
    for row in rows:
        if group and size + row.size > FRAME_SIZE:
            if len(group) > 1:
                yield group
            group, size = [], 0
        group.append(row)
        size += row.size
    if len(group) > 1:
        yield group
