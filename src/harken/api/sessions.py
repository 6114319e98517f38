"""The sessions in the store, and the agents that took part in one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harken import clock, ids
from harken.context import project_of
from harken.context.chains import in_project, is_unused
from harken.context.names import Continued, begun_elsewhere
from harken.errors import BadRequest, Corrupt, NotFound, PartlyCorrupt
from harken.repo import Repo
from harken.repo.numbers import indexed_costs
from harken.store import SessionRow

from .base import ApiAnswer, ApiRequest, OneSessionRequest, instant, stamp
from .crossing import crosses
from .following import family_of
from .remembering import remembered

if TYPE_CHECKING:
    from harken.index import IndexProgress
    from harken.index.spending import Spending

SHORTEST = 8
"""Characters of an id that are shown at least."""


class SessionsRequest(ApiRequest, frozen=True, kw_only=True):
    """Which sessions to list."""

    prefix: str = ""
    """Those whose id begins like this; empty for all."""
    runtime: str = ""
    """Those of this runtime; empty for all."""
    top: bool = False
    """Whether to leave out the sessions of sub-agents."""
    since: str = ""
    """Those in which something happened since this instant (RFC 3339); empty for all."""
    project: str = ""
    """Those that worked in this folder or one below it; without a slash, in a folder of this name. Empty for all."""
    unused: bool = True
    """Whether to list sessions that Harken wrote to continue a conversation and that nobody has used."""
    limit: int | None = None
    """At most so many, each with the sessions of its sub-agents."""
    costs: bool = False
    """Whether to say what each costs at list price, for which the index is asked."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""
    match: str = ""
    """Those with this text in the title or the file's path, in any case of letters; empty for all."""


class SessionAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A session."""

    session: str
    """Its id."""
    short: str
    """A beginning of its id that no other session in the store has; of a sub-agent's, all of it."""
    runtime: str
    """The program that held it."""
    title: str
    """What it is called, or its first words; empty where nobody knows."""
    tip: str | None
    """The short name of its newest commit."""
    tip_id: str | None
    """The full name of that commit."""
    started: str | None
    """When it began."""
    ended: str | None
    """When its newest record was written."""
    active: str | None
    """When something last happened in it: its newest record, or Harken's writing it to continue a conversation."""
    messages: int
    """Prompts and responses of the session as it stands: not those of older tips (`SESSION~1`), nor of a conversation
    that it was handed down, nor of agents inside its file, which have rows of their own. `stats` counts what was said
    in every version, each record once."""
    parent: str | None
    """The session that spawned it, for a sub-agent."""
    agent: str | None
    """The agent it belongs to, for a sub-agent."""
    continues: str | None
    """The session it goes on from, where Harken wrote it to do so."""
    continues_at: str | None
    """The full name of the commit it goes on from."""
    continued_by: list[str]
    """The sessions that Harken wrote to go on from it, the newest first."""
    unused: bool
    """Whether Harken wrote it to continue a conversation, and nothing was added to it since."""
    source: str | None
    """The file it was read from."""
    project: str | None
    """The folder that was worked in, as its first record says that names one."""
    older: list[str]
    """The short names of its older tips, `SESSION~1` first."""
    template: str | None
    """This and the next four are what a run said of itself."""
    principal: str | None
    """Who ran it, where a run said so."""
    machine: str | None
    """Where it ran."""
    ticket_id: str | None
    """The ticket that was worked on."""
    thread_id: str | None
    """The thread it is part of."""
    cost_usd_micros: int | None
    """What it cost, sub-agents of its process included, in millionths of a dollar, where anybody said."""
    price_usd_micros: int | None
    """What its requests and those of its sub-agents cost at list price, in millionths of a dollar, each counted where
    it was made; the least it can be where `unpriced` names models. Null where nobody knows, or nobody asked (`costs`),
    and for a sub-agent, which counts with its session."""
    unpriced: list[str]
    """Models whose price nobody knows."""
    lost: bool
    """Whether a repair found only a part of it, and no import has brought back the rest; `messages` counts all."""


def _check_runtime(name: str, rows: Iterable[SessionRow]) -> None:
    """Refuse a runtime that nobody knows; the store may hold sessions of one that is no longer installed."""
    if name and all(row.runtime != name for row in rows):
        from harken.runtimes import get  # only where there is nothing to show

        get(name)


class _Listed(NamedTuple):
    """What the rows of sessions do not say of them; each by its id."""

    tops: Collection[str]
    """Those that count with no other: sessions, and sub-agents whose session is not in the store."""
    names: Mapping[str, str]
    """A beginning of each id that no other has; not of sub-agents."""
    resumed: Mapping[str, Continued]
    """Those that Harken wrote to continue a conversation, and what each goes on from."""
    continued: Mapping[str, list[str]]
    """Session to those that go on from it, the newest first."""
    active: Mapping[str, int]
    """When something last happened in each."""
    unused: Collection[str]
    """Those that Harken wrote, and nobody has used."""


