"""The list of sessions as the page shows it: what each did at a glance, what it cost, and where some words stand."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harken import clock
from harken.analytics.transcript_rows import strip_of
from harken.errors import BadRequest, Corrupt, HarkenError, PartlyCorrupt
from harken.index import IndexProgress
from harken.index.families import Families
from harken.index.glances import SessionGlance, glances, known_commits, letters_of
from harken.index.search import Hit
from harken.index.spending import Spending, price_together
from harken.repo import Repo

from .base import ApiAnswer, IndexedAnswer, index_fields
from .crossing import crosses
from .following import check_range, families_of, follow
from .remembering import remembered
from .session_page import RUNNING
from .sessions import SessionAnswer, SessionsRequest, list_sessions, session_costs

MOST_SESSIONS = 200
STRIP = 66
"""Letters of a strip in a list."""
KEPT = 10_000
"""Strips that are held in memory."""
FOUND = 1000
"""Places that are looked at for some words."""
SHOWN = 3
"""Places of a session that are shown."""
ORDERS = ("newest", "best", "cost")
HAS = ("errors", "compaction", "agents", "prompt")


class SessionsPageRequest(SessionsRequest, frozen=True, kw_only=True):
    """Which sessions, in which order, and which part of the list. `limit`, `top` and `costs` are of no account here:
    the list has sessions only, each with its price, and those of sub-agents count with theirs."""

    query: str = ""
    """Only sessions in which these words were said, as `search` takes them; empty for all."""
    until: str = ""
    """Those that began before this instant (RFC 3339); empty for all."""
    has: tuple[str, ...] = ()
    """Only those with all of these: `errors` (a call failed), `compaction`, `agents` (sub-agents), `prompt` (a person
    said something)."""
    running: bool = False
    """Whether to list only those that are running."""
    order: str = "newest"
    """`newest`, `best` (how well the words fit; as newest where there are none) or `cost`."""
    start: int = 0
    """The first row that is wanted."""
    count: int = 50
    """How many rows, up to 200."""


class SessionPlace(ApiAnswer, frozen=True, kw_only=True):
    """A place in a session where the words stand."""

    record: str | None
    """The record; null where it has no name."""
    session: str
    """The session it is in: this one, or a sub-agent's."""
    agent: str | None
    """Whose it is, where the session has several agents."""
    role: str
    """`human`, `assistant`, `call` …, as in a search."""
    time: str | None
    """When it was said."""
    text: str
    """A piece of it."""
    highlights: list[tuple[int, int]]
    """Where in the piece the words stand: beginnings and ends, in characters."""


class SessionPageRow(SessionAnswer, frozen=True, kw_only=True):
    """A session in the list."""

    running: bool
    """Whether something was added to it, or to one of its sub-agents, within the last two minutes."""
    prompts: int | None
    """How often a person spoke; null where nobody has counted yet."""
    calls: int
    """Calls of tools, those of sub-agents included."""
    failed: int
    """How many of these failed."""
    errors: int
    """Errors that its program told of."""
    compactions: int
    """How often its conversation was folded into a summary."""
    agents: int
    """Sub-agents."""
    strip: str
    """What it did, a letter for each call in order, at most 66 of them: `r` reading or searching, `c` command, `e`
    edit, `a` agent, `o` other; the capital where it failed; `|` a compaction, `p` a prompt."""
    places: int
    """In how many places the words stand, of the thousand that fit best; 0 where none were asked for."""
    found: list[SessionPlace]
    """The first of these, at most three."""


class SessionFacets(ApiAnswer, frozen=True, kw_only=True):
    """How many sessions there are of each kind, among all that the words and the time leave."""

    projects: dict[str, int]
    """By project; the most first. Empty is unknown."""
    runtimes: dict[str, int]
    """By program."""
    has: dict[str, int]
    """By what they have, as in the request."""
    running: int
    """How many are running."""


class SessionsPageAnswer(IndexedAnswer, frozen=True, kw_only=True):
    """A part of the list."""

    rows: list[SessionPageRow]
    """The sessions that were asked for."""
    total: int
    """How many fit altogether."""
    places: int
    """In how many places the words stand, as far as was looked."""
    more_places: bool
    """Whether there may be more."""
    price_usd_micros: int | None
    """What all that fit cost at list price; null where nothing is known."""
    facets: SessionFacets
    """How many there are of each kind."""


class _FoundWords(NamedTuple):
    """The hits of a search by the session at the top."""

    hits: Mapping[str, list[int]]
    all: Sequence[Hit]
    more: bool


@crosses
def sessions_page(repo: Repo, request: SessionsPageRequest) -> SessionsPageAnswer:
    """The list of sessions with price, strip and failures, and where some words stand in each."""
    return page_of(repo, request, None)


