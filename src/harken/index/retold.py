"""Sessions that are read once more, since what they go on from came after them.

A session that another store's Harken wrote says in its own file from which commit it goes on (`Continuations`). As long
as that is not here, all that it says is its own. When it comes, or another commit of that session is the one, the
messages of the session are set aside, its commits are read as if they came now, and whatever belonged to a message that
was set aside belongs to the one that says the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from . import rows
from .writing import RowWriter

_SAID = "SELECT n, key, record, event, sum, size FROM messages WHERE session = ? AND role NOT IN (?, ?)"
_COPIED = (
    "SELECT c.record, m.sum, m.size, m.n FROM copies c JOIN messages m ON m.n = c.message WHERE c.session = ?"
    " ORDER BY m.n DESC"
)
_COME = (
    'SELECT c.session, s.session FROM continued c JOIN sessions s ON s.n = c.session JOIN commits USING ("commit")'
    " WHERE c.told = 0"
)
_BEHIND = (
    'SELECT c.session, s.session FROM continued c JOIN sessions s ON s.n = c.session JOIN commits t USING ("commit")'
    " WHERE t.session = ?"
)

_SOURCE = (
    'SELECT s.session FROM continued c JOIN commits t USING ("commit") JOIN sessions s ON s.n = t.session'
    " WHERE c.session = ?"
)
_KNOWN_AS = "SELECT c.key, c.message FROM carried c JOIN messages m ON m.n = c.message WHERE m.session = ?"
_CARRIED = "INSERT OR IGNORE INTO carried SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM messages WHERE key = ?1)"
_GIVEN = """
SELECT c.session, c.record, c."commit", m.n FROM messages m JOIN copies c ON c.message = m.n
WHERE m.session = ? AND c.session = (SELECT n FROM sessions WHERE session = ?)
"""


class _SetAside(NamedTuple):
    n: int
    key: int
    record: str | None
    event: int
    sum: int
    size: int


class Retold:
    """Finds these sessions, and has each read once more."""

    def __init__(
        self, connection: sqlite3.Connection, writer: RowWriter, told_in: Callable[[str], Iterable[str]]
    ) -> None:
        """`told_in` gives the sessions in which what a session knows was said."""
        self._db, self._rows, self._told_in = connection, writer, told_in

    def waiting(self, changed: Iterable[str], wanted: Callable[[str], str]) -> dict[int, str]:
        """The sessions whose beginning is known now, or is another, by their numbers. `wanted` gives the commit that a
        session goes on from, among those that changed."""
        found: dict[int, str] = dict(self._db.execute(_COME).fetchall())
        for name in changed:
            one = self._db.execute(
                'SELECT c.session, c."commit" FROM continued c JOIN sessions s ON s.n = c.session WHERE s.session = ?',
                (name,),
            ).fetchone()
            if one is not None and (commit := wanted(name)) and bytes.fromhex(commit) != one[1]:
                found[one[0]] = name
        return found

    def behind(self, session: int) -> dict[int, str]:
        """The sessions that go on from this one, as they say themselves."""
        return dict(self._db.execute(_BEHIND, (session,)).fetchall())

    def commits(self, session: int) -> list[str]:
        """What was read of a session, in the order in which it came."""
        found = self._db.execute('SELECT "commit" FROM commits WHERE session = ? ORDER BY n', (session,))
        return [name.hex() for (name,) in found]

    @contextmanager
    def set_aside(self, session: int) -> Iterator[None]:
        """What a session says is read in here as if it came now."""
        self._rows.flush()
        self._give_back(session)
        aside = [_SetAside(*row) for row in self._db.execute(_SAID, (session, rows.TITLE, rows.SUMMARY))]
        # Where it was carried to, a message may be called as here: what comes now must not be taken for a copy of that.
        known = self._db.execute(_KNOWN_AS, (session,)).fetchall()
        self._db.executemany("DELETE FROM carried WHERE key = ?", [(key,) for key, _ in known])
        keys = [(rows.key_of("set aside", str(one.n), 0), one.n) for one in aside]
        self._db.executemany("UPDATE messages SET session = NULL, key = ? WHERE n = ?", keys)
        self._db.execute("UPDATE calls SET session = NULL WHERE session = ?", (session,))
        self._db.execute("INSERT OR IGNORE INTO unsummed VALUES (?)", (session,))
        for table in ("copies", "awaited", "contested", "continued"):
            self._db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
        self._rows.forget(session)
        yield
        self._rows.flush()
        places = self._put_back(session, aside)
        self._db.executemany(_CARRIED, [(key, places.get(n, n)) for key, n in known])

    def _give_back(self, session: int) -> None:
        """What the session that this one goes on from was taken to have copied from it is that one's own, and so is
        what was handed down to that."""
        for (source,) in self._db.execute(_SOURCE, (session,)).fetchall():
            for name in self._told_in(source):
                self._give(self._db.execute(_GIVEN, (session, name)).fetchall())

    def _give(self, given: list[tuple[int, str | None, int | None, int]]) -> None:
        self._db.executemany('UPDATE messages SET session = ?, record = ?, "commit" = ? WHERE n = ?', given)
        own = [(source, n) for source, _, _, n in given]
        for source in {source for source, _ in own}:
            self._rows.goes_its_own_way(source)
        for table in ("calls", "touched", "flow", "compactions"):
            self._db.executemany(f"UPDATE {table} SET session = ? WHERE message = ?", own)
        self._db.executemany("DELETE FROM copies WHERE session = ? AND message = ?", own)

    def _put_back(self, session: int, aside: list[_SetAside]) -> dict[int, int]:
        """Put what it says now in the place of what it said before; what it does not say any more stays. Gives what
        stands in the place of what."""
        places: dict[int, int] = {}
        said = {
            (record, event, total, size): n
            for n, _, record, event, total, size in self._db.execute(_SAID, (session, rows.TITLE, rows.SUMMARY))
        }
        copied: dict[tuple[object, ...], int] = {}
        for record, total, size, n in self._db.execute(_COPIED, (session,)):
            copied[record, total, size] = copied[total, size] = n
        for one in aside:
            text = one.sum, one.size
            now = said.get((one.record, one.event, *text)) or copied.get((one.record, *text)) or copied.get(text)
            if now is not None:
                for table in ("awaited", "superseded"):
                    self._db.execute(f"UPDATE {table} SET message = ? WHERE message = ?", (now, one.n))
                self._rows.supersede(one.n, now)
                places[one.n] = now
                continue
            self._db.execute("UPDATE calls SET session = ? WHERE message = ?", (session, one.n))
            self._db.execute(
                "UPDATE OR IGNORE messages SET session = ?, key = ? WHERE n = ?", (session, one.key, one.n)
            )
        return places
