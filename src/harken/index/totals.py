"""What sessions used and called, added up by quarter of an hour, the finest step between time zones.

`usage` and `calls` have triggers that write down whose rows have changed (`unsummed`). The totals of these sessions are
made again in the transaction that makes numbers, so that they are the sums over those tables, whoever writes there. A
window that begins or ends inside a quarter of an hour takes that quarter from the rows themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from harken import clock
from harken.analytics.prices import MICRO, packaged

from .file import StoreIndex
from .schema import CACHE_WRITE, USED_TOKENS, exact_sum

QUARTER = 900 * clock.SECOND
_SLOT = f"(time - (time % {QUARTER} + {QUARTER}) % {QUARTER}) / {QUARTER}"
"""The quarter of an hour that a time is in; also before 1970."""
_USED = f"""
SELECT session, {_SLOT}, model, agent, sum(NOT several), {exact_sum("input")}, {exact_sum("output")},
       {exact_sum("cache_read")}, {exact_sum(CACHE_WRITE)}, sum(cost / {MICRO}), sum(cost % {MICRO}), count(cost),
       sum(cost IS NULL AND {USED_TOKENS}), CASE WHEN count(said_usd) THEN total(said_usd) END
FROM usage WHERE counted AND session IN ({{sessions}}) {{window}} GROUP BY 1, 2, 3, 4
"""
_CALLED = f"""
SELECT session, {_SLOT}, tool, count(*), sum(failed), CAST(total(took) AS INTEGER)
FROM (
  SELECT c.session, min(c.tool) AS tool, c.time, max(coalesce(failed, 0)) AS failed, max(coalesce(took, 0)) AS took
  FROM calls c LEFT JOIN messages m ON m.n = c.message WHERE c.session IN ({{sessions}})
  GROUP BY c.session, c.time, CASE WHEN call_id = '' OR c.time IS NULL THEN c.message END, call_id, m.agent, m.event
) {{window}} GROUP BY 1, 2, 3
"""
"""A call is a message, which is here once however often its record is told. Some runtimes tell it again in another
record: then it has the same agent, id and time. The id alone says little: some servers number anew in each reply, and
Gemini gives none, so that each conversation has a first one. A call without an id or a time is one of its own."""
_TABLES = {"usage_totals": _USED, "call_totals": _CALLED}
_READ_USAGE = "SELECT * FROM usage_totals WHERE slot >= ?1 AND slot < ?2 OR slot IS NULL AND ?3"
_READ_CALLS = "SELECT * FROM call_totals WHERE slot >= ?1 AND slot < ?2"
_TIMELESS_CALLS = """
SELECT t.* FROM call_totals t LEFT JOIN sessions s ON n = t.session
WHERE slot IS NULL AND (?1 OR started >= ?2 AND started < ?3)
"""
"""A call that nobody said the time of is as old as its session."""


def sum_up(connection: sqlite3.Connection) -> None:
    """Inside a transaction: make the totals of the sessions whose rows have changed."""
    changed = "SELECT session FROM unsummed"
    for table, statement in _TABLES.items():
        connection.execute(f"DELETE FROM {table} WHERE session IN ({changed})")
        connection.execute(f"INSERT INTO {table} {statement.format(sessions=changed, window='')}")
    models = connection.execute(f"SELECT DISTINCT model FROM usage_totals WHERE session IN ({changed})").fetchall()
    unverified = [model for model in models if not packaged().is_verified(*model)]
    connection.executemany("INSERT OR IGNORE INTO unverified VALUES (?)", unverified)
    connection.execute("DELETE FROM unsummed")


def used(index: StoreIndex, since: int, until: int, *, timeless: bool) -> list[tuple[Any, ...]]:
    """The totals of what was used from an instant on and before another, and what nobody said the time of if asked."""
    first, end, edges = _pieces(since, until)
    found = index.query(_READ_USAGE, (first, end, timeless))
    return found + _edges(index, "usage_totals", edges, "AND time >= ?2 AND time < ?3")


def called(index: StoreIndex, since: int, until: int, *, timeless: bool) -> list[tuple[Any, ...]]:
    """The same for calls."""
    first, end, edges = _pieces(since, until)
    found = index.query(_READ_CALLS, (first, end))
    found += index.query(_TIMELESS_CALLS, (timeless, since, until))
    return found + _edges(index, "call_totals", edges, "WHERE time >= ?2 AND time < ?3")


def _pieces(since: int, until: int) -> tuple[int, int, list[tuple[int, int]]]:
    """The first quarter of an hour that is whole in a window, the first behind these, and what of others is in it."""
    first, end = -(-since // QUARTER), until // QUARTER
    edges = [(since, first * QUARTER), (end * QUARTER, until)] if first <= end else [(since, until)]
    return first, end, [(start, stop) for start, stop in edges if start < stop]


def _edges(index: StoreIndex, table: str, edges: Sequence[tuple[int, int]], window: str) -> list[tuple[Any, ...]]:
    statement = _TABLES[table].format(sessions=f"SELECT session FROM {table} WHERE slot = ?1", window=window)
    return [row for start, stop in edges for row in index.query(statement, (start // QUARTER, start, stop))]
