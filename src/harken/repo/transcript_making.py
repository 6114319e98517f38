"""Making the layout of a transcript: from the index, and from what is read where the index lacks something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harken.analytics.transcript_rows import NO_ROWS, RowShape
from harken.context.lineage import agents_below, handed_down
from harken.context.readable import contents_of
from harken.context.walk import SNAPSHOT, named, places
from harken.errors import HarkenError, PartlyCorrupt
from harken.formats import find
from harken.index.row_shapes import ShapeRow, kept_shapes, shape_row, step_shape
from harken.store import SessionRow, Store
from harken.store.base import WalkStep

from .transcript_layout import TranscriptLayout

if TYPE_CHECKING:
    from harken.index import StoreIndex

UNREAD = RowShape("?", names=bytes(4))
"""A delta that cannot be read is one row, which says so."""
_BEGINNING = 512
"""Commits of a chain that are looked at where only its first rows are wanted."""
_STEPS = (64, 2048)
"""How far is walked back for a commit that is known, before all of a chain is walked."""


def hidden_agents(store: Store, row: SessionRow) -> frozenset[str]:
    """The agents inside a session's chain that have chains of their own."""
    format = find(store.get_commit(row.stand).format) if row.stand else None
    if format is not None and format.tells_agents:
        return frozenset()
    try:
        below = agents_below(store, row)
    except PartlyCorrupt as problem:
        below = [each for each in problem.rest if each.parent == row.session]
    return frozenset({each.agent for each in below if each.agent and each.tip}) - {row.agent}


def make_layout(
    store: Store, index: StoreIndex | None, row: SessionRow, known: TranscriptLayout | None
) -> TranscriptLayout:
    """The layout of a session where it stands; `known` is one of the same session, from before. Without an index all of
    it is read."""
    return _LayoutMaker(store, index).make(row, known)


def make_beginning(store: Store, index: StoreIndex | None, row: SessionRow, rows: int) -> TranscriptLayout | None:
    """The layout of the first rows of a long session, at least so many; None where it is not long, or where its
    beginning depends on the rest."""
    steps = store.beginning(row.stand, _BEGINNING) if row.stand else []
    if len(steps) < _BEGINNING or handed_down(store, row.stand, steps[0].id).found:
        return None
    made = _LayoutMaker(store, index).first(row, steps)
    return made if made.is_settled() and len(made) >= rows else None


class _LayoutMaker:
    def __init__(self, store: Store, index: StoreIndex | None) -> None:
        self._store, self._index = store, index

    def make(self, row: SessionRow, known: TranscriptLayout | None) -> TranscriptLayout:
        hidden = hidden_agents(self._store, row)
        if known is not None and known.hidden == hidden:
            if known.tip == row.stand:
                return known
            if (grown := self._grown(row.stand, known)) is not None:
                return grown
        made = TranscriptLayout(row.stand, hidden)
        steps = self._store.walk(row.stand)[::-1] if row.stand else []
        above = handed_down(self._store, row.stand, steps[0].id).found if steps else {}
        for caller, given in reversed(above.items()):
            made.begin_part(caller)
            self._add(made, self._store.walk(given.id)[::-1])
        made.begin_part("")
        self._add(made, steps)
        return made

    def first(self, row: SessionRow, steps: Sequence[WalkStep]) -> TranscriptLayout:
        made = TranscriptLayout(row.stand, hidden_agents(self._store, row))
        made.is_whole = False
        made.begin_part("")
        self._add(made, steps)
        return made

    def _grown(self, tip: str, known: TranscriptLayout) -> TranscriptLayout | None:
        """What a layout became; None where its chain has to be walked to its root."""
        first = max(known.parts[-1].first, len(known.commits) - _STEPS[-1])
        places_of = {known.commits[at].hex(): at for at in range(first, len(known.commits))}
        for limit in _STEPS:
            steps = self._store.walk(tip, limit=limit)
            at = next((at for at, step in enumerate(steps) if step.id in places_of), None)
            if at is not None:
                made = known.until(places_of[steps[at].id] + 1)
                made.tip = tip
                return made if self._add(made, steps[:at][::-1]) else None
        return None

    def _add(self, layout: TranscriptLayout, steps: Sequence[WalkStep]) -> bool:
        """Add the deltas of a chain, the oldest first, and say whether that went well."""
        kept = {} if self._index is None else kept_shapes(self._index, [bytes.fromhex(step.id) for step in steps])
        shapes = [kept.get(bytes.fromhex(step.id)) for step in steps]
        unknown = [at for at, shape in enumerate(shapes) if shape is None or shape.rows is None]
        root = layout.parts[-1].first == len(layout.commits)
        if unknown:
            before = 0 if root else layout.ends[-1]
            self._read(steps, shapes, unknown, before, root=root)
        return layout.add(steps, [shape for shape in shapes if shape is not None])

    def _read(
        self, steps: Sequence[WalkStep], shapes: list[ShapeRow | None], unknown: list[int], before: int, *, root: bool
    ) -> None:
        """Put what is read in the place of what the index does not know."""
        contents = contents_of(self._store, [steps[at] for at in unknown])
        for at, (step, data) in zip(unknown, contents, strict=True):
            last = shapes[at - 1] if at else None
            begin = before if last is None else -1 if last.end is None else last.end
            try:
                if isinstance(data, HarkenError):
                    raise data
                resets = step.commit_type in ("compaction", SNAPSHOT) and not (root and at == 0)
                shape, end = self._shape(step, data, steps[at - 1] if at else None, begin, resets=resets)
            except Exception:  # noqa: BLE001  a format of somebody else may break in any way; who reads it is told
                shape, end = UNREAD, -1
            shapes[at] = shape_row(shape, shapes[at], None if end < 0 else end)

    def _shape(
        self, step: WalkStep, data: bytes, below: WalkStep | None, begin: int, *, resets: bool
    ) -> tuple[RowShape, int]:
        format = find(step.format)
        if format is None or "read" not in format.can:
            return UNREAD, -1
        if resets and (step.commit_type == SNAPSHOT or self._repeats(below, data)):
            return NO_ROWS, begin
        place = None if resets or begin < 0 else begin
        events = format.read_delta(data)
        events = list(named(format, events, place)) if format.names_stored else events
        end = begin if resets else -1 if begin < 0 else begin + places(format, data)
        return step_shape(events, place, resets=resets), end

    def _repeats(self, below: WalkStep | None, data: bytes) -> bool:
        try:
            return below is not None and self._store.get(below.artifact).endswith(data)
        except HarkenError:
            return False
