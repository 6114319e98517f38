"""Search: from a query to the messages that answer it, the best first, each with a piece of its text.

Of more candidates than `CANDIDATES` the newest to arrive are ranked; the filters stand in the same statement, so what
they leave out is no candidate. With filters alone nothing fits better than anything else: the newest come first, by
their own time, since a first import brings old and new in any order. What a fork or a resume copied is one hit. Texts
come from the store, and only those of the hits that are shown are read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import msgspec

from harken.errors import HarkenError
from harken.store.base import Store

from .file import StoreIndex
from .filters import Condition, SessionChoice, check_values, limits_of
from .progress import IndexProgress
from .query import Query
from .rows import HUMAN, SYSTEM, TITLE
from .snippets import Snippet, holds_exactly, names_something, snippet
from .texts import MessagePlace, read_texts

CANDIDATES = 1000
"""So many of the newest are looked at."""
RANKED = 250
"""So many of these, those that fit best, are ranked by age and by who said it; more where more are asked for."""
_SPARE = 5
"""How many more texts are read where an exact spelling counts."""
_DAY = 24 * 3600 * 1_000_000
_HALF = 30 * _DAY
"""A message of this age has lost half of what being new is worth."""
_WORTH = {"title": 1.6, "summary": 1.4, "human": 1.4, "assistant": 1.2, "result": 0.8, "system": 0.6, "injected": 0.7}
"""What people and models said says more than what a tool printed; everything else counts as it is."""
_SAME_TEXT = 200
"""A text of at least so many characters that is there twice is a copy, whenever it was said."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was found."""

    session: str
    """Its session; empty where its commit has none."""
    runtime: str
    project: str
    title: str
    """The title of its session."""
    agent: str
    role: str
    tool: str
    model: str
    time: int | None
    commit: str
    """The full name of the commit that holds it; empty for a title."""
    message_id: str
    """The record it stands in; empty where that has no name."""
    score: float
    snippet: Snippet
    copies: tuple[str, ...] = ()
    """Other sessions that have it too."""
    problem: str = ""
    """Why there is no snippet, where there is none."""


class Candidate(NamedTuple):
    """A message that may be a hit."""

    n: int
    role: str
    time: int | None
    size: int
    sum: int
    session: int | None
    rank: float
    """What bm25 says; the smaller the better."""


