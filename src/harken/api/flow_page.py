"""Flow: who said what to whom, and what an agent knew at a moment; in ranges of rows.

The first question about a session reads all of it, since a word may have gone anywhere. What comes of that is a table
without records, which the next questions are answered from as long as the session stands where it stood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harken import clock
from harken.errors import BadRequest, NotFound
from harken.repo import Repo
from harken.store import SessionRow
from harken.views.flow_table import (
    BLOCKED,
    CHANGED,
    LEVELS,
    SPOKEN,
    FlowColumn,
    FlowReach,
    FlowRow,
    FlowTable,
    flow_table,
)

from .base import ApiAnswer, ApiRequest, stamp
from .crossing import crosses
from .following import check_range, family_of, stands
from .remembering import remembered

MOST_ROWS = 200
MOMENTS = 1000
"""Moments of the slider at most; what was changed or blocked is kept before others."""
SHOWN = 20
"""Things that an agent knew, or did not, that are listed."""
CHARACTERS_PER_TOKEN = 4


class FlowPageRequest(ApiRequest, frozen=True, kw_only=True):
    """Which part of a session's flow."""

    session: str
    """Its id, or a unique beginning; `SESSION/AGENT` for a sub-agent's."""
    start: int = 0
    """The first row that is wanted."""
    count: int = 100
    """How many rows, up to 200."""
    tools: str = "none"
    """`none` for what people and agents said; `some` for calls and what programs put in between, too; `all` for
    everything that happened."""
    agents: tuple[str, ...] = ()
    """Only what one of these said, did or heard, by id or by a name that only one has; empty for all."""


class FlowColumnAnswer(ApiAnswer, frozen=True, kw_only=True):
    """An agent, as a column."""

    agent: str
    """Its id, the same in every view; empty for whoever is outside the session."""
    name: str
    """What it is called."""
    letters: str
    """One or two letters that no other column has, as far as possible."""
    role: str
    """`outside`, `root`, `child`, or empty where nobody said."""
    parent: str | None
    """The agent that made it."""
    model: str
    """The model it speaks with; empty where nobody said."""
    knows: int
    """How many things that were said it knows at the end: said, heard, or read in a result."""
    begins: int
    """The number of the first row in which it takes part, among those that are asked for; -1 where there is none."""


class HearerAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Somebody to whom something came."""

    agent: str
    """The hearer."""
    how: str
    """`verbatim`; `named` (the speaker's name was put before it); `result` (in the result of a tool); `changed` (by a
    hook); `blocked` (it did not arrive)."""
    message_id: str
    """The entry in the hearer's transcript; where it was blocked, the refusal."""
    time: str | None
    """When."""
    heard: str
    """The words that were heard, where they are others; else empty."""
    diff: list[tuple[str, str]]
    """How these differ from what was said: `same`, `removed` or `added`, and the words."""
    words: int
    """How many words went or came."""
    hook: str
    """The hook that changed or blocked it, where the session says so."""


class FlowRowAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something that was said, made or done."""

    n: int
    """Its number among those that are asked for."""
    kind: str
    """`spoken`, `injected` (by a program), `made` (agents), `call`, `result`, `thinking` or `other`."""
    time: str | None
    """When."""
    speaker: str
    """Who; empty for whoever is outside the session."""
    source: str
    """Where it came from if no agent said it: `user` or `initial` (a person), `injected` (a program), empty where
    nobody knows."""
    text: str
    """What was said or done; its first 2,000 characters."""
    cut: int
    """Characters that were left out."""
    message_id: str
    """The message."""
    hearers: list[HearerAnswer]
    """Those to whom it came."""
    made: list[str]
    """Agents that were made."""
    failed: bool
    """Whether a call failed."""


class FlowPageAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A part of a session's flow."""

    session: str
    """The session's id."""
    columns: list[FlowColumnAnswer]
    """The agents: whoever is outside first, then from the root down the tree."""
    rows: list[FlowRowAnswer]
    """The rows that were asked for."""
    total: int
    """How many there are."""
    spoken: int
    """How many things were said in the session."""
    everything: int
    """How many rows `all` would have."""
    changed: int
    """Deliveries that a hook changed."""
    blocked: int
    """Those that were blocked, withheld or sent back."""
    first: str | None
    """When the first of all rows was."""
    last: str | None
    """When the last was."""
    moments: list[tuple[int, int, str, str]]
    """For a slider: the time of a thing said in microseconds since 1970, the number of its row, who said it, and
    `changed`, `blocked` or nothing; at most a thousand."""