@crosses
def sessions(
    repo: Repo, request: SessionsRequest, *, note: Callable[[str], None] | None = None
) -> Iterator[SessionAnswer]:
    """The sessions in the store, the last active first; a sub-agent's stands below the session that spawned it. `note`
    is told where the index cannot say what they cost; where damage is why, that is an error behind the list."""
    return list_sessions(repo, request, lambda: session_costs(repo, request, note or (lambda _: None), None))


class SessionCosts(NamedTuple):
    """What sessions cost."""

    spent: Mapping[str, Spending]
    damaged: int
    """Of how many parts of the store that cannot be known."""


def list_sessions(
    repo: Repo, asked: SessionsRequest, find_costs: Callable[[], SessionCosts]
) -> Iterator[SessionAnswer]:
    """The same, with what they cost as whoever asks finds it."""
    since = instant(asked.since) or 0
    problem = None
    try:
        rows = repo.sessions(asked.prefix)
    except PartlyCorrupt as found:  # told when the others have been
        rows, problem = found.rest, found
    # Whose parent is left out by the prefix has one all the same.
    every = repo.chains.rows() if asked.prefix and asked.top else rows
    listed = _listed(rows, begun_elsewhere(rows) | repo.resumed_sessions(), every)
    _check_runtime(asked.runtime, rows)
    chosen = [row for row in _ordered(rows, listed.active) if _is_meant(row, asked, listed, since)]
    chosen = _first(chosen, asked.limit)
    costs, damaged = find_costs()
    shorts = repo.shorts({tip for row in chosen for tip in (row.tip, row.live, *row.older) if tip})
    for row in chosen:
        yield _answer(row, listed, shorts, costs.get(row.session))
    if problem is not None:
        raise problem
    if damaged:
        parts = "1 part" if damaged == 1 else f"{damaged:,} parts"
        told = f"what sessions cost is not all known: {parts} of the store cannot be read"
        raise Corrupt(told, hint="`harken index --status` names them, `harken fsck` says what is lost")


def _listed(rows: Sequence[SessionRow], resumed: Mapping[str, Continued], every: Sequence[SessionRow]) -> _Listed:
    tops = ids.tops({row.session: row.parent for row in every})
    return _Listed(
        tops={session for session, top in tops.items() if session == top},
        names=beginnings([row.session for row in rows if not row.parent]),
        resumed=resumed,
        continued=_continued(resumed),
        active={row.session: max(_last(row), _resumed_at(row, resumed)) for row in rows},
        unused={row.session for row in rows if row.session in resumed and is_unused(row, resumed[row.session].prefix)},
    )


def _resumed_at(row: SessionRow, resumed: Mapping[str, Continued]) -> int:
    return resumed[row.session].time if row.session in resumed else 0


def _is_meant(row: SessionRow, request: SessionsRequest, listed: _Listed, since: int) -> bool:
    return (
        request.runtime in ("", row.runtime)
        and (not request.top or row.session in listed.tops)
        and (request.unused or row.session not in listed.unused)
        and listed.active[row.session] >= since
        and (not request.project or in_project(project_of(row), request.project))
        and request.match.casefold() in f"{row.title}\n{row.source}".casefold()
    )


def _answer(row: SessionRow, listed: _Listed, shorts: Mapping[str, str], spending: Spending | None) -> SessionAnswer:
    origin = listed.resumed.get(row.session)
    return SessionAnswer(
        session=row.session,
        short=listed.names.get(row.session, row.session),
        runtime=row.runtime,
        title=row.title,
        tip=shorts.get(row.stand),
        tip_id=row.stand or None,
        started=stamp(row.started),
        ended=stamp(row.ended),
        active=stamp(listed.active[row.session] or None),
        messages=row.messages,
        parent=row.parent or None,
        agent=row.agent or None,
        continues=(origin.session or None) if origin else None,
        continues_at=origin.commit if origin else None,
        continued_by=listed.continued.get(row.session, []),
        unused=row.session in listed.unused,
        source=row.source or None,
        project=project_of(row) or None,
        older=[shorts[tip] for tip in row.older if tip in shorts],
        template=row.template or None,
        principal=row.principal or None,
        machine=row.machine or None,
        ticket_id=row.ticket_id or None,
        thread_id=row.thread_id or None,
        cost_usd_micros=row.cost_usd_micros,
        price_usd_micros=spending.price_usd_micros if spending else None,
        unpriced=sorted(spending.unpriced) if spending else [],
        lost=row.lost,
    )


