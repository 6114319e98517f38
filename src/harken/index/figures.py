"""The numbers of sessions, made again wherever a session has changed: what each request used, and what it cost.

A request may be told of in several sessions: a fork copies it, a resume carries it over, a parent embeds it. Each tells
it in a row of its own, and of the rows with one key one is `counted`:

1. one that the session made, never one that it carried over;
2. one of the agent's own file before one that another agent's record embeds, which counts only where its message is
   seen nowhere else;
3. the one with the largest output, then the largest input;
4. that of a runtime's session before that of a session document, which may have been made from it; then the one of the
   agent that made it; then that of the session that began first; then of the smaller id.

So the answer does not depend on the order in which sessions came, and the sum over `counted` is the total of
`Repo.stats()`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harken.analytics import count_records, report, tells_process_cost, with_told_cost
from harken.analytics.prices import packaged
from harken.analytics.usage import LOCAL, UsageRow, is_local, usage_rows
from harken.context import below, session_records
from harken.errors import HarkenError, PartlyCorrupt
from harken.events import Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.figures import Figures
from harken.events.records import SessionRecord
from harken.store.base import SessionRow, Store

from .priced import usage_row
from .rows import results

MOST = 1 << 62
"""A cost that is larger cannot be, and would not fit."""
_COLUMNS = (
    "session, key, api, time, model, agent, input, output, cache_read, cache_write_5m, cache_write_1h, reasoning,"
    " said_usd, cost, several, partial, nested, carried, counted"
)
_INSERT = f"INSERT OR REPLACE INTO usage ({_COLUMNS}) VALUES ({', '.join('?' * 19)})"
_UNANSWERED = """
SELECT said.agent, call_id, message, asked.time FROM calls AS asked JOIN messages AS said ON said.n = message
WHERE asked.session = ? AND failed IS NULL AND call_id != '' AND asked.time IS NOT NULL
  AND (? = '' OR said.agent = ?)
  AND NOT EXISTS
    (SELECT 1 FROM calls AS other WHERE other.session = asked.session AND other.call_id = asked.call_id
       AND failed IS NOT NULL AND (SELECT agent FROM messages WHERE n = other.message) IS said.agent)
"""
_ANSWER = "UPDATE calls SET failed = ?, took = ? WHERE message = ?"
_STALE = """
SELECT stale.session FROM stale LEFT JOIN sessions ON n = stale.session
ORDER BY coalesce(parent, '') = '', random() LIMIT ?
"""
"""Sub-agents first: a session whose sub-agent is counted for the first time has to be counted after it. Else any: where
all grow faster than they are counted, none is left out for long."""
_REPORTS = """
SELECT u.session, u.key, u.nested, u.output, u.input, u.cache_read, u.cache_write_5m, u.cache_write_1h, u.counted,
       coalesce(s.runtime, '') IN ('std-001', 'std-008') AS written,
       u.agent NOT IN ('', coalesce(s.agent, '')) AS others, coalesce(s.started, 1 << 62) AS began, s.session AS name
FROM usage u JOIN sessions s ON s.n = u.session WHERE u.api = ? AND NOT u.carried
"""
_COPIED = """
WITH source AS (SELECT session FROM commits WHERE "commit" = :origin AND session IS NOT :here), said AS
  (SELECT n FROM messages WHERE session IN source UNION SELECT message FROM copies WHERE session IN source)