class Ranked(NamedTuple):
    """A candidate with its score, and the others that say the same."""

    score: float
    one: Candidate
    copies: list[int]


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a query."""

    hits: list[Hit]
    """The best first."""
    more: bool
    """Whether there are others."""
    reached: IndexProgress
    """How far the index had come."""


def search(
    index: StoreIndex,
    store: Store,
    query: Query,
    reached: IndexProgress,
    *,
    limit: int,
    present: int,
    snippets: bool = True,
    choose: Callable[[Sequence[Hit]], Container[int]] | None = None,
) -> SearchResult:
    """The best hits, each with a piece of its text unless that is not wanted, or only of those whose places `choose`
    gives."""
    limits = limits_of(index, query, present)
    ranked = max(RANKED, 2 * limit)
    candidates = _candidates(index, query, limits.messages, ranked)
    if not candidates:
        check_values(index, query, present)
    exact = snippets and names_something(query)
    wanted = limit + _SPARE if exact else limit + 1
    best = _best(candidates, present, wanted)
    if len(best) < wanted and len(candidates) == ranked < CANDIDATES:  # many of them say the same
        ranked = CANDIDATES
        candidates = _candidates(index, query, limits.messages, ranked)
        best = _best(candidates, present, wanted)
    more = len(best) > limit or len(candidates) == ranked
    chosen = _details(index, best if exact else best[:limit], limits.sessions)
    if not snippets:
        return SearchResult(hits=[hit for hit, _ in chosen], more=more, reached=reached)
    if choose is not None:
        hits, wanted_texts = [hit for hit, _ in chosen[:limit]], choose([hit for hit, _ in chosen[:limit]])
        places = {place.n: at for at, (_, place) in enumerate(chosen[:limit]) if at in wanted_texts}
        for n, text in read_texts(store, [chosen[at][1] for at in places.values()]):
            hits[places[n]] = _with_text(hits[places[n]], _shown(text, query))
        return SearchResult(hits=hits, more=more, reached=reached)
    shown = {n: _shown(text, query) for n, text in read_texts(store, [place for _, place in chosen])}
    if exact:  # a stable sort: those that have the name letter for letter come first
        chosen.sort(key=lambda one: not shown[one[1].n].exact)
    hits = [_with_text(hit, shown[place.n]) for hit, place in chosen[:limit]]
    return SearchResult(hits=hits, more=more, reached=reached)


class ShownText(NamedTuple):
    """What is shown of a text; the text itself may be large, and is not kept."""

    snippet: Snippet = Snippet()
    exact: bool = False
    problem: str = ""


def _shown(text: str | HarkenError, query: Query) -> ShownText:
    if isinstance(text, HarkenError):
        return ShownText(problem=str(text))
    return ShownText(snippet(text, query), exact=holds_exactly(text, query))


def _with_text(hit: Hit, shown: ShownText) -> Hit:
    return msgspec.structs.replace(hit, snippet=shown.snippet, problem=shown.problem)


# -- candidates --------------------------------------------------------------------------------------------------------


def _candidates(index: StoreIndex, query: Query, limits: Condition, most: int) -> list[Candidate]:
    """The newest messages that the query fits, and of these at most so many that fit best."""
    values: list[object] = []
    where: list[str] = []
    sessions = " LEFT JOIN sessions s ON s.n = m.session" if "s." in limits.sql else ""
    if expression := query.expression:
        tables, number, rank = "words", "words.rowid", "bm25(words)"
        if limits.sql:  # without filters the words alone tell, and nothing has to be looked up
            tables = f"words CROSS JOIN messages m ON m.n = words.rowid{sessions}"  # the words first
        where.append("words MATCH ?")
        values.append(expression)
    else:
        tables, number, rank = f"messages m{sessions}", "m.n", "0.0"
        where.append("m.size > 0")  # a compaction may say nothing
        if query.without:
            where.append("m.n NOT IN (SELECT rowid FROM words WHERE words MATCH ?)")
            values.append(query.unwanted)
    if limits.sql:
        where.append(limits.sql)
        values += limits.values
    newest = f"SELECT {number} AS n, {rank} AS rank FROM {tables} WHERE {' AND '.join(where)}"
    if not expression:
        newest += " ORDER BY m.time DESC, m.n DESC LIMIT ?"  # unknown times last
        return _rows(index, newest, [*values, most])
    best = f"SELECT n, rank FROM ({newest} ORDER BY {number} DESC LIMIT ?) ORDER BY rank, n DESC LIMIT ?"
    return _rows(index, best, [*values, CANDIDATES, most])


def _rows(index: StoreIndex, found: str, values: list[object]) -> list[Candidate]:
    columns = "m.n, m.role, m.time, m.size, m.sum, m.session, rank"
    sql = f"SELECT {columns} FROM ({found}) found JOIN messages m ON m.n = found.n"
    return [*map(Candidate._make, index.query(sql, values))]


def _best(candidates: Sequence[Candidate], present: int, limit: int) -> list[Ranked]:
    """The best of them, best first. Of those that say the same, the newest, and of copies the first that arrived; of a
    prompt after which its session is called, the prompt; of what a compaction repeats, that which was said."""
    asked = {(one.session, one.size, one.sum) for one in candidates if one.role == HUMAN}
    said = {(one.size, one.sum) for one in candidates if one.role != SYSTEM}
    fresh = [
        one
        for one in candidates
        if not (one.role == TITLE and (one.session, one.size, one.sum) in asked)
        and not (one.role == SYSTEM and (one.size, one.sum) in said)
    ]
    scored = [(_score(one, present), one) for one in fresh]
    scored.sort(key=lambda each: (-each[0], -(each[1].time or 0), each[1].n))
    found: dict[tuple[object, ...], Ranked] = {}
    for score, one in scored:
        same = (one.role, one.size, one.sum, one.time if one.size < _SAME_TEXT else None)
        if (known := found.get(same)) is not None:
            known.copies.append(one.n)
        elif len(found) < limit:
            found[same] = Ranked(score, one, [])
    return list(found.values())


def _score(one: Candidate, present: int) -> float:
    """How good a hit is: how well it fits, who said it, and up to twice that for a new one. Without words only its age
    counts, and one of unknown age comes last."""
    if not one.rank:
        return 0.0 if one.time is None else 1.0 + _HALF / (_HALF + max(0, present - one.time))
    age = _HALF if one.time is None else max(0, present - one.time)
    return -one.rank * _WORTH.get(one.role, 1.0) * (1.0 + _HALF / (_HALF + age))


# -- what is told about a hit ------------------------------------------------------------------------------------------


_HIT = """
SELECT coalesce(o.session, s.session, ''), coalesce(o.runtime, s.runtime, ''), coalesce(o.project, s.project, ''),
  coalesce(o.title, s.title, ''), coalesce(m.agent, s.agent, ''), m.role, coalesce(m.tool, ''), coalesce(m.model, ''),
  m.time, lower(coalesce(hex(c."commit"), '')), coalesce(m.record, ''), m.n, m.event, m.size, m.sum, c."end"