def page_of(repo: Repo, asked: SessionsPageRequest, at: IndexProgress | None) -> SessionsPageAnswer:
    """The same; `at` is how far the index has come, where whoever asks has just let it follow the store."""
    check_range(asked.start, asked.count, MOST_SESSIONS)
    if asked.order not in ORDERS or not set(asked.has) <= set(HAS):
        raise BadRequest("no such order or kind", hint=f"order: {', '.join(ORDERS)}; has: {', '.join(HAS)}")
    reached, counted = _counted(repo, at)
    key = (repo.chains.version, reached.at, reached.stale, _filters(asked))
    told, costs, below, families = remembered(
        repo,
        "listed sessions",
        key,
        lambda: (*_told(repo, asked, reached), *_below(repo)),
        most=4,
        opened=reached.opened,
    )
    fitting = _in_time(told, asked)
    found = _search(repo, asked, reached, families) if asked.query.strip() else None
    if found is not None:
        fitting = [one for one in fitting if one.session in found.hits]
    now = repo.clock()
    facets = _facets(fitting, counted, below, now)
    chosen = [one for one in fitting if _has(one, counted, below, asked.has)]
    if asked.running:
        chosen = [one for one in chosen if _is_running(one, below, now)]
    chosen.sort(key=_order(asked.order, found))
    page = chosen[asked.start : asked.start + asked.count]
    if found is not None:
        found = _with_texts(repo, asked, reached, families, page)
    strips = _strips(repo, page, reached)
    return SessionsPageAnswer(
        rows=[_row(one, counted, below, strips[one.session], found, now) for one in page],
        total=len(chosen),
        places=len(found.all) if found else 0,
        more_places=found.more if found else False,
        price_usd_micros=price_together([costs[one.session] for one in chosen if one.session in costs]),
        facets=facets,
        **index_fields(reached),
    )


def _counted(repo: Repo, at: IndexProgress | None) -> tuple[IndexProgress, Mapping[str, SessionGlance]]:
    """How far the index is, and its numbers; without them where it fails: the list is there all the same."""
    try:
        reached = follow(repo) if at is None else at
        key = (reached.at, reached.behind, reached.stale)
        return reached, remembered(repo, "glances", key, lambda: glances(repo.index), most=1, opened=reached.opened)
    except (HarkenError, OSError, sqlite3.Error) as problem:
        return IndexProgress(at=0, last=0, taken=0, stale=0, problem=str(problem)), {}


def _filters(asked: SessionsPageRequest) -> SessionsRequest:
    """What of the request the list itself can answer."""
    fields = {name: getattr(asked, name) for name in SessionsRequest.__struct_fields__}
    return SessionsRequest(**fields | {"top": True, "limit": None, "costs": True})


def _told(
    repo: Repo, asked: SessionsPageRequest, at: IndexProgress
) -> tuple[list[SessionAnswer], Mapping[str, Spending]]:
    """The sessions that the list itself would give, and what each cost: of what is rounded no sum is made."""
    costs = session_costs(repo, _filters(asked), lambda _: None, at)
    listed = list_sessions(repo, _filters(asked), lambda: costs)
    found: list[SessionAnswer] = []
    try:
        found.extend(listed)
    except (Corrupt, PartlyCorrupt):  # told behind those that can be read; the index says how much is missing
        if not found:
            raise
    return found, costs.spent


def _in_time(told: Sequence[SessionAnswer], asked: SessionsPageRequest) -> list[SessionAnswer]:
    if not asked.until:
        return list(told)
    until = clock.parse_instant(asked.until)
    if until is None:
        raise BadRequest(f"{asked.until!r} is no instant", hint="write it as RFC 3339, like 2026-01-31T12:00:00Z")
    return [one for one in told if (clock.parse_instant(one.started or one.active) or 0) < until]


def _below(repo: Repo) -> tuple[dict[str, list[int | None]], Families]:
    """For each session at the top when its sub-agents were last active, and who counts with whom."""
    rows = repo.chains.rows()
    families = families_of(rows)
    found: dict[str, list[int | None]] = {}
    for row in rows:
        if not families.is_top(row.session):
            found.setdefault(families.tops[row.session], []).append(row.ended)
    return found, families


# -- words -------------------------------------------------------------------------------------------------------------


def _search(
    repo: Repo,
    asked: SessionsPageRequest,
    reached: IndexProgress,
    families: Families,
    texts: Callable[[Sequence[Hit]], set[int]] | None = None,
) -> _FoundWords:
    result = repo.chains.search(
        repo.index, asked.query, reached, limit=FOUND, present=repo.clock(), choose=texts or (lambda hits: set())
    )
    hits: dict[str, list[int]] = {}
    for at, hit in enumerate(result.hits):
        for session in _holders(hit, families):
            hits.setdefault(session, []).append(at)
    return _FoundWords(hits, result.hits, result.more)


def _holders(hit: Hit, families: Families) -> list[str]:
    """The sessions of the list in which a message stands."""
    found = (families.top(session, hit.agent) for session in (hit.session, *hit.copies))
    return list(dict.fromkeys(filter(None, found)))


