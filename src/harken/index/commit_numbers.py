"""The commits that were taken in: their numbers, and their rows on their way into the table."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from harken.analytics.transcript_rows import RowShape

from .row_shapes import shape_row

_AT_ONCE = 500
"""How many names stand in one question."""


class Below(NamedTuple):
    """What is known of a chain up to a commit, that one included."""

    end: int | None
    """The place behind its delta, at which the next begins; 0 where there is none, None where nobody knows."""
    hooked: bool
    """Whether something in it may be a hook's doing."""
    since: int | None = None
    """Of a recording: the last message there was at the commit that the run went on from. None of anything else."""
    agent: str = ""
    """The sub-agent whose chain it is, where its records do not name it."""
    upto: int = 0
    """The last message there was when the commit had been taken in."""


class CommitNumbers:
    """Gives commits their numbers, and writes their rows together."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        last = connection.execute("SELECT n, upto FROM commits ORDER BY n DESC LIMIT 1").fetchone()
        self._next = (last[0] if last else 0) + 1
        self.upto: int = last[1] if last else 0
        """The last number that a message had when the last commit was taken in."""
        self._known: dict[str, int] = {}
        self._held: dict[int, tuple[object, ...]] = {}
        self._ends: dict[str, Below] = {}
        self._ended: set[str] = set()
        """Commits that were taken in before, and are read again."""

    def look_up(self, names: Sequence[str]) -> None:
        """Find out which of these have a number already."""
        for first in range(0, len(names), _AT_ONCE):
            asked = [bytes.fromhex(name) for name in names[first : first + _AT_ONCE]]
            marks = ", ".join("?" * len(asked))
            found = self._db.execute(f'SELECT "commit", n FROM commits WHERE "commit" IN ({marks})', asked)
            there = {name.hex(): n for name, n in found}
            self._known |= there
            self._ended |= there.keys()

    def add(self, name: str, session: int | None, shape: RowShape | None, below: Below) -> int:
        """The number of a commit that was looked up, which has these rows (None where it could not be read), and what
        is known of its chain up to it."""
        number = self._known.get(name)
        if number is None:
            number = self._known[name] = self._next
            self._next += 1
        self._ends[name] = below
        self._held[number] = bytes.fromhex(name), session, *shape_row(shape)[2:8], *below
        return number

    def end(self, name: str, upto: int) -> None:
        """The messages of a commit that was added have numbers up to this one. Where it was read before, later ones may
        have come in between, and what it said then stands."""
        if name in self._ended:
            return
        number, self._ends[name] = self._known[name], self._ends[name]._replace(upto=upto)
        if number in self._held:
            self._held[number] = (*self._held[number][:-1], upto)
        else:
            self._db.execute("UPDATE commits SET upto = ? WHERE n = ?", (upto, number))

    def below(self, parent: str) -> Below | None:
        """What is known of a chain up to this commit; None where it was not taken in."""
        if parent not in self._ends:
            known = 'SELECT "end", hooked, since, agent, upto FROM commits WHERE "commit" = ?'
            row = self._db.execute(known, (bytes.fromhex(parent),)).fetchone()
            if row is None:
                return None
            self._ends[parent] = Below(row[0], bool(row[1]), *row[2:])
        return self._ends[parent]

    def write(self) -> None:
        """Write what was added; of a commit that was there, where it ends and what rows it has."""
        held, self._held = self._held, {}
        self._db.executemany(
            'INSERT INTO commits (n, "commit", session, rows, agents, marks, names, beside, calls, "end", hooked,'
            " since, agent, upto) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            ' ON CONFLICT DO UPDATE SET "end" = excluded."end", rows = excluded.rows, agents = excluded.agents,'
            " marks = excluded.marks, names = excluded.names, beside = excluded.beside, calls = excluded.calls,"
            " hooked = excluded.hooked",
            [(number, *row) for number, row in held.items()],
        )
