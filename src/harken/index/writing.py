"""Rows on their way into the tables: what is there already is told from what is new, a copy from a record that grew."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from . import rows
from .words import prepare

HELD = 4 << 20
"""Characters of text that are held before they are written."""
_COLUMNS = 'n, key, session, agent, role, tool, model, time, "commit", record, event, size, sum'
_INSERT = f"INSERT OR IGNORE INTO messages ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _HeldRow(NamedTuple):
    row: rows.MessageRow
    session: int | None
    commit: int | None
    scope: str


class RowWriter:
    """Writes messages, their words and their calls, inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        (last,) = connection.execute("SELECT max(n) FROM messages").fetchone()
        (kept,) = connection.execute("SELECT max(rowid) FROM words_docsize").fetchone()
        self._next = max(last or 0, kept or 0) + 1  # a number whose words are there is never given again
        self._held: list[_HeldRow] = []
        self._size = 0
        self._results: list[tuple[rows.ResultRow, int | None]] = []
        self._sessions: dict[str, int] = {}

    def session(self, name: str) -> int:
        """The number of a session, which is made if it is not there."""
        number = self._sessions.get(name)
        if number is None:
            found = self._db.execute("SELECT n FROM sessions WHERE session = ?", (name,)).fetchone()
            if found is None:
                number = self._db.execute("INSERT INTO sessions (session) VALUES (?)", (name,)).lastrowid
            else:
                (number,) = found
            assert number is not None
            self._sessions[name] = number
        return number

    def add(self, messages: Iterable[rows.MessageRow], session: int | None, commit: int | None, scope: str) -> None:
        """Take messages of a commit (None for a title); `scope` is what a message is called after that is no copy."""
        for row in messages:
            self._held.append(_HeldRow(row, session, commit, scope))
            self._size += row.size
            if self._size > HELD:
                self.flush()

    def add_results(self, results: Iterable[rows.ResultRow], session: int | None) -> None:
        """Take what calls came to."""
        self._results += [(result, session) for result in results]

    def flush(self) -> None:
        """Write what is held."""
        held, self._held, self._size = self._held, [], 0
        first = self._next
        self._next += len(held)
        self._db.executemany(_INSERT, [_values(n, one, one.row.key) for n, one in enumerate(held, first)])
        new = {n for (n,) in self._db.execute("SELECT n FROM messages WHERE n >= ?", (first,))}
        added = [(n, one) for n, one in enumerate(held, first) if n in new]
        added += [
            (n, one)
            for n, one in enumerate(held, first)
            if n not in new and self._is_new_after_all(n, one, one.row.key)
        ]
        self._db.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)", [(n, prepare(o.row.text)) for n, o in added]
        )
        self._db.executemany(
            "INSERT INTO calls (message, session, tool, call_id, time, what) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (n, one.session, call.name, call.id, call.time, rows.what(call))
                for n, one in added
                if (call := one.row.call) is not None
            ],
        )
        results, self._results = self._results, []
        self._db.executemany(
            "UPDATE calls SET failed = ?, took = max(0, ? - time) WHERE session IS ? AND call_id = ?",
            [(result.failed, result.time, session, result.call_id) for result, session in results],
        )

    def _is_new_after_all(self, number: int, one: _HeldRow, key: int) -> bool:
        """A message whose key is there: it is the same again, it has grown, it is a copy, or it is called alike."""
        there = self._db.execute(
            'SELECT n, session, sum, size, "commit" FROM messages WHERE key = ?', (key,)
        ).fetchone()
        if there is None:
            self._db.execute(_INSERT, _values(number, one, key))
            return True
        n, session, total, size, commit = there
        same = (total, size) == (one.row.sum, one.row.size)
        if session == one.session:
            if not same:
                self._remove(n)
                self._db.execute(_INSERT, _values(number, one, key))
            elif commit != one.commit:  # a tail that has grown repeats it: the newest is where it stands
                self._db.execute('UPDATE messages SET "commit" = ? WHERE n = ?', (one.commit, n))
            return not same
        if same:
            self._db.execute("INSERT OR IGNORE INTO copies VALUES (?, ?)", (n, one.session))
            return False
        own = rows.key_of(one.scope, f"own {key}", 0)
        return self._is_new_after_all(number, one, own)

    def _remove(self, number: int) -> None:
        """Drop a message whose text is another now. Its words stay, and lead nowhere."""
        self._db.execute("DELETE FROM messages WHERE n = ?", (number,))
        for table in ("copies", "calls", "touched", "flow", "compactions"):
            self._db.execute(f"DELETE FROM {table} WHERE message = ?", (number,))


def _values(number: int, one: _HeldRow, key: int) -> tuple[object, ...]:
    row = one.row
    return (
        number, key, one.session, row.agent, row.role, row.tool, row.model, row.time, one.commit, row.record, row.event,
        row.size, row.sum,
    )  # fmt: skip
