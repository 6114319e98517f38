"""What a run said on its stream and its file says too: the file's message stands in the place of the recorded one.

A run under observation is recorded from its stream, in commits of Harken's own format. The file that the runtime wrote
is imported beside them, and may have other names for the same records. So each message of the one is looked for in the
other, as they come, whichever comes first:

1. by the name of its record, where both have it;
2. by the id of its call, where both have it;
3. by its words, of several that say the same the first. A call that the stream has no id for is one whose words it
   has, and its result is that of the call.

Only what the file says whole is removed: a recorded message with words that the file lacks stays. A message that was
in the index when the run went on from it is none that the run said.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harken.context.materialize import DEFAULT_FORMAT
from harken.context.readable import contents_of
from harken.context.walk import RESETS, named, places
from harken.errors import HarkenError
from harken.formats import find
from harken.store.base import Commit, Store

from . import rows
from .writing import RowWriter

_SAID = (rows.HUMAN, rows.INJECTED, rows.ASSISTANT, rows.THINKING, rows.CALL, rows.RESULT, rows.SYSTEM)
_ROLES = ", ".join(f"'{role}'" for role in _SAID)
_OF_SESSION = "(SELECT n FROM sessions WHERE session = ?1 OR session > ?1 || '/' AND session < ?1 || '0')"
"""The session and its agents, whose recordings have sessions of their own."""
_PLACES = f"""
SELECT c."commit", c."end", m.n, m.key, m.record, m.event, m.size, m.sum, s.session
FROM messages m JOIN commits c ON c.n = m."commit" JOIN sessions s ON s.n = m.session
WHERE m.session IN {_OF_SESSION} AND m.role IN ({_ROLES}) AND m.n > ?2
"""
_RECORDED = f"{_PLACES} AND c.since IS NOT NULL ORDER BY m.n"
_TOLD = f"{_PLACES} AND c.since IS NULL AND m.n NOT IN (SELECT message FROM superseded) ORDER BY m.n"
_NEW = (
    "SELECT record, event, n FROM messages WHERE n >= ? AND session = ? AND n NOT IN (SELECT message FROM superseded)"
)
_AGAIN = """
SELECT m.n FROM messages m JOIN commits c ON c.n = m."commit"
WHERE m.session = ? AND m.role = ? AND m.time = ? AND m.size = ? AND m.sum = ? AND m.record != ?
  AND m.record LIKE '@%' AND c.since IS NOT NULL
"""
_CALLS = f"FROM superseded s JOIN calls c ON c.message = s.message WHERE c.session IN {_OF_SESSION}"
_RECORDED_CALLS = f"SELECT s.call_id {_CALLS} AND c.call_id = ?2"
_TOLD_CALLS = f"SELECT c.call_id {_CALLS} AND s.call_id = ?2"
"""What the one side calls a call that the other has under this id."""
_WORD = re.compile(r"\w+")
_SETTING = re.compile(r"-?[0-9.]+|true|false|")
"""An argument of a call that is a number or a switch."""


def is_recorded(commit: Commit) -> bool:
    """Whether a commit was made from what was heard, and not from a runtime's own source."""
    return bool(commit.session_id) and commit.format == DEFAULT_FORMAT and commit.commit_type not in RESETS


class _Said(NamedTuple):
    """A message, as far as it is compared."""

    n: int
    key: int
    role: str
    agent: str
    record: str
    call_id: str
    tool: str
    words: tuple[str, ...]
    needed: tuple[str, ...]
    """Of a call, the words that a stream has too: it may leave out limits and switches, which are no words."""


class _Pool:
    """Messages of one side that nobody has said on the other."""

    def __init__(self, said: Iterable[_Said], made_up: str) -> None:
        """Calls whose ids begin with `made_up` have none of their own."""
        self._made_up = made_up
        self._by: dict[tuple[object, ...], list[_Said]] = {}
        for one in said:
            for key in self._keys(one):
                self._by.setdefault(key, []).append(one)

    def __bool__(self) -> bool:
        return bool(self._by)

    def near(self, one: _Said, paired: Iterable[str]) -> Iterator[_Said]:
        """Those that may say the same as one of the other side, the nearest first; `paired` is what the other side
        calls the call that it is a result of."""
        keys = [*self._keys(one), *(("call", one.role, call_id) for call_id in paired)]
        if one.role == rows.CALL:
            keys.append(("calls",) if one.call_id.startswith(self._made_up) else ("unnamed calls",))
        for key in keys:
            yield from self._by.get(key, ())

    def remove(self, one: _Said) -> None:
        """Somebody has said it."""
        for key in self._keys(one):
            self._by[key].remove(one)
            if not self._by[key]:
                del self._by[key]

    def _keys(self, one: _Said) -> list[tuple[object, ...]]:
        keys: list[tuple[object, ...]] = [("words", one.role, one.words)]
        if one.call_id:
            keys.insert(0, ("call", one.role, one.call_id))
        if _is_name(one.record):
            keys.insert(0, ("record", one.role, one.record))
        if one.role == rows.CALL:
            keys += [("calls",), ("unnamed calls",)] if one.call_id.startswith(self._made_up) else [("calls",)]
        return keys


