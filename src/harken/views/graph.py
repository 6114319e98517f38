"""Commits as a drawing of lines: newest first, one column per branch, joined where two share a parent.

Pure: commits in, columns out (`place`), and from these rows of text (`draw`); the page draws the same columns. A
sub-agent's chain is drawn as a branch of the commit it was spawned at.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

MARKS = {"delta": "●", "compaction": "◆", "snapshot": "■"}
PLAIN = str.maketrans("●◆■│├┼┴╯─…", "*#@|+++'-.")
"""The drawing for terminals that know no other characters."""
WIDTH = 24
"""Columns drawn at most; a wider tree loses its lines at the right, never its commits."""


class GraphCommit(Protocol):
    """What a drawing needs to know of a commit."""

    @property
    def id(self) -> str: ...

    @property
    def parent(self) -> str: ...

    @property
    def commit_type(self) -> str: ...

    @property
    def time(self) -> Any:
        """Something to sort by: an instant, or its text; None where nobody knows it."""


C = TypeVar("C", bound=GraphCommit)


class GraphRow(NamedTuple, Generic[C]):
    """A line of the drawing; without a commit it only joins columns."""

    lines: str
    commit: C | None = None


class PlacedCommit(NamedTuple, Generic[C]):
    """A commit in its column, counted from 0 at the left."""

    commit: C
    column: int
    width: int
    """How many columns its row has."""
    parent: str
    """The commit that its line leads to: its parent, or where it was spawned; empty where it ends."""
    spawned: bool
    """Whether that is where it was spawned."""
    above: tuple[tuple[int, int], ...]
    """The lines between the row above and this one: from which column of that to which column of this."""
    joining: tuple[int, ...]
    """The columns that were waiting for it beside its own, and end here."""
    before: int
    """How many columns there were with these."""


def place(
    commits: Iterable[C],
    links: Mapping[str, str] | None = None,
    *,
    beyond: Container[str] = (),
    limit: int | None = None,
) -> Iterator[PlacedCommit[C]]:
    """The commits, children before parents and the newest first, each in its column: the first that waits for it, else
    a new one at the right. `links` maps a chain's first commit to the commit it was spawned at; lines to the commits
    `beyond` go on to the end."""
    below = _parents(list(commits), links or {}, beyond)
    columns: list[str] = []
    drawn: Sequence[int] = ()  # in which column of the row above each of them stands
    for commit in islice(_order(below), limit):
        waiting = [n for n, one in enumerate(columns) if one == commit.id]
        column, joining = (waiting[0], tuple(waiting[1:])) if waiting else (len(columns), ())
        kept = [n for n in range(len(columns)) if n not in joining] if joining else range(len(columns))
        above = sorted([(drawn[n], to) for to, n in enumerate(kept)] + [(drawn[n], column) for n in joining])
        before = max(len(columns), column + 1)
        columns = [columns[n] for n in kept]
        if not waiting:
            columns.append(commit.id)
        parent = below[commit.id][1]
        spawned = bool(parent) and not commit.parent
        yield PlacedCommit(commit, column, len(columns), parent, spawned, tuple(above), joining, before)
        drawn = [n for n in range(len(columns)) if parent or n != column]
        if parent:
            columns[column] = parent
        else:
            columns.pop(column)


def draw(
    commits: Iterable[C],
    links: Mapping[str, str] | None = None,
    *,
    beyond: Container[str] = (),
    limit: int | None = None,
    marks: str = "unicode",
) -> list[GraphRow[C]]:
    """The rows for these commits as `place` puts them, at most `limit` of them. `marks` is `unicode` or `ascii`."""
    rows: list[GraphRow[C]] = []
    for placed in place(commits, links, beyond=beyond, limit=limit):
        if placed.joining:
            rows.append(GraphRow(lines=_join(placed.before, placed.column, placed.joining)))
        mark = MARKS.get(placed.commit.commit_type, "●")
        cells = [mark if n == placed.column else "│" for n in range(placed.width)]
        rows.append(GraphRow(lines=_clip(cells), commit=placed.commit))
    if marks == "ascii":
        return [row._replace(lines=row.lines.translate(PLAIN)) for row in rows]
    return rows


def _parents(commits: Sequence[C], links: Mapping[str, str], beyond: Container[str]) -> dict[str, tuple[C, str]]:
    known = {commit.id for commit in commits}
    found: dict[str, tuple[C, str]] = {}
    for commit in commits:
        parent = commit.parent or links.get(commit.id, "")
        found[commit.id] = (commit, parent if parent in known or parent in beyond else "")
    return found


def _order(below: Mapping[str, tuple[C, str]]) -> Iterator[C]:
    """Children before parents, and among those that may come next the newest first, keeping a line together."""
    waiting = dict.fromkeys(below, 0)
    for _, parent in below.values():
        if parent in waiting:
            waiting[parent] += 1
    times = {id: commit.time for id, (commit, _) in below.items()}  # where nobody knows one, it is the oldest
    newest_first = sorted(below, key=lambda id: (times[id] is not None, times[id]), reverse=True)
    age = {id: number for number, id in enumerate(newest_first)}
    ready = [(age[id], id) for id, children in waiting.items() if not children]
    heapq.heapify(ready)
    while ready:
        _, id = heapq.heappop(ready)
        commit, parent = below[id]
        yield commit
        if parent in waiting:
            waiting[parent] -= 1
            if not waiting[parent]:
                heapq.heappush(ready, (age[parent], parent))


def _join(columns: int, place: int, joining: Sequence[int]) -> str:
    last = joining[-1]
    cells = []
    for n in range(columns):
        if n == place:
            cells.append("├")
        elif n in joining:
            cells.append("╯" if n == last else "┴")
        elif place < n < last:
            cells.append("┼")
        else:
            cells.append("│")
    text = ""
    for n, cell in enumerate(cells[:WIDTH]):
        text += cell + ("─" if place <= n < last else " ")
    return text.rstrip()


def _clip(marks: Sequence[str]) -> str:
    shown = list(marks[:WIDTH])
    if len(marks) > WIDTH and shown[-1] == "│":
        hidden = next((mark for mark in marks[WIDTH:] if mark != "│"), "")
        shown[-1] = hidden or "…"
    return " ".join(shown)
