"""The rows of a session, out of a snapshot of the database.

A row is a line, `{"TABLE":{COLUMN:VALUE,…}}` with the columns in the order of the table. The column `data` of messages,
parts and events is JSON of the program's: it stands there as it is, so that its very bytes are kept, or as a text where
it is no JSON object on one line. Lines of one message stand together; `formats/opencode/records.py` reads them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import orjson

from harken.formats.opencode.records import BESIDE, told
from harken.runtimes.databases import SessionVersion

_LINE = "CASE WHEN substr(data, 1, 1) = '{' AND instr(data, char(10)) = 0 AND json_valid(data) THEN data"
_DATA = f"{_LINE} ELSE json_quote(CAST(data AS TEXT)) END"
_COLUMN = "json_quote(CASE typeof({0}) WHEN 'blob' THEN CAST({0} AS TEXT) ELSE {0} END)"
"""A newer version may keep bytes in a column; JSON holds none."""
UNKNOWN = 1 << 60
"""Milliseconds no clock gets to: where rows do not say when they were changed, no version is sure."""
LOW_BITS = (1 << 40) - 1
"""What is added up of an instant: a sum of whole ones may be more than SQLite can add, which then ends the question."""
SessionKey = tuple[int, str]


def sessions(connection: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Every session's rows."""
    for name in _names(connection):
        yield name, session_rows(connection, name)


def _names(connection: sqlite3.Connection) -> list[str]:
    """The sessions, the oldest first: so a sub-agent's comes behind the one that started it."""
    if not _columns(connection, "session"):
        return []
    asked = "SELECT CAST(id AS BLOB) FROM session ORDER BY"
    try:
        found = connection.execute(f"{asked} time_created, id").fetchall()
    except sqlite3.DatabaseError:  # a page of the table is damaged: the index of its key names those on it, too
        found = connection.execute(f"{asked} id").fetchall()
    return [bytes(name).decode(errors="replace") for (name,) in found if name]


def versions(connection: sqlite3.Connection) -> Iterator[SessionVersion]:
    """What changes with any row of a session: the program writes into each when it was last changed."""
    connection.text_factory = bytes
    tables = {table: _columns(connection, table) for table in ("session", "message", "part")}
    is_sure = all("time_updated" in columns for columns in tables.values() if columns)
    try:
        counts, newest = _counts(connection, tables)
    except sqlite3.DatabaseError:  # a page is damaged: the rows of each session tell whether they are on it
        is_sure, counts, newest = False, {}, {}
    for name in _names(connection):
        told, last = b"", UNKNOWN
        with contextlib.suppress(sqlite3.DatabaseError):
            own = [*_rows(connection, "session", "id", name), *_beside(connection, name)]
            told = orjson.dumps([counts.get(name, []), [line.decode(errors="replace") for line in own]])
            last = newest.get(name, 0) if is_sure else UNKNOWN
        rows = partial(session_rows, connection, name)
        yield SessionVersion(key=name, version=told, changed=last * 1000, rows=rows)


def _counts(
    connection: sqlite3.Connection, tables: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[object]], dict[str, int]]:
    """By session, how many rows it has and when they were changed; and when that was last."""
    counted: dict[str, list[object]] = {}
    newest: dict[str, int] = {}
    for table in ("message", "part"):
        if "time_updated" in tables[table]:
            sums = f"session_id, count(*), max(time_updated), sum(time_updated & {LOW_BITS})"
            for name, count, last, total in connection.execute(f"SELECT {sums} FROM {table} GROUP BY session_id"):
                session = _text(name)
                counted.setdefault(session, []).append([table, count, total])
                newest[session] = max(newest.get(session, 0), last if type(last) is int else 0)
    if _columns(connection, "event"):
        for name, last in connection.execute("SELECT aggregate_id, max(seq) FROM event GROUP BY aggregate_id"):
            counted.setdefault(_text(name), []).append(["event", _value(last)])
    return counted, newest


def session_rows(connection: sqlite3.Connection, session: str) -> bytes:
    """The rows of one session: messages, each with its parts and its share of the log, then everything else."""
    connection.text_factory = bytes
    parts: dict[str, list[bytes]] = {}
    for message, line in _json_rows(connection, "part", "session_id", session, "message_id, id"):
        parts.setdefault(message, []).append(line)
    messages = dict(_json_rows(connection, "message", "session_id", session, "time_created, id"))
    events = [line for _, line in _json_rows(connection, "event", "aggregate_id", session, "seq, id")]
    made: list[bytes] = []
    for name, logged in _in_order(list(messages), _created(connection, session), events):
        if name in messages:
            made.append(messages[name])
            made += parts.pop(name, ())
        made += logged
    for orphans in parts.values():
        made += orphans
    made += _rows(connection, "session", "id", session)
    made += _beside(connection, session)
    return b"".join(made)


def _created(connection: sqlite3.Connection, session: str) -> dict[str, int]:
    if not _columns(connection, "message"):
        return {}
    found = connection.execute("SELECT id, time_created FROM message WHERE session_id = ?", (session,))
    return {_text(name): created if type(created) is int else 0 for name, created in found}


def _in_order(names: list[str], created: dict[str, int], events: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """The messages, those that only the log tells of among them, each with what was logged from its first mention to
    that of a later one. The log is append-only: what follows a mention never changes again."""
    mentions = [told(line) for line in events]
    keys: dict[str, SessionKey] = {name: (created.get(name, 0), name) for name in names}
    for key in mentions:
        if key is not None:
            keys.setdefault(key[1], key)
    order = sorted(keys, key=lambda name: keys[name])
    place = {name: at for at, name in enumerate(order)}
    shares: list[list[bytes]] = [[] for _ in order] or [[]]
    now = 0
    for key, line in zip(mentions, events, strict=True):
        if key is not None:
            now = max(now, place[key[1]])
        shares[now].append(line)
    yield from zip(order or [""], shares, strict=True)


def _json_rows(
    connection: sqlite3.Connection, table: str, column: str, session: str, order: str
) -> Iterator[tuple[str, bytes]]:
    """The rows of a table with a column `data`, each with the id of the message it is of. SQLite writes the lines:
    there may be a hundred thousand."""
    columns = _columns(connection, table)
    if not columns:
        return
    named = "message_id" if "message_id" in columns else "id"
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in columns}
    values = [_DATA if name == "data" else _COLUMN.format(quoted[name]) for name in columns]
    keys = [orjson.dumps(name).decode().replace("'", "''") + ":" for name in columns]
    pieces = " || ',".join(f"{key}' || {value}" for key, value in zip(keys, values, strict=True))
    line = f"""'{{"{table}":{{{pieces} || '}}}}' || char(10)"""
    asked = f'SELECT "{named}", {line} FROM "{table}" WHERE "{column}" = ? ORDER BY {order}'
    for name, data in connection.execute(asked, (session,)):
        yield name.decode(errors="replace") if type(name) is bytes else _text(name), data


def _beside(connection: sqlite3.Connection, session: str) -> Iterator[bytes]:
    for table, column in BESIDE.items():
        if column in _columns(connection, table):
            yield from _rows(connection, table, column, session)


def _rows(connection: sqlite3.Connection, table: str, column: str, session: str) -> Iterable[bytes]:
    """The rows of another table, in the order of their columns."""
    names = _columns(connection, table)
    asked = f'SELECT * FROM "{table}" WHERE "{column}" = ?'
    rows = [dict(zip(names, map(_value, row), strict=True)) for row in connection.execute(asked, (session,))]
    return sorted(orjson.dumps({table: row}) + b"\n" for row in rows)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table; none where it is not there."""
    return [_text(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')]


def _value(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