class Recordings:
    """The messages of recordings and those of files, compared."""

    def __init__(self, store: Store, connection: sqlite3.Connection, writer: RowWriter) -> None:
        self._store, self._db, self._rows = store, connection, writer
        self._sources: dict[str, set[str]] = {}
        self._left: dict[str, _Pool] = {}
        """Of sessions what was recorded and no file has said."""

    def are_beside(self, session: str, *, recorded: bool) -> bool:
        """Whether a session has both a recording and a source, now that this commit of it has come."""
        top = _top(session)
        if top not in self._sources:
            row = self._db.execute("SELECT recorded, told FROM sources WHERE session = ?", (top,)).fetchone() or (0, 0)
            self._sources[top] = {kind for kind, there in zip(("recorded", "told"), row, strict=True) if there}
        kinds, kind = self._sources[top], "recorded" if recorded else "told"
        if kind not in kinds:
            kinds.add(kind)
            values = top, "recorded" in kinds, "told" in kinds
            self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", values)
        return len(kinds) > 1

    def add(
        self, messages: Iterable[rows.MessageRow], commit: Commit, numbers: tuple[int, int], since: int | None
    ) -> None:
        """Take the messages of a commit whose session has both. `since` as its row in `commits` has it."""
        given, (session, number) = list(messages), numbers
        (name,) = self._db.execute("SELECT session FROM sessions WHERE n = ?", (session,)).fetchone()
        self._rows.flush()
        if since is not None:
            self._left.pop(_top(name), None)
            given = self._not_told(given, session, name, since)
        first = self._rows.last + 1
        self._rows.add(given, session, number, commit.session_id or commit.id)
        self._rows.flush()
        if since is None:
            self._supersede(given, session, name, first)

    def _not_told(
        self, messages: Sequence[rows.MessageRow], session: int, name: str, since: int
    ) -> list[rows.MessageRow]:
        """Those of a recording that no source has said."""
        told = _Pool(self._read(_TOLD, name, since), f"{_top(name)}:")
        left: list[rows.MessageRow] = []
        for row in messages:
            if self._db.execute("SELECT 1 FROM superseded WHERE key = ?", (row.key,)).fetchone():
                continue
            one = _said(row, 0, row.key, name)
            found = self._find(one, told, name, recorded=True)
            if found is None:
                self._leave_earlier(row, session, self._rows.last + len(left) + 1)
                left.append(row)
            else:
                told.remove(found)
                self._db.execute("INSERT INTO superseded VALUES (?, ?, ?)", (row.key, found.n, one.call_id))
        return left

    def _leave_earlier(self, row: rows.MessageRow, session: int, number: int) -> None:
        """What a file was found to lack is kept above it once more: records without names are called anew there."""
        if (row.record or "").startswith("@") and row.time is not None:
            same = self._db.execute(_AGAIN, (session, row.role, row.time, row.size, row.sum, row.record)).fetchone()
            if same is not None:
                self._rows.supersede(same[0], number)

    def _supersede(self, messages: Sequence[rows.MessageRow], session: int, name: str, first: int) -> None:
        """Remove what was recorded of these messages of a source, of which the new ones have numbers from `first`."""
        top = _top(name)
        if top not in self._left:
            self._left[top] = _Pool(self._read(_RECORDED, name, 0), f"{top}:")
        left = self._left[top]
        new = {(record, event): n for record, event, n in self._db.execute(_NEW, (first, session))} if left else {}
        for row in messages:
            n = new.get((row.record, row.event))
            found = None if n is None else self._find(_said(row, n, row.key, name), left, name, recorded=False)
            if n is not None and found is not None:
                left.remove(found)
                self._rows.supersede(found.n, n)
                self._db.execute("INSERT OR REPLACE INTO superseded VALUES (?, ?, ?)", (found.key, n, found.call_id))

    def _find(self, one: _Said, others: _Pool, session: str, *, recorded: bool) -> _Said | None:
        """The message of the other side that says the same as this one; of several the nearest in name, then the
        first."""
        paired: list[str] = []
        if one.role == rows.RESULT:
            query = _TOLD_CALLS if recorded else _RECORDED_CALLS
            paired = [call_id for (call_id,) in self._db.execute(query, (_top(session), one.call_id))]
        for other in others.near(one, paired):
            heard, told = (one, other) if recorded else (other, one)
            if _is_same_agent(heard.agent, told.agent) and _says(heard, told, is_named=other.call_id in paired):
                return other
        return None

    def _read(self, query: str, session: str, after: int) -> list[_Said]:
        """Messages of a session and its agents, with their words from the store; what cannot be read is compared with
        nothing."""
        wanted: dict[str, dict[tuple[object, ...], tuple[int, int, str]]] = {}
        ends: dict[str, int | None] = {}
        for commit, end, n, key, record, event, size, total, name in self._db.execute(query, (_top(session), after)):
            ends[commit.hex()] = end
            wanted.setdefault(commit.hex(), {})[record, event, size, total] = n, key, name
        found: list[_Said] = []
        for commit, row in self._rows_of(ends):
            if place := wanted[commit.id].pop((row.record, row.event, row.size, row.sum), None):
                found.append(_said(row, *place))
        return sorted(found)

    def _rows_of(self, ends: dict[str, int | None]) -> Iterator[tuple[Commit, rows.MessageRow]]:
        try:
            commits = self._store.get_commits(list(ends))
        except HarkenError:
            return
        for commit, data in contents_of(self._store, commits):
            format, end = find(commit.format), ends[commit.id]
            if isinstance(data, HarkenError) or format is None:
                continue
            try:
                events = format.read_delta(data)
                begin = None if end is None else end - places(format, data)
                if format.names_stored:
                    events = list(named(format, events, begin))
                told = list(rows.message_rows(events, rows.RecordNames(commit.session_id, commit.id, begin)))
            except Exception:  # noqa: BLE001, S112  a format of somebody else may break in any way
                continue
            yield from ((commit, row) for row in told)


