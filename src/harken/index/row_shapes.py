"""What the index keeps of the rows of a transcript: which rows the delta of each commit has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from harken.analytics.transcript_rows import COMPACTION, DeltaRows, RowShape, shape_of
from harken.events import Event

from .file import StoreIndex
from .rows import CallRow, MessageRow, in_chain

_COLUMNS = 'n, "end", rows, agents, marks, names, beside, calls, session, "commit"'
_AT_ONCE = 500
_WIDE = 4
"""Commits that lie between the first and the last of a chain are read as well, up to so many for each of the chain:
that is quicker than looking each of them up by its name."""


class ShapeRow(NamedTuple):
    """What is kept of the rows of a commit's delta, as the table has it."""

    number: int
    """What the index calls the commit; -1 where it does not know it."""
    end: int | None
    """The place in its chain behind its delta."""
    rows: str | None
    """A letter for each; None where the delta could not be read."""
    agents: str | None = None
    marks: str | None = None
    names: bytes | None = None
    beside: bytes | None = None
    calls: bytes | None = None
    session: int | None = None


def step_shape(
    events: Sequence[Event], begin: int | None, *, resets: bool, messages: Iterable[MessageRow] = ()
) -> RowShape:
    """The rows that a commit adds to a transcript, whose delta begins at that place of its chain. Of one that stands
    for everything below it, and does not repeat what is there, only the summary. `messages` are the rows of the same
    events, where they are made already."""
    only = (COMPACTION,) if resets else None
    calls = [call for one in messages if isinstance(call := one.more, CallRow)]
    files = {call.call_id: call.touched for call in calls}
    if len(files) < len(calls):  # an id that stands for several calls tells nothing
        files = {}
    return shape_of(DeltaRows(events), lambda name: in_chain(name, begin) if name[:1] == "@" else name, only, files)


_encode = msgspec.json.Encoder().encode


def shape_row(shape: RowShape | None, known: ShapeRow | None = None, end: int | None = None) -> ShapeRow:
    """What is kept of a shape; `known` is what the index knows of the commit beside it."""
    number, session = (known.number, known.session) if known is not None else (-1, None)
    if shape is None:
        return ShapeRow(number, end, None, session=session)
    agents = _encode(shape.agents).decode() if shape.agents else None
    marks = _encode(shape.marks).decode() if shape.marks else None
    names, beside, calls = (data or None for data in (shape.names, shape.beside, shape.calls))
    return ShapeRow(number, end, shape.letters, agents, marks, names, beside, calls, session)


def kept_shapes(index: StoreIndex, commits: Sequence[bytes]) -> dict[bytes, ShapeRow]:
    """What the index knows of these commits, which are a chain or a part of one; those that it does not know are left
    out."""
    found: dict[bytes, ShapeRow] = {}
    if not commits:
        return found
    ends = index.query('SELECT n FROM commits WHERE "commit" IN (?, ?)', [commits[0], commits[-1]])
    numbers = [n for (n,) in ends]
    if numbers and max(numbers) - min(numbers) <= _WIDE * len(commits):
        between = index.query(f"SELECT {_COLUMNS} FROM commits WHERE n BETWEEN ? AND ?", (min(numbers), max(numbers)))
        found = {row[-1]: ShapeRow(*row[:-1]) for row in between}
    missing = [name for name in commits if name not in found]
    for first in range(0, len(missing), _AT_ONCE):
        some = missing[first : first + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = index.query(f'SELECT {_COLUMNS} FROM commits WHERE "commit" IN ({marks})', some)
        found |= {row[-1]: ShapeRow(*row[:-1]) for row in rows}
    return found


_decode_agents = msgspec.json.Decoder(list[tuple[str, int]]).decode


def agents_in(shape: ShapeRow) -> list[tuple[str, int]]:
    """Whose rows they are: an agent and how many rows in turn."""
    return _decode_agents(shape.agents) if shape.agents else [("", len(shape.rows or ""))]
