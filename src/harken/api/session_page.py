"""The head of a session's page: what it is called, what it cost, who took part, and which views of it make sense."""

from __future__ import annotations

import sqlite3

from harken.context import agent_name, errand_title, project_of
from harken.context.names import Continued, begun_elsewhere
from harken.errors import HarkenError
from harken.events import AgentCreated, Tokens
from harken.repo import Repo
from harken.repo.numbers import read_price_file
from harken.repo.transcripts import OpenTranscript
from harken.store import SessionRow

from .base import ApiAnswer, ApiRequest, TokensAnswer, stamp, tokens_answer
from .crossing import crosses
from .sessions import SHORTEST, beginnings
from .transcript import masks

RUNNING = 120 * 1_000_000
"""Microseconds since something was added, within which a session is taken to be running."""
SMALL = 3_000
"""Rows of a session whose numbers are made while somebody waits."""
READABLE = 20_000
"""Rows of a session log whose interventions are looked for while somebody waits."""
MOST_AGENTS = 2_000


class SessionPageRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose page it is."""

    session: str
    """The id of a session in the store, or a unique beginning of one; `SESSION/AGENT` is a sub-agent's."""
    mask: bool = False
    """Whether to mask what looks like a secret in the title."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""
    soon: bool = False
    """Whether it is wanted before all rows of a long session are counted."""


class PageFigures(ApiAnswer, frozen=True, kw_only=True):
    """The numbers of a session; null where nobody has counted yet."""

    tokens: TokensAnswer
    """Tokens of the session and its sub-agents, each request once."""
    requests: int
    """Requests of the session and its sub-agents."""
    models: dict[str, TokensAnswer]
    """Tokens of the session and its sub-agents by model."""
    prompts: int | None
    """What people asked the session's own agent."""
    injected: int | None
    """What others or the harness put before it."""
    responses: int | None
    """Messages of its model."""
    calls: int | None
    """Its calls of tools."""
    errors: int | None
    """Errors."""
    compactions: int | None
    """How often its conversation was compacted."""
    stale: bool
    """Whether some of this is not up to date yet."""


class PageAgent(ApiAnswer, frozen=True, kw_only=True):
    """An agent of a session."""

    id: str
    """Its id, the same in every view."""
    name: str
    """What it is called; where it has no name, what the call that made it says in a few words, or its first words."""
    session: str | None
    """Its own session in the store."""
    calls: int | None
    """How many calls it made; null where nobody has counted yet."""
    parent: str | None
    """The agent that made it."""
    call_id: str | None
    """The call that made it."""


class SessionPage(ApiAnswer, frozen=True, kw_only=True):
    """The head of a session's page."""

    session: str
    """Its id."""
    short: str
    """A beginning of its id that no other session in the store has; of a sub-agent's, all of it."""
    title: str
    """What it is called, or its first words."""
    runtime: str
    """The program that held it."""
    project: str | None
    """The folder that was worked in."""
    started: str | None
    """When it began."""
    ended: str | None
    """When its newest record was written."""
    active: str | None
    """When something last happened in it: its newest record, or Harken's writing it to continue a conversation."""
    running: bool
    """Whether something was added to it, or to one of its sub-agents, within the last two minutes."""
    tip: str | None
    """The short name of its newest commit."""
    tip_id: str | None
    """The full name of that commit."""
    rows: int
    """How many rows its transcript has."""
    parent: str | None
    """The session that spawned it, for a sub-agent."""
    parent_stored: bool
    """Whether that session is in the store."""
    agent: str | None
    """The agent it belongs to, for a sub-agent."""
    continues: str | None
    """The session it goes on from, where Harken wrote it to do so."""
    continues_at: str | None
    """The full name of the commit it goes on from."""
    continued_by: list[str]
    """The sessions that Harken wrote to go on from it, the newest first."""
    resumable: bool
    """Whether its program can go on with it: `harken resume SESSION --in RUNTIME`."""
    figures: PageFigures
    """Its numbers."""
    price_usd_micros: int | None
    """What the requests of it and its sub-agents cost at list price, in millionths of a dollar; the least it can be
    where `unpriced` names models. Null where nobody knows."""
    unpriced: list[str]
    """Models whose price nobody knows."""
    cost_usd_micros: int | None
    """What its program said that it cost, in millionths of a dollar."""
    agents: list[PageAgent]
    """Who took part, its own agent first; at most 2,000."""
    changed: int | None
    """Deliveries that a hook changed, in a session log; null elsewhere, and where it is too long for that."""
    blocked: int | None
    """What hooks blocked, withheld or sent back; null as before."""
    lost: bool
    """Whether a repair found only a part of it."""
    partial: bool
    """Whether not all rows were counted: there are more than `rows`. Only where it was wanted soon."""
    views: list[str]
    """Which views make sense: `transcript`, `lanes`, `commits`, `stats`, `agents` and `flow` where several speak,
    `document` for a session document."""


