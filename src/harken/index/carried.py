"""What Harken wrote as the beginning of a session in another runtime: the same messages, under names of their own.

A resume in the same runtime keeps the names of records, so that copies are known by these. A translation makes up new
ones; there the text tells which message of the session that is continued comes again. A sub-agent's records may become
others as it is resumed in its own runtime (several are put together): there the text tells of those that no name does.
A session may come before the one that it goes on from: then it is read once more (`retold.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from harken.context.lineage import told_in
from harken.context.names import RESUMED_BRANCH, begun_elsewhere
from harken.context.readable import contents_of
from harken.context.session_records import KEEP_NAMES, NATIVE, find_remembered
from harken.context.walk import all_deltas, places
from harken.errors import HarkenError
from harken.events.records import by_record
from harken.formats import find
from harken.store.base import SessionRow, Store

from .rows import HUMAN, INJECTED, MessageRow

_Text = tuple[str, int, int]
"""Role, sum and size: what tells a text."""
_PROMPTS = (HUMAN, INJECTED)
"""What one runtime knows to be a program's words may be a person's in another, which has no place to say so."""


_SAID = """
WITH before AS (SELECT n FROM sessions WHERE session = ?), said AS (SELECT n FROM messages
  WHERE session IN before UNION SELECT message FROM copies WHERE session IN before)