def _top(session: str) -> str:
    return session.partition("/")[0]


def _said(row: rows.MessageRow, n: int, key: int, session: str) -> _Said:
    more = row.more
    call_id = more.call_id if isinstance(more, rows.CallRow | rows.ResultRow) else ""
    tool = more.tool if isinstance(more, rows.CallRow) else ""
    text = row.text.removeprefix(tool)
    words = tuple(_WORD.findall(text)) or tuple(text.split())
    needed = words
    if tool and (told := [line for line in text.splitlines() if not _SETTING.fullmatch(line)]):
        needed = tuple(_WORD.findall("\n".join(told))) or words
    agent = row.agent or session.partition("/")[2]
    role = rows.HUMAN if row.role == rows.INJECTED else row.role  # who wrote a prompt is not for a stream to know
    return _Said(n, key, role, agent, row.record or "", call_id, tool, words, needed)


def _says(heard: _Said, told: _Said, *, is_named: bool) -> bool:
    """Whether a message of a source says what was recorded. Where both have one name for it, or it is known whose
    result it is, the source may say more: what a command printed stands there inside a report."""
    has_one_name = heard.call_id == told.call_id != "" or (heard.record == told.record and _is_name(heard.record))
    if is_named or has_one_name:
        return _is_within(heard.words, told.words)
    if heard.role == rows.CALL:  # a stream may tell the shell too that the command was given to
        return bool(told.needed) and _is_within(told.needed, heard.words)
    return heard.words == told.words


def _is_name(record: str) -> bool:
    """Whether a record has a name of its own, and is not called after its place."""
    return record[:1] not in ("", "@")


def _is_same_agent(heard: str, told: str) -> bool:
    """A stream may know an agent by its call alone, with which what a file calls it ends."""
    return heard == told or bool(heard and told.endswith(f"-{heard}"))


def _is_within(few: tuple[str, ...], many: tuple[str, ...]) -> bool:
    """Whether all words of the one are in the other, as often."""
    return few == many or Counter(few) <= Counter(many)