@crosses
def session_page(repo: Repo, request: SessionPageRequest) -> SessionPage:
    """The head of a session: title, times, numbers, price, agents, and what can be done with it."""
    transcripts = repo.transcripts
    opened = transcripts.open(request.session, first=0 if request.soon else None)
    if not opened.layout.is_whole and transcripts.tells_agents(opened):
        opened = transcripts.open(request.session)  # who takes part stands anywhere in it
    row = opened.row
    below = transcripts.children(row)
    resumed = begun_elsewhere([row]) | repo.resumed_sessions()
    origin = resumed.get(row.session)
    figures, price, calls = _figures(repo, opened, below, request.prices)
    agents = _agents(repo, opened, below, calls)
    changed, blocked = transcripts.interventions(opened, READABLE)
    told = masks(mask=request.mask)
    known = transcripts.format_of(opened)
    return SessionPage(
        session=row.session,
        short=_short(repo, row),
        title=told.text(row.title) if told is not None else row.title,
        runtime=row.runtime,
        project=project_of(row) or None,
        started=stamp(row.started),
        ended=stamp(row.ended),
        active=stamp(max(row.ended or row.started or 0, origin.time if origin else 0) or None),
        running=_is_running(repo.clock(), (row, *below)) and not opened.earlier,
        tip=repo.shorts([row.stand]).get(row.stand) if row.stand else None,
        tip_id=row.stand or None,
        rows=len(opened.layout),
        parent=row.parent or None,
        parent_stored=bool(row.parent) and transcripts.has_session(row.parent),
        agent=row.agent or None,
        continues=(origin.session or None) if origin else None,
        continues_at=origin.commit if origin else None,
        continued_by=_continued_by(row, resumed),
        resumable=known is not None and bool(known.runtime) and "write" in known.can and bool(row.stand),
        figures=figures,
        price_usd_micros=price[0],
        unpriced=price[1],
        cost_usd_micros=row.cost_usd_micros,
        agents=agents,
        changed=changed,
        blocked=blocked,
        lost=row.lost,
        partial=not opened.layout.is_whole,
        views=_views(agents, row),
    )


def _short(repo: Repo, row: SessionRow) -> str:
    if row.parent:
        return row.session
    near = repo.transcripts.begins_like(row, SHORTEST)
    return beginnings(list({*near, row.session}))[row.session]


def _is_running(now: int, rows: tuple[SessionRow, ...]) -> bool:
    return any(row.ended is not None and now - RUNNING <= row.ended <= now + RUNNING for row in rows)


def _continued_by(row: SessionRow, resumed: dict[str, Continued]) -> list[str]:
    found = [(origin.time, name) for name, origin in resumed.items() if origin.session == row.session]
    return [name for _, name in sorted(found, key=lambda one: (-one[0], one[1]))]


def _views(agents: list[PageAgent], row: SessionRow) -> list[str]:
    several = ["agents", "flow"] if len(agents) > 1 else []
    return [
        "transcript",
        "lanes",
        "commits",
        "stats",
        *several,
        *(["document"] if row.runtime.startswith("std-") else []),
    ]


