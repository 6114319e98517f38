"""What sessions did themselves and what they had others do, how full contexts were, and how long tools took."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from harken.analytics.activity import peak

from .families import indexed_families
from .file import StoreIndex

_DONE = """
SELECT s.session, coalesce(s.title, ''), coalesce(s.project, ''), s.started, s.ended,
       coalesce(f.calls, 0), coalesce(f.human, 0), coalesce(f.compactions, 0), coalesce(f.responses, 0)
FROM sessions s LEFT JOIN figures f ON f.session = s.n
WHERE s.runtime IS NOT NULL AND coalesce(s.started, s.ended) < ? AND coalesce(s.ended, s.started) >= ?
"""
_CURVE = """
SELECT json_extract(report, '$.compactions.curve') FROM figures f JOIN sessions s ON s.n = f.session
WHERE s.session = ? AND report IS NOT NULL
"""
_TOOK = "SELECT tool, took FROM calls WHERE took IS NOT NULL AND time >= ? AND time < ?"


class DoneSession(NamedTuple):
    """What was counted of one session, or of a sub-agent's."""

    session: str
    top: str
    """The session that it counts with: itself, unless it is a sub-agent's."""
    title: str
    project: str
    started: int | None
    ended: int | None
    calls: int
    prompts: int
    compactions: int
    responses: int


class _Point(msgspec.Struct):
    tokens: int = 0
    agent: str = ""


def done_sessions(index: StoreIndex, since: int, until: int) -> list[DoneSession]:
    """The sessions that were going on in a window, those of sub-agents included; all of what each did."""
    families = indexed_families(index)
    return [DoneSession(session, families.top(session), *told) for session, *told in index.query(_DONE, (until, since))]


def most_at_once(sessions: list[DoneSession]) -> int:
    """The most sub-agents of one session that were at work at the same time."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for one in sessions:
        if one.top != one.session and one.started is not None and one.ended is not None:
            spans.setdefault(one.top, []).append((one.started, one.ended))
    return max((peak(several).sessions for several in spans.values()), default=0)


def pressure(index: StoreIndex, session: str) -> list[int]:
    """How many tokens stood before the model, request by request, of a session's own agent."""
    for (text,) in index.query(_CURVE, (session,)):
        points = msgspec.json.decode(text, type=list[_Point]) if text else []
        own = [point.tokens for point in points if not point.agent]
        return own or [point.tokens for point in points]
    return []


def medians(index: StoreIndex, since: int, until: int) -> dict[str, int]:
    """What a call of each tool took in the middle, in microseconds, of those in a window."""
    took: dict[str, list[int]] = {}
    for tool, micros in index.query(_TOOK, (since, until)):
        took.setdefault(tool, []).append(micros)
    return {tool: sorted(several)[(len(several) - 1) // 2] for tool, several in took.items()}
