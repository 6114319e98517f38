"""What agents of session logs began with, and the messages of other sessions that it is.

A record says itself from which session an agent has it, and two that say the same are told by their text. Where that
session says it of its own accord, what the agent has is a copy, and no message. It may not, as yet: it may be in no
store here, or have it from a third one. Then what the agent has **stands in its place**, a message like any other, and
is looked at again when that session says more (`awaited`). Which message that is depends on the order in which sessions
came. How many there are does not:

1. Whoever says it of its own accord, however far away, has the message.
2. Where nobody does, what comes from a session that says nothing of it stands.
3. Where sessions have it only from each other, one of them all stands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from harken.context.lineage import told_in
from harken.store.base import Store

from .rows import HUMAN, SYSTEM, MessageRow
from .writing import RowWriter

_Text = tuple[str, int, int]
"""Role, sum and size: what tells a text."""
_SAID = """
WITH speaker AS (SELECT n FROM sessions WHERE session = ?), said AS (SELECT n FROM messages
  WHERE session IN speaker UNION SELECT message FROM copies WHERE session IN speaker)
SELECT n, role, sum, size, EXISTS (SELECT 1 FROM awaited WHERE message = n) FROM messages WHERE n IN said ORDER BY n
"""
"""What a session has said or copied, and whether it only stands in the place of what another one is to say."""
_COPIED = "SELECT message, record FROM copies WHERE session = ?"
_KNOWN = (
    "SELECT a.message FROM awaited a JOIN messages m ON m.n = a.message"
    " WHERE a.source = ? AND a.key = ? AND m.key != a.key"
)
_PLACE = (
    "UPDATE awaited SET message = (SELECT n FROM messages m WHERE m.key = awaited.key AND m.session = awaited.session)"
)
_AWAITED = """
SELECT a.source, a.key, s.session, a.session, a.message, a.key = m.key, m.role, m.sum, m.size,
  coalesce(c.record, m.record), coalesce(c."commit", m."commit")