_Price = tuple[int | None, list[str]]


def _figures(
    repo: Repo, opened: OpenTranscript, below: list[SessionRow], price_file: str
) -> tuple[PageFigures, _Price, dict[str, int | None]]:
    """Numbers, price, and the calls of each session; empty where the index cannot tell."""
    from harken.index.session_figures import session_figures

    names = [each.session for each in below]
    prices = read_price_file(price_file)
    try:
        found = session_figures(repo.index, opened.row.session, names, prices)
        is_small = opened.layout.is_whole and len(opened.layout) <= SMALL
        if found.stale and is_small and repo.index.count_stale() <= 1 + len(below):
            repo.index.catch_up(seconds=1.0)
            found = session_figures(repo.index, opened.row.session, names, prices)
    except (HarkenError, OSError, sqlite3.Error):
        nothing = tokens_answer(Tokens())
        counts = dict.fromkeys(("prompts", "injected", "responses", "calls", "errors", "compactions"))
        return PageFigures(tokens=nothing, requests=0, models={}, stale=True, **counts), (None, []), {}
    counts = found.counts
    figures = PageFigures(
        tokens=tokens_answer(found.spending.tokens),
        requests=found.spending.requests,
        models={model: tokens_answer(tokens) for model, tokens in found.models.items()},
        prompts=counts.get("human"),
        injected=counts.get("injected"),
        responses=counts.get("responses"),
        calls=counts.get("calls"),
        errors=counts.get("errors"),
        compactions=counts.get("compactions"),
        stale=found.stale,
    )
    price = found.spending.price_usd_micros if found.models else None
    return figures, (price, sorted(found.spending.unpriced)), found.calls


def _agents(
    repo: Repo, opened: OpenTranscript, below: list[SessionRow], calls: dict[str, int | None]
) -> list[PageAgent]:
    transcripts, row = repo.transcripts, opened.row
    if transcripts.tells_agents(opened):
        return _agents_of_log(repo, opened, below)
    by_session = {each.session: each for each in (row, *below)}
    errands = transcripts.errands(below)
    found = [
        PageAgent(
            id=agent_name(row), name=agent_name(row), session=row.session, calls=calls.get(row.session), parent=None,
            call_id=transcripts.call_of(row) or None if row.parent else None,
        )
    ]  # fmt: skip
    for each in below[: MOST_AGENTS - 1]:
        above = by_session.get(each.parent, row)
        found.append(
            PageAgent(
                id=agent_name(each),
                name=errand_title(each.title, errands.get(each.session, "")) or agent_name(each),
                session=each.session,
                calls=calls.get(each.session),
                parent=agent_name(above),
                call_id=transcripts.call_of(each) or None,
            )
        )
    return found


def _agents_of_log(repo: Repo, opened: OpenTranscript, below: list[SessionRow]) -> list[PageAgent]:
    """The agents as the records tell of them; each with its chain, where it has one."""
    from harken.index.session_figures import calls_by_agent

    layout, transcripts = opened.layout, repo.transcripts
    chains = {agent_name(each): each.session for each in below}
    numbers = [at for at, letter in enumerate(layout.letters) if letter == "g"][:MOST_AGENTS]
    made: dict[str, AgentCreated] = {}
    for read in transcripts.some_rows(opened, numbers):
        if read.row is not None and isinstance(read.row.event, AgentCreated):
            made.setdefault(read.row.event.agent_id, read.row.event)
    try:
        calls = calls_by_agent(repo.index, sorted(layout.sessions))
    except (HarkenError, OSError, sqlite3.Error):
        calls = {}
    return [
        PageAgent(
            id=agent,
            name=event.name or agent,
            session=chains.get(agent),
            calls=calls.get(agent, 0),
            parent=event.parent or None,
            call_id=next(iter(event.causes()), None),
        )
        for agent, event in made.items()
    ]