@crosses
def flow_page(repo: Repo, request: FlowPageRequest) -> FlowPageAnswer:
    """Who said what to whom: columns of agents, and a range of rows."""
    check_range(request.start, request.count, MOST_ROWS)
    row, table = _table(repo, request.session)
    rows = _chosen(table, request.tools, request.agents)
    shown = rows[request.start : request.start + request.count]
    times = [one.time for one in rows if one.time is not None]
    return FlowPageAnswer(
        session=row.session,
        columns=_columns(table, rows),
        rows=[_row(request.start + number, one) for number, one in enumerate(shown)],
        total=len(rows),
        spoken=sum(one.kind == SPOKEN for one in table.rows),
        everything=len(table.rows),
        changed=table.changed,
        blocked=table.blocked,
        first=stamp(min(times, default=None)),
        last=stamp(max(times, default=None)),
        moments=_moments(rows),
    )


def flow_levels() -> dict[str, tuple[str, ...]]:
    """What `tools` may be, and the kinds of rows that each has; none for all of them."""
    return {level: tuple(kinds) for level, kinds in LEVELS.items()}


def _own_chain(repo: Repo, session: str, agent: str) -> str:
    """The session of an agent's own lines: a log's main chain has those of all, and the main agent's context."""
    row, below = family_of(repo, session)
    return next((one.session for one in below if one.session == f"{row.session}/{agent}"), row.session)


def _table(repo: Repo, session: str) -> tuple[SessionRow, FlowTable]:
    row, below = family_of(repo, session)
    key = (row.session, stands([row, *below]))
    return row, remembered(repo, "flow", key, lambda: flow_table(repo.view(row.session).index), most=4)


def _chosen(table: FlowTable, tools: str, agents: Sequence[str]) -> list[FlowRow]:
    if tools not in LEVELS:
        raise BadRequest(f"no kind of rows {tools!r}", hint=f"one of {', '.join(LEVELS)}")
    kinds = LEVELS[tools]
    wanted = {_agent(table, one) for one in agents}
    return [
        row
        for row in table.rows
        if (not kinds or row.kind in kinds)
        and (not wanted or row.speaker in wanted or any(one.agent in wanted for one in row.reached))
    ]


def _agent(table: FlowTable, text: str) -> str:
    """The agent of this id, or the only one of this name."""
    if any(column.agent == text for column in table.columns):
        return text
    named = [column.agent for column in table.columns if column.name.casefold() == text.casefold()]
    if len(named) != 1:
        known = ", ".join(f"{column.agent or 'nobody'} ({column.name})" for column in table.columns[:20])
        raise NotFound(f"no agent {text!r:.80} in this session", hint=f"the agents are {known}")
    return named[0]


def _columns(table: FlowTable, rows: Sequence[FlowRow]) -> list[FlowColumnAnswer]:
    known: Counter[str] = Counter()
    for row in table.rows:
        if row.kind == SPOKEN:
            known.update({one.agent for one in row.reached if one.how != BLOCKED} | {row.speaker})
    begins: dict[str, int] = {}
    for number, row in enumerate(rows):
        for agent in (row.speaker, *row.made, *(one.agent for one in row.reached)):
            begins.setdefault(agent, number)
    letters = _letters(table.columns)
    return [
        FlowColumnAnswer(
            agent=column.agent,
            name=column.name,
            letters=letters[column.agent],
            role=column.role,
            parent=column.parent,
            model=column.model,
            knows=known[column.agent],
            begins=begins.get(column.agent, -1),
        )
        for column in table.columns
    ]


def _letters(columns: Sequence[FlowColumn]) -> dict[str, str]:
    """The first letter of a name; the first two where another begins with the same, else its first and a number."""
    firsts = Counter(_letter(column.name)[:1] for column in columns)
    found: dict[str, str] = {}
    for column in columns:
        one = _letter(column.name)
        letters = one[:1] if firsts[one[:1]] == 1 else one[:2]
        number = 2
        while letters in found.values():
            letters, number = f"{one[:1]}{number}", number + 1
        found[column.agent] = letters
    return found


def _letter(name: str) -> str:
    plain = "".join(sign for sign in name if sign.isalnum()) or "?"
    return plain[:1].upper() + plain[1:2].lower()