def _with_texts(
    repo: Repo,
    asked: SessionsPageRequest,
    reached: IndexProgress,
    families: Families,
    page: Sequence[SessionAnswer],
) -> _FoundWords:
    """The same with the texts of the places that are shown."""
    shown = {one.session for one in page}

    def choose(hits: Sequence[Hit]) -> set[int]:
        seen: Counter[str] = Counter()
        wanted = set()
        for at, hit in enumerate(hits):
            for session in shown.intersection(_holders(hit, families)):
                seen[session] += 1
                if seen[session] <= SHOWN:
                    wanted.add(at)
        return wanted

    return _search(repo, asked, reached, families, choose)


def _place(hit: Hit) -> SessionPlace:
    return SessionPlace(
        record=hit.message_id or None,
        session=hit.session,
        agent=hit.agent or None,
        role=hit.role,
        time=clock.format_instant(hit.time) if hit.time is not None and clock.in_calendar(hit.time) else None,
        text=hit.snippet.text,
        highlights=list(hit.snippet.spots),
    )


# -- kinds, order and rows ---------------------------------------------------------------------------------------------

_Counted = Mapping[str, SessionGlance]
_Below = Mapping[str, Sequence[int | None]]
_NOTHING = SessionGlance()


def _kinds(one: SessionAnswer, counted: _Counted, below: _Below) -> set[str]:
    glance = counted.get(one.session, _NOTHING)
    facts = {
        "errors": glance.failed or glance.errors,
        "compaction": glance.compactions,
        "agents": below.get(one.session),
        "prompt": glance.prompts,
    }
    return {name for name, there in facts.items() if there}


def _has(one: SessionAnswer, counted: _Counted, below: _Below, wanted: Sequence[str]) -> bool:
    return not wanted or set(wanted) <= _kinds(one, counted, below)


def _facets(fitting: Sequence[SessionAnswer], counted: _Counted, below: _Below, now: int) -> SessionFacets:
    kinds: Counter[str] = Counter(dict.fromkeys(HAS, 0))
    for one in fitting:
        kinds.update(_kinds(one, counted, below))
    return SessionFacets(
        projects=dict(Counter(one.project or "" for one in fitting).most_common()),
        runtimes=dict(Counter(one.runtime for one in fitting).most_common()),
        has=dict(kinds),
        running=sum(_is_running(one, below, now) for one in fitting),
    )


def _is_running(one: SessionAnswer, below: _Below, now: int) -> bool:
    times = [clock.parse_instant(one.ended), *below.get(one.session, ())]
    return any(time is not None and now - RUNNING <= time <= now + RUNNING for time in times)


def _order(order: str, found: _FoundWords | None) -> Callable[[SessionAnswer], int]:
    if order == "cost":
        return lambda one: -(one.price_usd_micros or one.cost_usd_micros or 0)
    if order == "best" and found is not None:
        return lambda one: found.hits[one.session][0]
    return lambda one: 0  # as they are: the last active first


def _strips(repo: Repo, page: Sequence[SessionAnswer], reached: IndexProgress) -> dict[str, str]:
    """The strips of these sessions; a session that stands where it stood has the one it had."""
    held: dict[tuple[str, str | None], str] = remembered(repo, "strips", "", dict)
    found = {one.session: strip for one in page if (strip := held.get((one.session, one.tip_id))) is not None}
    missing = [one for one in page if one.session not in found]
    if len(held) > KEPT:
        held.clear()
    try:
        # What came since the index followed may be among them, and only what is all of a strip is kept.
        is_all = repo.chains.version[1] <= reached.at
        known = (
            {one.tip_id for one in missing} if is_all else known_commits(repo.index, [one.tip_id for one in missing])
        )
        letters = letters_of(repo.index, [one.session for one in missing]) if missing else {}
        is_same = reached.opened == repo.index.opened
    except (HarkenError, OSError, sqlite3.Error):
        return found | {one.session: "" for one in missing}
    for one in missing:
        chain = repo.chains.deltas_behind(one.tip_id or "")  # without tails that its file has outgrown
        own = [text for commit, text in letters[one.session] if commit in chain]
        found[one.session] = strip_of("".join(own), STRIP)
        if is_same and one.tip_id in known:
            held[one.session, one.tip_id] = found[one.session]
    return found


def _row(
    one: SessionAnswer, counted: _Counted, below: _Below, strip: str, found: _FoundWords | None, now: int
) -> SessionPageRow:
    glance = counted.get(one.session, _NOTHING)
    hits = found.hits.get(one.session, []) if found else []
    return SessionPageRow(
        **{name: getattr(one, name) for name in SessionAnswer.__struct_fields__},
        running=_is_running(one, below, now),
        prompts=glance.prompts,
        calls=glance.calls,
        failed=glance.failed,
        errors=glance.errors,
        compactions=glance.compactions,
        agents=len(below.get(one.session, ())),
        strip=strip,
        places=len(hits),
        found=[_place(found.all[at]) for at in hits[:SHOWN]] if found else [],
    )