SELECT record FROM messages WHERE session = :here AND n IN said
UNION SELECT record FROM copies WHERE session = :here AND message IN said
"""
"""The records of a session that say what another has said or copied."""
_SPOKEN = Prompt | Response | Thinking | ToolCall | ToolResult
_EMBEDDED_MODELS = "SELECT DISTINCT model FROM usage WHERE api = ? AND nested AND NOT carried"
_UNNAMED_MODELS = """
SELECT session, key, time, several, partial, input, output, cache_read, cache_write_5m, cache_write_1h, reasoning
FROM usage WHERE api = ? AND NOT nested AND model = ''
"""


def refresh(connection: sqlite3.Connection, store: Store, *, limit: int, go_on: Callable[[], bool]) -> int:
    """Inside a transaction: make the numbers of at most so many stale sessions, of one and then as long as it may go
    on; the answer is how many were made."""
    stale = [session for (session,) in connection.execute(_STALE, (limit,))]
    touched: set[str] = set()
    made = 0
    for number in stale:
        if made and not go_on():
            break
        made += 1
        connection.execute("DELETE FROM stale WHERE session = ?", (number,))
        touched |= _refresh(connection, store, number)
    for api in touched:
        _settle(connection, api)
    return made


def _refresh(connection: sqlite3.Connection, store: Store, number: int) -> set[str]:
    """One session; the answer is what the requests are called that it tells of, or told of before."""
    before = {api for (api,) in connection.execute("SELECT DISTINCT api FROM usage WHERE session = ?", (number,))}
    known = connection.execute("SELECT 1 FROM figures WHERE session = ?", (number,)).fetchone()
    connection.execute("DELETE FROM usage WHERE session = ?", (number,))
    connection.execute("DELETE FROM figures WHERE session = ?", (number,))
    (name,) = connection.execute("SELECT session FROM sessions WHERE n = ?", (number,)).fetchone()
    try:
        row = store.find_session(name)
        if row is None or row.forgotten:  # of what was forgotten nobody can say anything any more
            return before
        records = own_records(store, row)
        rows, figures = _count(records, _span(connection, store, number, row, records))
    except Exception as problem:  # whatever is wrong with one session, the others are counted
        if isinstance(problem, sqlite3.Error):
            raise
        told = str(problem) if isinstance(problem, HarkenError) else f"session {name!r}: {type(problem).__name__}"
        connection.execute("INSERT INTO figures (session, problem) VALUES (?, ?)", (number, told))
        return before
    if known is None and row.parent:
        # What a sub-agent did inside its parent's file is told in its own chain from now on.
        parent = "INSERT OR IGNORE INTO stale SELECT n FROM sessions WHERE session = ?"
        connection.execute(parent, (row.parent.partition("/")[0],))
        connection.execute(parent, (row.parent,))
    connection.executemany(_INSERT, [_values(number, row.session, one, row.started) for one in rows])
    connection.execute(f"INSERT INTO figures VALUES ({', '.join('?' * 13)})", (number, *figures))
    _answer_calls(connection, number, row, records)
    return before | {one.api for one in rows if not is_local(one.key)}


def _count(
    records: list[SessionRecord], span: tuple[int | None, int | None]
) -> tuple[list[UsageRow], tuple[object, ...]]:
    """What a session used, and its figures as the table has them."""
    counts = _counts(count_records(records).figures)
    made = (event for record in records if not record.carried for event in record.events)
    told = msgspec.json.encode(report.of(made)).decode()
    return usage_rows(records), (*counts, tells_process_cost(records), *span, "", told)


def _span(
    connection: sqlite3.Connection, store: Store, number: int, row: SessionRow, records: list[SessionRecord]
) -> tuple[int | None, int | None]:
    """When a session first and last did something: what it began with was done elsewhere."""
    copied = _copied(connection, store, number, row)
    if not copied and not any(record.carried for record in records):
        return row.started, row.ended
    own = (record for record in records if not record.carried)
    said = (event for record in own for event in record.events if isinstance(event, _SPOKEN))
    times = [event.time for event in said if event.time is not None and event.message_id not in copied]
    return min(times, default=None), max(times, default=None)


def _copied(connection: sqlite3.Connection, store: Store, number: int, row: SessionRow) -> set[str]:
    """The records of a session that the one which it goes on from has as well."""
    origin = store.get_commit(store.walk(row.tip)[-1].id).forked_from if row.tip else ""
    values = {"here": number, "origin": bytes.fromhex(origin)}
    return {record for (record,) in connection.execute(_COPIED, values)} if origin else set()


def _answer_calls(connection: sqlite3.Connection, number: int, row: SessionRow, records: list[SessionRecord]) -> None:
    """Give calls their results where these came first, in another file of the session: they are later by their times.
    An id that was answered once is left alone: who calls by it again has no result yet."""
    unanswered: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
    asked = [(number, "")]
    if row.parent and row.agent:  # what a sub-agent calls stands under its session
        above = connection.execute("SELECT n FROM sessions WHERE session = ?", (row.parent.partition("/")[0],))
        asked += [(n, row.agent) for (n,) in above]
    for session, agent in asked:
        for by, call, message, time in connection.execute(_UNANSWERED, (session, agent, agent)):
            unanswered.setdefault((by, call), []).append((message, time))
    if not unanswered:
        return
    for result in results(event for record in records for event in record.events):
        for message, time in unanswered.pop((result.agent, result.call_id), ()):  # of several results the first counts
            if result.time is not None and time <= result.time:
                connection.execute(_ANSWER, (result.failed, result.time - time, message))


def own_records(store: Store, row: SessionRow) -> list[SessionRecord]:
    """What a session is counted by: its records, but for those of agents that have chains of their own."""
    elsewhere = {agent.agent for agent in below(row, lambda session: _children(store, session))} - {"", row.agent}
    records = [record for record in session_records(store, row) if record.agent not in elsewhere]
    return with_told_cost(records, row.cost_usd_micros)


def _children(store: Store, session: str) -> list[SessionRow]:
    try:
        return store.sessions(parent=session)
    except PartlyCorrupt as problem:  # a damaged row is told where that session is counted
        return [row for row in problem.rest if row.parent == session]


def _counts(figures: Figures) -> tuple[int, ...]:
    prompts = figures.prompts
    said = (prompts.human, prompts.injected, prompts.tool_result, figures.responses)
    return (*said, sum(figures.tools.values()), figures.errors, figures.compactions)


def _values(number: int, session: str, row: UsageRow, started: int | None) -> tuple[object, ...]:
    local = is_local(row.key)
    cost = packaged().cost(row)
    return (
        number, f"{row.key} {session}" if local else row.key, LOCAL if local else row.api,
        row.time if row.time is not None else started, row.model, row.agent, row.input, row.output, row.cache_read,
        row.cache_write_5m, row.cache_write_1h, row.reasoning, row.said_usd,
        cost if cost is not None and cost < MOST else None, row.several, row.partial, row.nested, row.carried,
        local and not row.carried,
    )  # fmt: skip


def _settle(connection: sqlite3.Connection, api: str) -> None:
    """Say which of the reports about one message or thread count."""
    reports = connection.execute(_REPORTS, (api,)).fetchall()
    best: dict[str, tuple[tuple[object, ...], int]] = {}
    for session, key, nested, output, *tokens, _, written, others, began, name in reports:
        prompt = sum(count or 0 for count in tokens)
        rank = (nested, -(-1 if output is None else output), -prompt, written, others, began, name)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, session)
    seen = any(not rank[0] for rank, _ in best.values())
    counted = {(session, key) for key, (rank, session) in best.items() if not (rank[0] and seen)}
    _name_models(connection, api, reports)
    changed = [(report[:2] in counted, *report[:2]) for report in reports if (report[:2] in counted) != report[8]]
    connection.executemany("UPDATE usage SET counted = ? WHERE session = ? AND key = ?", changed)


def _name_models(connection: sqlite3.Connection, api: str, reports: Sequence[tuple[Any, ...]]) -> None:
    """Where an agent's own reports lack the model that answered, the one that those inside another's records name."""
    if not any(nested for _, _, nested, *_ in reports):
        return
    models = {model for (model,) in connection.execute(_EMBEDDED_MODELS, (api,))}
    if len(models) != 1 or not (model := models.pop()):
        return
    for session, key, time, several, partial, *tokens in connection.execute(_UNNAMED_MODELS, (api,)).fetchall():
        cost = packaged().cost(usage_row(model, time, tokens, several, partial))
        cost = cost if cost is not None and cost < MOST else None
        connection.execute(
            "UPDATE usage SET model = ?, cost = ? WHERE session = ? AND key = ?", (model, cost, session, key)
        )
