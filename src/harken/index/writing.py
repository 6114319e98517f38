"""Rows on their way into the tables: what is there already is told from what is new, a copy from a record that grew."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from . import rows
from .carried import CarriedTexts
from .open_calls import CallKey, WaitingCall, WaitingCalls
from .words import prepare

HELD = 4 << 20
"""Characters of text that are held before they are written."""
_COLUMNS = 'n, key, session, agent, role, tool, model, time, "commit", record, event, size, sum'
_INSERT = f"INSERT OR IGNORE INTO messages ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MESSAGE = 'SELECT n, session, sum, size, "commit", record FROM messages'
_COPY = (
    "INSERT OR IGNORE INTO copies SELECT ?1, ?2, ?3, ?4 FROM messages WHERE n = ?1 AND session IS NOT ?2"
    ' ON CONFLICT DO UPDATE SET "commit" = excluded."commit" WHERE record IS excluded.record'
)
_NO_COPY = "DELETE FROM copies WHERE message = ?1 AND session = (SELECT session FROM messages WHERE n = ?1)"
_AGAIN = 'UPDATE messages SET "commit" = ?, model = coalesce(?, model) WHERE n = ?'
"""Who wrote a message may be known only now: a line behind it says so."""
_RESULT = "UPDATE calls SET failed = ?, took = max(0, ? - time) WHERE message = ?"
_REOPEN = (
    "UPDATE calls SET failed = NULL, took = NULL"
    " WHERE session IS ? AND call_id = ? AND (SELECT agent FROM messages WHERE n = message) IS ?"
)
_SPOKEN = (rows.HUMAN, rows.ASSISTANT, rows.CALL, rows.RESULT)
BELOW = ("copies", "carried", "awaited", "calls", "touched", "flow", "compactions")
"""The tables whose rows belong to a message."""


class _HeldRow(NamedTuple):
    row: rows.MessageRow
    session: int | None
    commit: int | None
    scope: str


class _There(NamedTuple):
    """A message that has the key of another."""

    n: int
    session: int | None
    sum: int
    size: int
    commit: int | None
    record: str | None


class RowWriter:
    """Writes messages, their words and what belongs to them, inside a transaction."""

    def __init__(self, connection: sqlite3.Connection, upto: int = 0) -> None:
        """Numbers up to `upto` were given before, whether or not their messages are still there."""
        self._db = connection
        (last,) = connection.execute("SELECT max(n) FROM messages").fetchone()
        (kept,) = connection.execute("SELECT max(id) FROM words_docsize").fetchone()
        self._next = max(last or 0, kept or 0, upto) + 1  # a number whose words are there is never given again
        self._held: list[_HeldRow] = []
        self._size = 0
        self._results: list[tuple[int, CallKey, rows.ResultRow]] = []
        """What calls came to, each with the number of rows that were held before it."""
        self._has_carried = connection.execute("SELECT 1 FROM carried").fetchone() is not None
        self.retells = False
        """Whether what is added was read before: where it says the same, nothing changes."""
        self.removed = 0
        """How many messages were removed, since others took their places."""
        self._gone: set[int] = set()
        """Messages that were removed since rows were last written, some of which may be held."""
        self._words: list[tuple[int, str]] = []
        self._sessions: dict[str, int] = {}
        self._families: dict[int, str] = {}
        self._own: set[int | None] = set()
        """The sessions that have said something of their own, behind what they have copied."""
        self._places: dict[tuple[str, int, int | None], dict[str | None, int]] = {}
        """Of what a session says again and again, where among those that say the same each of its records stands."""

    @property
    def last(self) -> int:
        """The last number that a row has or will have."""
        return self._next + len(self._held) - 1

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

    def knows(self, name: str) -> bool:
        """Whether the row of a session was taken in; its commits may have come before."""
        known = "SELECT 1 FROM sessions WHERE session = ? AND runtime IS NOT NULL"
        return self._db.execute(known, (name,)).fetchone() is not None

    def family(self, session: int, told: str) -> str:
        """What everything in a session descends from: as its first delta told, and this one may be that."""
        family = self._families.get(session)
        if family is None:
            found = self._db.execute("SELECT family, own FROM families WHERE session = ?", (session,)).fetchone()
            family = found[0] if found else told
            if found and found[1]:
                self._own.add(session)
            if not found and told:
                self._db.execute("INSERT INTO families VALUES (?, ?, 0)", (session, told))
            if family:
                self._families[session] = family
        return family

    def goes_its_own_way(self, session: int) -> None:
        """What a session says from now on is its own, also where another has said the same."""
        if session not in self._own:
            self.flush()
            self._own_up(session)

    def forget(self, session: int) -> None:
        """A session is read as if nothing had been said in it before."""
        self._db.execute("DELETE FROM families WHERE session = ?", (session,))
        self._families.pop(session, None)
        self._own.discard(session)
        self._places = {which: places for which, places in self._places.items() if which[2] != session}

    def add(self, messages: Iterable[rows.MessageRow], session: int | None, commit: int | None, scope: str) -> None:
        """Take messages of a commit (None for a title); `scope` is what a message is called after that is no copy."""
        for row in messages:
            self._held.append(_HeldRow(row, session, commit, scope))
            self._size += row.size
            if self._size > HELD:
                self.flush()

    def without_copies(
        self, messages: Iterable[rows.MessageRow], session: int, commit: int, carried: CarriedTexts
    ) -> list[rows.MessageRow]:
        """Those that are no copies of what was carried over; the others are written down as such."""
        own: list[rows.MessageRow] = []
        for row in messages:
            if (n := carried.take(row, self._named)) is None:
                own.append(row)
            else:
                self._db.execute(_COPY, (n, session, row.record, commit))
                self._call_also(n, row, session, carried)
        return own

    def copy(self, message: int, session: int, record: str | None, commit: int | None) -> None:
        """A session says a message of another in a record of its own."""
        self._db.execute(_COPY, (message, session, record, commit))

    def _named(self, row: rows.MessageRow) -> int | None:
        """The message that is there under the name of this one."""
        there = self._find(row.key)
        return None if there is None else there.n

    def _call_also(self, number: int, row: rows.MessageRow, session: int, carried: CarriedTexts) -> None:
        """A message was carried over into a session, in which it has a key too: a fork of that session says it again,
        or has said it. What stands under a key as another message of the session before is no such fork's."""
        key = row.key
        for count in range(1 << 30):
            if row.alike:
                key = rows.key_of(row.alike, str(count or ""), row.event)
            known, there = self._carried(key), self._find(key)
            is_of_another = known not in (None, number) or (there is not None and carried.has_another(there.n, number))
            if not (row.alike and is_of_another):
                break
        if is_of_another or (there is not None and there.n == number):
            return
        if there is not None and (there.session == session or (there.sum, there.size) != (row.sum, row.size)):
            return
        if there is not None:
            self._db.execute(_COPY, (number, there.session, there.record, there.commit))
            self.supersede(there.n, number)
        self._db.execute("INSERT INTO carried VALUES (?, ?)", (key, number))
        self._has_carried = True

    def add_results(self, results: Iterable[rows.ResultRow], session: int | None) -> None:
        """Take what calls came to, behind the messages of the same commit; of several results of a call the first
        counts."""
        place = len(self._held)
        self._results += [(place, (session, result.agent, result.call_id), result) for result in results]

    def reopen(self, results: Iterable[rows.ResultRow], session: int | None) -> None:
        """Forget what calls came to that is told anew."""
        self.flush()
        self._db.executemany(_REOPEN, [(session, result.call_id, result.agent) for result in results])

    def drop(self, messages: Iterable[rows.MessageRow], commit: str) -> None:
        """Remove those of these messages that stand in this commit alone."""
        self.flush()
        row = self._db.execute('SELECT n FROM commits WHERE "commit" = ?', (bytes.fromhex(commit),)).fetchone()
        for message in messages if row is not None else ():
            there = self._find(message.key)
            if there is not None and there.commit == row[0]:
                self._remove(there.n)

    def supersede(self, recorded: int, told: int) -> None:
        """Remove a message of a recording, in whose place another stands; who has a copy of the one has it of the
        other."""
        self._db.execute("UPDATE OR IGNORE copies SET message = ? WHERE message = ?", (told, recorded))
        self._db.execute(_NO_COPY, (told,))
        self._remove(recorded)

    def add_agents(self, names: Iterable[tuple[str, str]], session: int | None) -> None:
        """Take what agents are called; the name that was given last stands."""
        if session is not None:
            rows = [(session, agent, name) for agent, name in names]
            self._db.executemany("INSERT OR REPLACE INTO agents VALUES (?, ?, ?)", rows)

    def flush(self) -> None:
        """Write the rows that are held."""
        held, self._held, self._size = self._held, [], 0
        first = self._next
        self._next += len(held)
        numbered = list(enumerate(held, first))
        self._insert([(n, one) for n, one in numbered if one.row.unnamed is None])
        if any(one.row.unnamed is not None for one in held):  # those without names may be held beside them
            numbered = [(n, self._as_before(one)) for n, one in numbered]
            self._insert([(n, one) for n, one in numbered if one.row.unnamed is not None])
        new = {n for (n,) in self._db.execute("SELECT n FROM messages WHERE n >= ?", (first,))}
        added = [(n, one) for n, one in numbered if n in new or self._is_new(n, one, one.row.key)]
        gone, self._gone = self._gone, set()
        self._add_below([(n, one) for n, one in added if n not in gone], first)

    def write(self) -> None:
        """Write everything that is held, the words last: before a statement that can be taken back by itself SQLite has
        the full-text index write what it has collected, as a segment of its own, which then has to be merged."""
        self.flush()
        words, self._words = self._words, []
        prepared = ((n, prepare(text)) for n, text in words)
        self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", prepared)

    def _add_below(self, added: list[tuple[int, _HeldRow]], first: int) -> None:
        """What belongs to messages that were not there, whose rows are held from that number on."""
        do = self._db.executemany
        self._words += [(n, one.row.text) for n, one in added if one.row.text]
        calls = [(n, one, more) for n, one in added if isinstance(more := one.row.more, rows.CallRow)]
        self._add_calls(added, calls, first)
        do(
            "INSERT OR IGNORE INTO touched (message, session, path, op) VALUES (?, ?, ?, ?)",
            [(n, one.session, path, op) for n, one, more in calls for path, op in more.touched],
        )
        do(
            "INSERT INTO flow (message, session, source, target, how) VALUES (?, ?, ?, ?, ?)",
            [(n, one.session, flow[0], one.row.agent, flow[1]) for n, one in added if (flow := one.row.flow)],
        )
        do(
            'INSERT INTO compactions (message, session, time, before, after, "trigger") VALUES (?, ?, ?, ?, ?, ?)',
            [
                (n, one.session, one.row.time, *more)
                for n, one in added
                if isinstance(more := one.row.more, rows.CompactionRow)
            ],
        )

    def _add_calls(
        self, added: list[tuple[int, _HeldRow]], calls: list[tuple[int, _HeldRow, rows.CallRow]], first: int
    ) -> None:
        """Calls, each with its result where that is there as well, and results of calls that were written before. Most
        calls find their results here, and to change a row afterwards costs more than to write it. All in the order of
        arrival: which of them come together does not matter."""
        results, self._results = self._results, []
        told = [(n, one, more) for n, one in added if isinstance(more := one.row.more, rows.CallRow | rows.ResultRow)]
        sessions = {call[0] for _, call, _ in results} | {one.session for _, one, _ in told}
        opened = WaitingCalls(self._db, sessions)
        outcomes, waiting, tool_of = dict[int, rows.ResultRow](), list[tuple[object, ...]](), list[tuple[str, int]]()

        def end(call: CallKey, result: rows.ResultRow) -> None:
            for one in opened.end(call, result):
                if one.stored:
                    waiting.append((result.failed, result.time, one.n))
                else:
                    outcomes[one.n] = result

        at = 0
        for n, one, more in told:
            while at < len(results) and results[at][0] <= n - first:
                end(*results[at][1:])
                at += 1
            call = one.session, one.row.agent, more.call_id
            if isinstance(more, rows.CallRow):
                opened.add(call, WaitingCall(more.tool, one.row.time, n, one.row.record, one.row.event))
            elif one.row.tool is None and (tool := opened.tool(call)):  # a result seldom says of which tool it is
                tool_of.append((tool, n))
        for _, call, result in results[at:]:
            end(call, result)
        self._db.executemany("UPDATE messages SET tool = ? WHERE n = ?", tool_of)
        self._db.executemany(_RESULT, waiting)
        self._db.executemany(
            "INSERT INTO calls (message, session, tool, call_id, time, what, failed, took)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (n, one.session, more.tool, more.call_id, one.row.time, more.what, *_outcome(one, outcomes.get(n)))
                for n, one, more in calls
            ],
        )

    # -- what is there already ---------------------------------------------------------------------------------

    def _insert(self, numbered: list[tuple[int, _HeldRow]]) -> None:
        self._db.executemany(
            _INSERT,
            [
                _values(n, one, one.row.key)
                for n, one in numbered
                if not one.row.alike and not (self._has_carried and self._carried(one.row.key))
            ],
        )

    def _as_before(self, one: _HeldRow) -> _HeldRow:
        """A message under the key that it had while its record had no name, where it is there under that one."""
        row = one.row
        there = self._find(row.unnamed) if row.unnamed is not None else None
        if row.unnamed is None or there is None or (there.sum, there.size) != (row.sum, row.size):
            return one
        is_unnamed = (there.record or "").startswith("@")
        if is_unnamed and there.session == one.session:
            self._db.execute("UPDATE messages SET record = ? WHERE n = ?", (row.record, there.n))
        elif not is_unnamed and there.record != row.record:
            return one  # another that says the same at the same moment
        return one._replace(row=row._replace(key=row.unnamed))

    def _is_new(self, number: int, one: _HeldRow, key: int) -> bool:
        """Whether a message was not there, whose key may be: else it is the same again, has grown, or is a copy."""
        if one.row.alike:
            return self._is_new_alike(number, one)
        there = self._find(key)
        if there is None:
            self._db.execute(_INSERT, _values(number, one, key))
            return True
        same = (there.sum, there.size) == (one.row.sum, one.row.size)
        if there.session == one.session and there.record == one.row.record:
            return self._is_new_again(number, one, there, key)
        if same and there.session == one.session:
            return False  # a log in which a session and a fork of it were captured
        if same:
            self._db.execute(_COPY, (there.n, one.session, one.row.record, one.commit))
            return False
        # Two sessions call different things alike: this one is called after its session too.
        return self._is_new(number, one, rows.key_of(one.scope, f"own {key}", 0))

    def _is_new_again(self, number: int, one: _HeldRow, there: _There, key: int) -> bool:
        """A message of this session comes again: a tail that has grown repeats its records, the last of which may have
        grown too. What came last is taken for where it stands (`contested.py` looks whether it is)."""
        if (there.sum, there.size) == (one.row.sum, one.row.size):
            if there.commit != one.commit and not self.retells:
                self._db.execute(_AGAIN, (one.commit, one.row.model, there.n))
            if one.commit is None:  # a title, which is as old as its session: when that began may be known only now
                self._db.execute("UPDATE messages SET time = ? WHERE n = ?", (one.row.time, there.n))
            return False
        self._remove(there.n)
        if one.row.role not in (rows.TITLE, rows.SUMMARY):
            self._db.execute("INSERT OR REPLACE INTO contested VALUES (?, ?, '')", (one.session, key))
        self._db.execute("UPDATE superseded SET message = ? WHERE message = ?", (number, there.n))
        self._db.execute(_INSERT, _values(number, one, key))
        return True

    def _is_new_alike(self, number: int, one: _HeldRow) -> bool:
        """`_is_new` where records have no names: of those that say the same, the first that is not taken. A copy comes
        before everything that the session says of its own accord."""
        row, session = one.row, one.session
        which = row.alike, row.event, session
        places = self._places.get(which, {})
        for count in range(places.get(row.record, len(places)), 1 << 30):
            key = rows.key_of(row.alike, str(count or ""), row.event)
            there = self._find(key)
            if there is None:
                break
            record = there.record
            if there.session == session:
                if record == row.record:
                    return self._is_new_again(number, one, there, key)
            else:
                copied = "SELECT record FROM copies WHERE message = ? AND session IS ?"
                found = self._db.execute(copied, (there.n, session)).fetchone()
                if found is None and session in self._own:  # said again by one that has gone its own way
                    own = rows.key_of(one.scope, row.record or str(key), row.event)
                    return self._is_new(number, one._replace(row=row._replace(alike="")), own)
                if found is None or found[0] == row.record:
                    self._db.execute(_COPY, (there.n, session, row.record, one.commit))
                    return False
                record = found[0]
            self._places.setdefault(which, places)[record] = count
        if row.role in _SPOKEN:
            self._own_up(session)
        self._db.execute(_INSERT, _values(number, one, key))
        return True

    def _own_up(self, session: int | None) -> None:
        if session not in self._own:
            self._own.add(session)
            self._db.execute("UPDATE families SET own = 1 WHERE session = ?", (session,))

    def _find(self, key: int) -> _There | None:
        found = self._db.execute(f"{_MESSAGE} WHERE key = ?", (key,)).fetchone()
        if found is None and (number := self._carried(key)) is not None:
            found = self._db.execute(f"{_MESSAGE} WHERE n = ?", (number,)).fetchone()
        return None if found is None else _There(*found)

    def _carried(self, key: int) -> int | None:
        """The message that is known by this key where it was carried to."""
        if not self._has_carried:
            return None
        found = self._db.execute("SELECT message FROM carried WHERE key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def _remove(self, number: int) -> None:
        """Drop a message whose text is another now. Its words stay, and lead nowhere."""
        self.removed += 1
        self._gone.add(number)
        self._db.execute("DELETE FROM messages WHERE n = ?", (number,))
        for table in BELOW:
            self._db.execute(f"DELETE FROM {table} WHERE message = ?", (number,))


def _outcome(one: _HeldRow, result: rows.ResultRow | None) -> tuple[bool | None, int | None]:
    """Whether a call failed and how long it took; nothing is known of one that has no result."""
    if result is None:
        return None, None
    begun, ended = one.row.time, result.time
    return result.failed, None if begun is None or ended is None else max(0, ended - begun)


def _values(number: int, one: _HeldRow, key: int) -> tuple[object, ...]:
    """The columns of a message, in their order; most are the row's own, as they stand there."""
    row = one.row
    return (number, key, one.session, *row[1:6], one.commit, *row[6:10])