FROM messages m LEFT JOIN sessions s ON s.n = m.session LEFT JOIN commits c ON c.n = m."commit"
LEFT JOIN sessions o ON s.runtime IS NULL AND o.session = s.session || '/' || m.agent WHERE m.n IN
"""
"""What a sub-agent said whose session is not in the store is its own."""


def _details(index: StoreIndex, best: Sequence[Ranked], asked: SessionChoice | None) -> list[tuple[Hit, MessagePlace]]:
    marks = ", ".join("?" * len(best))
    known = {row[11]: row for row in index.query(f"{_HIT} ({marks})", [each.one.n for each in best])}
    others = _sessions_of(index, [n for each in best for n in (each.one.n, *each.copies)])
    elsewhere = _elsewhere(index, list(known), asked) if asked is not None else {}
    found = []
    for score, (n, *_), same in best:
        if n not in known:
            continue  # it was replaced while we looked
        session, runtime, project, title, agent, role, tool, model, time, commit, record, *rest = known[n]
        place = MessagePlace(role, commit, record, title, *rest)
        if n in elsewhere:
            session, runtime, project, title, agent, commit, record = elsewhere[n]
        copies = dict.fromkeys(name for one in (n, *same) for name in others.get(one, ()) if name != session)
        hit = Hit(
            session=session,
            runtime=runtime,
            project=project,
            title=title,
            agent=agent,
            role=role,
            tool=tool,
            model=model,
            time=time,
            commit=commit,
            message_id=record,
            score=round(score, 4),
            snippet=Snippet(),
            copies=tuple(copies),
        )
        found.append((hit, place))
    return found


_COPIED = """
SELECT m.n, s.session, coalesce(s.runtime, ''), coalesce(s.project, ''), coalesce(s.title, ''),
  coalesce(m.agent, s.agent, ''), lower(coalesce(hex(k."commit"), '')), coalesce(c.record, '')
FROM copies c JOIN messages m ON m.n = c.message JOIN sessions s ON s.n = c.session
LEFT JOIN commits k ON k.n = c."commit"
"""


def _elsewhere(index: StoreIndex, numbers: Sequence[int], asked: SessionChoice) -> dict[int, tuple[str, ...]]:
    """Of messages whose own session is none of those that are asked for: where the first of these has it."""
    own, marks = asked.own(), ", ".join("?" * len(numbers))
    sql = f"{_COPIED} WHERE c.message IN ({marks}) AND c.session IN ({asked.numbers.sql}) AND NOT {own.sql}"
    rows = index.query(f"{sql} ORDER BY s.started, s.session", [*numbers, *asked.numbers.values, *own.values])
    found: dict[int, tuple[str, ...]] = {}
    for n, *there in rows:
        found.setdefault(n, tuple(there))
    return found


def _sessions_of(index: StoreIndex, numbers: Sequence[int]) -> dict[int, list[str]]:
    """The sessions that have each of these messages, its own first."""
    found: dict[int, list[str]] = {}
    for at in range(0, len(numbers), 500):
        some = numbers[at : at + 500]
        marks = ", ".join("?" * len(some))
        for n, session in index.query(
            f"SELECT m.n, s.session FROM messages m JOIN sessions s ON s.n = m.session WHERE m.n IN ({marks}) "
            "UNION ALL SELECT message, s.session FROM copies c JOIN sessions s ON s.n = c.session "
            f"WHERE message IN ({marks})",
            [*some, *some],
        ):
            found.setdefault(n, []).append(session)
    return found