def _row(number: int, row: FlowRow) -> FlowRowAnswer:
    return FlowRowAnswer(
        n=number,
        kind=row.kind,
        time=stamp(row.time),
        speaker=row.speaker,
        source=row.source,
        text=row.text,
        cut=row.cut,
        message_id=row.message,
        hearers=[_hearer(one) for one in row.reached if one.how != "said"],
        made=list(row.made),
        failed=row.failed,
    )


def _hearer(one: FlowReach) -> HearerAnswer:
    return HearerAnswer(
        agent=one.agent,
        how=one.how,
        message_id=one.message,
        time=stamp(one.time),
        heard=one.heard,
        diff=list(one.pieces),
        words=max((sum(len(text.split()) for op, text in one.pieces if op == side) for side in _SIDES), default=0),
        hook=one.hook,
    )


_SIDES = ("removed", "added")


def _moments(rows: Sequence[FlowRow]) -> list[tuple[int, int, str, str]]:
    found = []
    for number, row in enumerate(rows):
        if row.kind == SPOKEN and row.time is not None:
            how = {one.how for one in row.reached}
            found.append((row.time, number, row.speaker, next((one for one in (BLOCKED, CHANGED) if one in how), "")))
    if len(found) <= MOMENTS:
        return found
    marked = [one for one in found if one[3]][:MOMENTS]
    room = MOMENTS - len(marked)
    others = [one for one in found if not one[3]]
    return sorted([*marked, *(others[place * len(others) // room] for place in range(room))])


# -- what an agent knew ------------------------------------------------------------------------------------------------


class FlowKnowsRequest(FlowPageRequest, frozen=True, kw_only=True):
    """What an agent knew, over the same rows as `flow_page` gives for the same request."""

    agent: str
    """The agent, by id or by a name that only one of them has."""
    at: str = ""
    """The moment: RFC 3339, microseconds since 1970, or the last message that counts; empty for the end."""


class KnownRow(ApiAnswer, frozen=True, kw_only=True):
    """A row as the agent knew it."""

    n: int
    """The number of the row."""
    message_id: str
    """The message."""
    knew: str
    """`said` (or did), `heard`, `read` (in the result of a tool), `later` (it came to know it after the moment),
    `never`, or `after` where it had not happened yet; empty for what is nobody's words, such as another's call."""
    how: str
    """As in the flow, for what it heard; empty else."""
    time: str | None
    """When it came to know it; null where it did not."""


class KnownThing(ApiAnswer, frozen=True, kw_only=True):
    """Something that was said."""

    message_id: str
    """The message."""
    speaker: str
    """Who said it; empty for whoever is outside."""
    text: str
    """What was said, or what of it was heard."""
    how: str
    """How the agent knew it, as in the flow; of what it did not know `blocked`, `changed` (some words were kept from
    it), or empty."""
    told: list[str]
    """Of what it did not know: who was told."""
    time: str | None
    """When it came to know it; of what it did not know, when it was said."""


class FlowKnowsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What an agent knew at a moment."""

    session: str
    """The session's id."""
    agent: str
    """The agent's id."""
    name: str
    """What it is called."""
    at: str | None
    """The moment; null where nothing before it has a time."""
    rows: list[KnownRow]
    """The rows that were asked for."""
    total: int
    """How many rows there are."""
    knew: int
    """How many of the things said it knew."""
    said: int
    """How many of these it said itself."""
    heard: int
    """How many it heard or read."""
    by: dict[str, int]
    """The same by who said it: agents' ids, empty for whoever is outside."""
    changed: int
    """How many of these reached it in other words."""
    missed: int
    """How many things had been said that it did not know."""
    tokens: int
    """About how many tokens what it knew has."""
    newest: list[KnownThing]
    """What it came to know last, the newest first; at most 20."""
    unknown: list[KnownThing]
    """What it did not know, the newest first; at most 20."""
    ref: str
    """What to fork from to talk to it as it was: `SESSION@MESSAGE` of its last entry (`SESSION/AGENT@MESSAGE` where the
    agent has a chain of its own); empty where it had none."""


@crosses
def flow_knows(repo: Repo, request: FlowKnowsRequest) -> FlowKnowsAnswer:
    """What an agent knew at a moment: of each row of a range whether, and altogether how much."""
    check_range(request.start, request.count, MOST_ROWS)
    row, table = _table(repo, request.session)
    agent = _agent(table, request.agent)
    instant = clock.parse_instant(request.at)
    until = table.until(request.at if instant is None else str(instant))
    rows = _chosen(table, request.tools, request.agents)
    shown = rows[request.start : request.start + request.count]
    said = [one for one in table.rows if one.kind == SPOKEN and one.position < until]
    known = [(reach, one) for one in said if (reach := table.known_to(one, agent, until)) is not None]
    known.sort(key=lambda pair: pair[0].position)
    missed = [one for one in said if table.known_to(one, agent, until) is None]
    own = [reach for reach, _ in known if reach.how == "said"]
    last = next((reach.message for reach, _ in reversed(known) if reach.message), "")
    return FlowKnowsAnswer(
        session=row.session,
        agent=agent,
        name=next(column.name for column in table.columns if column.agent == agent),
        at=stamp(table.times[until - 1] or None) if until else None,
        rows=[_known_row(table, request.start + number, one, agent, until) for number, one in enumerate(shown)],
        total=len(rows),
        knew=len(known),
        said=len(own),
        heard=len(known) - len(own),
        by=dict(Counter(one.speaker for _, one in known).most_common()),
        changed=sum(reach.how == CHANGED for reach, _ in known),
        missed=len(missed),
        tokens=sum(len(reach.heard or one.text) + one.cut for reach, one in known) // CHARACTERS_PER_TOKEN,
        newest=[_thing(one, reach) for reach, one in known[::-1][:SHOWN]],
        unknown=[_unknown(one, agent) for one in missed[::-1][:SHOWN]],
        ref=f"{_own_chain(repo, row.session, agent)}@{last}" if last else "",
    )


def _known_row(table: FlowTable, number: int, row: FlowRow, agent: str, until: int) -> KnownRow:
    reach = table.known_to(row, agent, until)
    ever = reach or table.known_to(row, agent, len(table.times))
    if row.position >= until:
        knew = "after"
    elif row.speaker == agent:
        knew = "said"
    elif not row.reached:
        knew = ""
    elif reach is None:
        knew = "never" if ever is None else "later"
    else:
        knew = {"said": "said", "result": "read"}.get(reach.how, "heard")
    heard = reach is not None and reach.how != "said"
    return KnownRow(
        n=number,
        message_id=row.message,
        knew=knew,
        how=reach.how if reach is not None and heard else "",
        time=stamp(ever.time) if ever is not None and knew != "after" else None,
    )


def _thing(row: FlowRow, reach: FlowReach) -> KnownThing:
    return KnownThing(
        message_id=row.message,
        speaker=row.speaker,
        text=reach.heard or row.text,
        how=reach.how,
        told=[],
        time=stamp(reach.time),
    )


def _unknown(row: FlowRow, agent: str) -> KnownThing:
    blocked = any(one.agent == agent and one.how == BLOCKED for one in row.reached)
    told = [one.agent for one in row.reached if one.how not in ("said", BLOCKED)]
    return KnownThing(
        message_id=row.message,
        speaker=row.speaker,
        text=row.text,
        how=BLOCKED if blocked else "",
        told=list(dict.fromkeys(told)),
        time=stamp(row.time),
    )


# -- where a message stands --------------------------------------------------------------------------------------------


class FlowPlaceRequest(ApiRequest, frozen=True, kw_only=True):
    """Which message to look for, among the rows that `flow_page` gives for the same request."""

    session: str
    """Its id, or a unique beginning; `SESSION/AGENT` for a sub-agent's."""
    message: str
    """The message, or one that somebody heard of it."""
    tools: str = "none"
    """As in `flow_page`."""
    agents: tuple[str, ...] = ()
    """As in `flow_page`."""


class FlowPlaceAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Where a message stands in a flow."""

    session: str
    """The session's id."""
    n: int
    """The number of its row; of the row that brought it to somebody, where it is one that was heard."""
    total: int
    """How many rows there are."""


@crosses
def flow_place(repo: Repo, request: FlowPlaceRequest) -> FlowPlaceAnswer:
    """The number of the row of a message, or of the row that somebody heard by it."""
    session, table = _table(repo, request.session)
    rows = _chosen(table, request.tools, request.agents)
    said = (number for number, row in enumerate(rows) if row.message == request.message)
    heard = (number for number, row in enumerate(rows) if any(one.message == request.message for one in row.reached))
    found = next(said, None)
    if found is None:
        found = next(heard, None)
    if found is None:
        raise NotFound(f"no row of message {request.message!r:.80}", hint="`tools` all has more rows")
    return FlowPlaceAnswer(session=session.session, n=found, total=len(rows))