FROM awaited a JOIN messages m ON m.n = a.message JOIN sessions s ON s.n = a.session
LEFT JOIN copies c ON c.message = a.message AND c.session = a.session
ORDER BY a.message, a.source, a.key
"""


def _heard(role: str, total: int, size: int) -> _Text:
    """What tells a text that an agent has before it; what a compaction put there is a notice where it was said."""
    return HUMAN if role == SYSTEM else role, total, size


class _Begun(NamedTuple):
    """What an agent began with, as long as nobody says it of its own accord."""

    source: str
    key: int
    name: str
    """The session of the agent."""
    session: int
    message: int
    """The message that stands in its place."""
    own: bool
    """Whether that is its own, and not another that says the same."""
    text: _Text
    record: str | None
    commit: int | None


class _Speech:
    """What a session says: the messages by their text, and whether each says it of its own accord."""

    def __init__(self, said: Iterable[tuple[int, str, int, int, bool]]) -> None:
        self.texts: dict[_Text, dict[int, bool]] = {}
        for n, role, total, size, waits in said:
            self.texts.setdefault(_heard(role, total, size), {})[n] = not waits

    def of_own_accord(self, text: _Text) -> list[int]:
        """The messages of this text that it says, or copied of one who does."""
        return [n for n, own in self.texts.get(text, {}).items() if own]


class BegunMessages:
    """Tells what agents began with from what their sessions say."""

    def __init__(self, store: Store, connection: sqlite3.Connection, writer: RowWriter) -> None:
        self._store, self._db, self._rows = store, connection, writer
        self._families: dict[str, list[str]] = {}
        self._is_new = False
        """Whether something is awaited that was not before."""

    def without_begun(
        self, messages: Iterable[tuple[MessageRow, str]], session: int, commit: int
    ) -> Iterator[MessageRow]:
        """Those that no agent began with: each comes with the session that it was carried over from, or with nothing.
        Where that does not say them, they stay."""
        known: dict[str, _Speech] = {}
        copied: dict[int, str | None] = {}
        for row, source in messages:
            if not source:
                yield row
                continue
            if source not in known:
                known[source] = self.speech(source)
                copied = dict(self._db.execute(_COPIED, (session,)))
            said = known[source].of_own_accord(_heard(row.role, row.sum, row.size))
            if not said:
                stands = self._db.execute(_KNOWN, (source, row.key)).fetchone()
                if stands is None:
                    self._db.execute("INSERT OR IGNORE INTO awaited VALUES (?, ?, ?, NULL)", (source, row.key, session))
                    self._is_new = True
                    yield row
                else:
                    self._rows.copy(stands[0], session, row.record, commit)
                continue
            # The one that it was found to be before, else the first of which there is no copy yet, else the first.
            again = (n for n in said if n in copied and copied[n] == row.record)
            fresh = (n for n in said if n not in copied)
            n = next(again, None) or next(fresh, said[0])
            copied.setdefault(n, row.record)
            self._rows.copy(n, session, row.record, commit)

    def settle(self, said_in: Container[str]) -> None:
        """See to it that what is awaited stands where it has to, now that these sessions have said more."""
        if self._is_new:
            self._db.execute(f"{_PLACE} WHERE message IS NULL")
            self._db.execute("DELETE FROM awaited WHERE message IS NULL")
        begun = [
            _Begun(source, key, name, session, message, bool(own), _heard(role, total, size), record, commit)
            for source, key, name, session, message, own, role, total, size, record, commit in self._db.execute(
                _AWAITED
            )
        ]
        sources = {one.source for one in begun}
        if self._is_new or any(name in said_in for source in sources for name in self.family(source)):
            texts: dict[_Text, list[_Begun]] = {}
            for one in begun:
                texts.setdefault(one.text, []).append(one)
            settling = _Settling(self, self._rows, self._db)
            for text, several in texts.items():
                settling.settle(text, several)
        self._is_new = False

    def speech(self, session: str) -> _Speech:
        """What a session says, and what was handed down to it."""
        return _Speech(row for name in self.family(session) for row in self._db.execute(_SAID, (name,)))

    def family(self, session: str) -> list[str]:
        """The session and those whose context was handed down to it: it has that without a copy of its own."""
        if session not in self._families:
            self._families[session] = told_in(self._store, session)
        return self._families[session]


class _Settling:
    """One look at all that is awaited, text by text, until nothing changes any more."""

    def __init__(self, beginnings: BegunMessages, writer: RowWriter, connection: sqlite3.Connection) -> None:
        self._beginnings, self._rows, self._db = beginnings, writer, connection
        self._speeches: dict[str, _Speech] = {}

    def settle(self, text: _Text, begun: Iterable[_Begun]) -> None:
        """What agents have of one text. Each is looked at again where another has changed what it reaches."""
        left = {(one.source, one.key): one for one in begun}
        waiting = list(left)
        while waiting:
            if (one := left.get(waiting.pop())) is None:
                continue
            said, stands = self._reach(one, text, left.values())
            others = [n for n in stands if n != one.message]
            if said:
                here = self._speech(one.name).texts.get(text, {})
                self._found(one, next((n for n in said if n not in here), said[0]), text, left)
            elif one.own and others:
                self._stand_behind(one, min(others), text, left)
            else:
                continue
            waiting = list(left)

    def _reach(self, one: _Begun, text: _Text, left: Iterable[_Begun]) -> tuple[list[int], list[int]]:
        """The messages of the session that it is from, and of those that this one has it from: those that are said of
        their own accord, the nearest first, and those that only stand there."""
        sources, said, stands = [one.source], list[int](), list[int]()
        for source in sources:
            for n, own in self._speech(source).texts.get(text, {}).items():
                (said if own else stands).append(n)
            family = self._beginnings.family(source)
            sources += dict.fromkeys(each.source for each in left if each.name in family and each.source not in sources)
        return said, stands

    def _found(self, one: _Begun, said: int, text: _Text, left: dict[tuple[str, int], _Begun]) -> None:
        """Somebody says it: a copy takes the place of the message that stood there."""
        self._rows.copy(said, one.session, one.record, one.commit)
        for name, speech in self._speeches.items():
            if one.name in self._beginnings.family(name):
                speech.texts.setdefault(text, {})[said] = True
        if not one.own:
            self._db.execute("DELETE FROM awaited WHERE source = ? AND key = ?", (one.source, one.key))
            del left[one.source, one.key]
            return
        self._replace(one.message, said, text, own=True)
        for place in [place for place, each in left.items() if each.message == one.message]:
            del left[place]

    def _stand_behind(self, one: _Begun, stands: int, text: _Text, left: dict[tuple[str, int], _Begun]) -> None:
        """Another message stands for both."""
        self._rows.copy(stands, one.session, one.record, one.commit)
        self._db.execute("UPDATE awaited SET message = ? WHERE message = ?", (stands, one.message))
        self._replace(one.message, stands, text, own=False)
        for place, each in left.items():
            if each.message == one.message:
                left[place] = each._replace(message=stands, own=False)

    def _replace(self, message: int, other: int, text: _Text, *, own: bool) -> None:
        self._rows.supersede(message, other)
        for speech in self._speeches.values():
            texts = speech.texts.get(text, {})
            if texts.pop(message, None) is not None:
                texts[other] = own

    def _speech(self, session: str) -> _Speech:
        if session not in self._speeches:
            self._speeches[session] = self._beginnings.speech(session)
        return self._speeches[session]
