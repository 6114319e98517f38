"""Which call a result is of, where several have one id.

Some servers number calls anew in each reply, or give two of one reply the same id; some runtimes tell a call again in
another record. `analytics.calls` has the rule; here calls may be stored already, and the same call may be a row of each
record that tells it. What is told again (the tail of a chain is) changes nothing.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from harken.analytics.calls import next_answered

from . import rows

CallKey = tuple[int | None, str | None, str]
"""Calls by their session, their agent and their id."""
_OPEN = (
    "SELECT m.agent, c.call_id, c.tool, c.time, c.message, m.record, m.event FROM calls c"
    " JOIN messages m ON m.n = c.message WHERE c.session IS ? AND c.failed IS NULL ORDER BY c.message"
)
_ENDED = (
    "SELECT 1 FROM calls WHERE session IS ? AND (SELECT agent FROM messages WHERE n = message) IS ? AND call_id = ?"
    " AND failed IS NOT NULL AND time + took = ? LIMIT 1"
)


class WaitingCall(NamedTuple):
    """A call without a result."""

    tool: str
    time: int | None
    n: int
    record: str | None
    event: int
    stored: bool = False

    def is_after(self, result: rows.ResultRow) -> bool:
        """Whether it was made when that result was there: it calls by an id that another had before."""
        return self.time is not None and result.time is not None and self.time > result.time

    def is_told_by(self, other: WaitingCall) -> bool:
        """Whether the other is the same call, in another record."""
        return self.time is not None and self[:2] == other[:2] and self.event == other.event


class WaitingCalls:
    """The calls of some sessions that have no result, those that are stored and those that come."""

    def __init__(self, connection: sqlite3.Connection, sessions: set[int | None]) -> None:
        self._db = connection
        self._open: dict[CallKey, list[WaitingCall]] = {}
        self._ended: set[tuple[CallKey, int, int]] = set()
        """When calls ended that were open here, and the places of their results in their records: one message may tell
        several at one time."""
        for session in sessions:
            for agent, call_id, tool, time, n, record, event in connection.execute(_OPEN, (session,)).fetchall():
                self.add((session, agent, call_id), WaitingCall(tool, time, n, record, event, stored=True))

    def add(self, key: CallKey, call: WaitingCall) -> None:
        """A call that was made."""
        self._open.setdefault(key, []).append(call)

    def tool(self, key: CallKey) -> str:
        """The tool whose result comes next; empty where nobody waits for one."""
        return answered[0].tool if (answered := _answered(self._open.get(key, []))) else ""

    def end(self, key: CallKey, result: rows.ResultRow) -> list[WaitingCall]:
        """The call that the result is of, as often as it is told; none where its result is known."""
        asked = [one for one in self._open.get(key, ()) if not one.is_after(result)]
        if not asked or self._is_known(key, result, asked):
            return []
        ended = _answered(asked)
        self._open[key] = [one for one in self._open[key] if one not in ended]
        if result.time is not None:
            self._ended.add((key, result.time, result.event))
        return ended

    def _is_known(self, key: CallKey, result: rows.ResultRow, asked: list[WaitingCall]) -> bool:
        """Whether another call ended with this result, which is told again."""
        if result.time is None:
            return False
        if (key, result.time, result.event) in self._ended:
            return True
        # Only of a call that was stored without a result, which is rare, can another have been stored with one.
        stored = any(one.stored for one in asked)
        return stored and self._db.execute(_ENDED, (*key, result.time)).fetchone() is not None


def _answered(asked: list[WaitingCall]) -> list[WaitingCall]:
    """Of calls with one id those that the next result is of."""
    if not asked:
        return []
    first = next_answered(asked)
    return [one for one in asked if one is first or one.is_told_by(first)]