SELECT m.n, m.role, m.sum, m.size, c.record, c.session IS NOT NULL FROM messages m
LEFT JOIN copies c ON c.message = m.n AND c.session = ? WHERE m.n IN said ORDER BY m.n
"""
"""What a session has said or copied, and under which record another one, if it does, has a copy of it."""


class _Beginning(NamedTuple):
    """How a session begins that Harken wrote."""

    prefix: int
    """Before which place everything was written; 0 where nothing was."""
    session: str
    """The session that it goes on from."""
    keeps_names: bool
    """Whether the records that were written have the names they had."""


_OWN = _Beginning(0, "", False)
"""The beginning of a session whose copies, if there are any, are all known by their names."""


class CarriedTexts:
    """The messages of the session before: those that have not come again, and those that have, by the record here."""

    def __init__(
        self, left: dict[_Text, list[int]], taken: dict[tuple[str | None, _Text], int], *, keeps_names: bool
    ) -> None:
        self._left, self._taken = left, taken
        self._all = {n for numbers in left.values() for n in numbers} | set(taken.values())
        self._keeps_names = keeps_names

    def has_another(self, number: int, known: int) -> bool:
        """Whether this is a message of the session before, and not the one that is known."""
        return number != known and number in self._all

    def take(self, row: MessageRow, named: Callable[[MessageRow], int | None]) -> int | None:
        """The message that comes again in this one, if one does: of several that say the same the next, and for a
        record that a tail has told before, the same as then. None where records keep their names and the message is
        there under its own (`named`): it is known by that, and stands for no other."""
        text = _text(row.role, row.sum, row.size)
        left = self._left.get(text, [])
        if self._keeps_names and row.alike:
            return None  # what all say alike that say the same tells it
        there = named(row) if not row.alike else None
        if there is not None and there in left:
            left.remove(there)
            return None if self._keeps_names else there
        if there is not None and self._keeps_names:
            return None
        known = self._taken.get((row.record, text))
        if known is None and left:
            known = self._taken[row.record, text] = left.pop(0)
        return known


def _text(role: str, total: int, size: int) -> _Text:
    return HUMAN if role in _PROMPTS else role, total, size


class Continuations:
    """Which sessions began with what another said, as Harken remembers it."""

    def __init__(self, store: Store, connection: sqlite3.Connection, is_taken_in: Callable[[str], bool]) -> None:
        """`is_taken_in` says whether a commit is in the index."""
        self._store, self._db, self._is_taken_in = store, connection, is_taken_in
        self._before: dict[str, _Beginning] = {}
        self._texts: dict[str, tuple[int, CarriedTexts]] = {}
        self._told: dict[str, list[str]] = {}

    def copied_from(self, session: str) -> str:
        """The session whose records this one begins with, under their own names; empty where there is none."""
        begun = self._remembered(session)
        return begun.session if begun.keeps_names else ""

    def named_in(self, session: str) -> str:
        """The first of the sessions that went on from each other under the same names; empty where it is this one."""
        first, seen = "", {session}
        while (before := self.copied_from(first or session)) and before not in seen:
            seen.add(before)
            first = before
        return first

    def begins_inside(self, session: str, begin: int | None) -> bool:
        """Whether a delta of the session that begins at this place has something that was carried over."""
        return begin is not None and begin < self._remembered(session).prefix

    def begins_behind(self, session: str, begin: int | None) -> bool:
        """Whether one does that stands behind all that was carried over."""
        return begin is not None and 0 < self._remembered(session).prefix <= begin

    def wanted(self, session: str) -> str:
        """The commit that a session goes on from, as its own file says; empty where that says nothing."""
        try:
            row = self._store.find_session(session)
        except HarkenError:  # a damaged row says nothing
            return ""
        told = begun_elsewhere([row]).get(session) if row is not None else None
        return told.commit if told is not None else ""

    def told_in(self, session: str) -> list[str]:
        """The sessions in which what a session knows was said, its own first."""
        if session not in self._told:
            self._told[session] = told_in(self._store, session)
        return self._told[session]

    def forget(self) -> None:
        """Look anew at whatever is asked for: more was taken in."""
        self._before.clear()
        self._texts.clear()
        self._told.clear()

    def texts(self, session: str, number: int, removed: int) -> CarriedTexts:
        """What the session that this one goes on from has said. It is read once, and again where messages have been
        removed since: so many have by now."""
        at, texts = self._texts.get(session, (-1, None))
        if texts is None or at != removed:
            texts = self._read(session, number)
            self._texts[session] = removed, texts
        return texts

    def _read(self, session: str, number: int) -> CarriedTexts:
        before = self._remembered(session)
        left: dict[_Text, list[int]] = {}
        taken: dict[tuple[str | None, _Text], int] = {}
        # What that one has copied itself is the first's.
        said = (self._db.execute(_SAID, (name, number)) for name in self._sources(before.session))
        for n, role, total, size, record, is_copied in dict.fromkeys(chain.from_iterable(said)):
            text = _text(role, total, size)
            if is_copied:
                taken[record, text] = n
            else:
                left.setdefault(text, []).append(n)
        return CarriedTexts(left, taken, keeps_names=before.keeps_names)

    def _sources(self, session: str) -> list[str]:
        """The sessions in which what a session knows was said: also those that it goes on from itself. A compaction
        that it has from there may repeat prompts that stood before it, and of these it has no copy."""
        found = list(self.told_in(session))
        for name in found:  # it grows meanwhile
            if before := self._remembered(name).session:
                found += [each for each in self.told_in(before) if each not in found]
        return found

    def _remembered(self, session: str) -> _Beginning:
        if session not in self._before:
            self._before[session] = _OWN  # whoever names themselves goes on from nobody
            if (begun := self._look(session)) is None:
                del self._before[session]
                return _OWN
            self._before[session] = begun
        return self._before[session]

    def _look(self, session: str) -> _Beginning | None:
        """None as long as what it goes on from was not taken in, where only its own file tells of that."""
        try:
            row = self._store.find_session(session)
            told = find_remembered(self._store, row) if row is not None else None
            if row is None or told is None:
                return _OWN
            name = self._store.find_name(RESUMED_BRANCH + session)
            target = name.target if name is not None else self.wanted(session)
            if name is None:
                is_there = self._is_taken_in(target)
                self._note(session, target, is_there)
                if not is_there:
                    return None
            # What a sub-agent said stands under the session above it, which its commits name.
            commit = self._store.get_commit(target)
            before, is_agent = commit.session_id, told.goes_on_from(commit) != commit.session_id
            # A copy is known by its names, unless its records have none, or its source was carried over or handed down:
            # these have only their texts.
            keeps_names = (
                told.tier in KEEP_NAMES
                and not self._remembered(before).prefix
                and self._names_records(row.tip)
                and len(self.told_in(before)) == 1
            )
            if keeps_names and told.tier == NATIVE and not is_agent:
                return _Beginning(0, before, keeps_names)
            prefix = told.prefix if told.records is None else self._behind(row, told.records)
            return _Beginning(prefix, before, keeps_names)
        except HarkenError:  # of a damaged row nothing is remembered
            return _OWN

    def _note(self, session: str, commit: str, told: bool) -> None:
        """Write down with which commit a session was read that says itself what it goes on from. What was written
        first stands: so was its beginning read."""
        noted = "INSERT OR IGNORE INTO continued SELECT n, ?, ? FROM sessions WHERE session = ?"
        self._db.execute(noted, (bytes.fromhex(commit), told, session))

    def _names_records(self, commit: str) -> bool:
        """Whether the records of a session with this tip have names, and are not known by what they say alone."""
        format = find(self._store.get_commit(commit).format) if commit else None
        return format is None or format.delta_names is None

    def _behind(self, row: SessionRow, records: int) -> int:
        """The place behind so many records of a session whose bytes are not those that were written: a database has
        rows for them."""
        place = 0
        for step, data in contents_of(self._store, all_deltas(self._store.walk(row.tip))[::-1]):
            format = find(step.format)
            if records <= 0 or format is None or isinstance(data, HarkenError):
                break
            records -= sum(1 for _ in by_record(format.read_delta(data)))
            place += places(format, data)
        return place