def beginnings(sessions: Sequence[str]) -> dict[str, str]:
    """For each id the shortest beginning, of at least eight characters, that no other has."""
    ordered = sorted(sessions)
    found = {}
    for before, one, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_shared(one, before), _shared(one, after))
        found[one] = one[: max(SHORTEST, shared + 1)]
    return found


def _shared(one: str, other: str) -> int:
    """How many first characters two ids have in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _first(rows: list[SessionRow], limit: int | None) -> list[SessionRow]:
    """The first so many, with what stands below them."""
    listed = {row.session for row in rows}
    tops = [at for at, row in enumerate(rows) if row.parent not in listed]
    return rows if limit is None or limit >= len(tops) else rows[: tops[limit]]


def session_costs(
    repo: Repo, asked: SessionsRequest, note: Callable[[str], None], at: IndexProgress | None
) -> SessionCosts:
    """What each session cost; nothing where the index cannot tell: the list is there without it. `at` is how far that
    has come, where whoever asks has just let it follow the store."""
    damaged = 0
    if not asked.costs or repo.damage:
        return SessionCosts({}, damaged)

    def reached(progress: IndexProgress) -> None:
        nonlocal damaged
        damaged = progress.damaged
        if progress.behind or progress.stale:
            note("the index is not up to date, so what sessions cost is not all known; `harken index` mends that")

    try:
        if at is None:
            return SessionCosts(repo.session_costs(prices=asked.prices, reached=reached), damaged)
        reached(at)
        return SessionCosts(indexed_costs(repo.index, asked.prices), damaged)
    except (BadRequest, NotFound):  # the file of prices is wrong
        raise
    except Exception as problem:  # noqa: BLE001 -- whatever is wrong with what can be made again
        note(f"what sessions cost is not known, the index fails: {problem}")
        return SessionCosts({}, damaged)


def _continued(resumed: Mapping[str, Continued]) -> dict[str, list[str]]:
    """Session to those that go on from it, the newest first."""
    found: dict[str, list[str]] = {}
    for session, origin in sorted(resumed.items(), key=lambda item: (-item[1].time, item[0])):
        found.setdefault(origin.session, []).append(session)
    return found


def _last(row: SessionRow) -> int:
    last = row.ended if row.ended is not None else row.started
    return last if last is not None and clock.in_calendar(last) else 0


def _ordered(rows: Sequence[SessionRow], active: Mapping[str, int]) -> list[SessionRow]:
    """The last active first, and each sub-agent below the one that made it, however deep."""
    tops = ids.tops({row.session: row.parent for row in rows})
    below: dict[str, list[SessionRow]] = {}
    for row in sorted(rows, key=lambda row: (-active[row.session], row.session), reverse=True):
        below.setdefault("" if tops[row.session] == row.session else row.parent, []).append(row)
    found = []
    waiting = below.get("", [])
    while waiting:
        row = waiting.pop()
        found.append(row)
        waiting += below.get(row.session, [])
    return found


class AgentsRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Whose agents to list: those of a session in the store, or of its file."""


class AgentAnswer(ApiAnswer, frozen=True, kw_only=True):
    """An agent of a session."""

    agent: str
    """Its id, the same in every view; the main agent of another runtime's session is called after the runtime."""
    name: str
    """What it is called; empty where it has no name."""
    title: str
    """What its chain is called; of one without a name what the call that made it says in a few words, or its first
    words; empty where nobody knows."""
    session: str | None
    """The name of its chain in the store."""
    tip: str | None
    """The short name of its newest commit."""
    parent: str | None
    """The agent that made it."""
    messages: int
    """Prompts and responses of its transcript."""
    role: str
    """`root`, `child` or `hook`, as far as a log says."""
    language_model: str
    """The model it speaks with: as a log says, else that of its last answer which names one."""
    terminated: bool
    """Whether it was terminated."""


@crosses
def agents(repo: Repo, request: AgentsRequest) -> Iterator[AgentAnswer]:
    """The agents of a session, its own first."""
    place = request.place()
    if isinstance(place, str):
        row, below = family_of(repo, place)
        key = tuple((each.session, each.stand, each.title) for each in (row, *below))
        found = remembered(repo, "agents", key, lambda: repo.agents(row.session), most=4)
    else:
        found = repo.agents(place)
    shorts = repo.shorts({each.tip for each in found if each.tip})
    for each in found:
        yield AgentAnswer(
            agent=each.agent,
            name=each.name,
            title=each.title,
            session=each.session or None,
            tip=shorts.get(each.tip),
            parent=each.parent or None,
            messages=each.messages,
            role=each.role,
            language_model=each.language_model,
            terminated=each.terminated,
        )
