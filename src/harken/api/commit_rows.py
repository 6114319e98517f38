"""Commits as rows of a drawing: what happened, who did it, how much it holds, and in which columns the lines run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harken.analytics.deltas import DeltaFacts, facts_of, together
from harken.context import Shown, agent_name
from harken.errors import BadRequest, HarkenError
from harken.ids import COMMIT_FULL as FULL
from harken.index.glances import commit_letters
from harken.repo import Repo
from harken.store import Commit, SessionRow
from harken.views.graph import PlacedCommit, place
from harken.views.graph_folds import FoldedRun, folded, unfolded

from .base import ApiAnswer, ApiRequest, stamp
from .continuations import with_continuations
from .crossing import crosses
from .following import check_range
from .remembering import remembered

MOST_ROWS = 500
FACTS = 50_000
"""Of how many commits the facts are held in memory: they never change."""


class CommitRowsRequest(ApiRequest, frozen=True, kw_only=True):
    """Which commits, and which rows of them."""

    ref: str = ""
    """A commit of the tree that is wanted; empty for every commit of the store."""
    session: str = ""
    """A session whose tree is wanted, in place of a commit."""
    start: int = 0
    """The first row that is wanted; 0 is the newest."""
    limit: int = 200
    """How many rows, up to 500."""
    folded: bool = True
    """Whether runs of commits without a prompt are one row."""
    straight: bool = False
    """Whether to give only the chain behind the commit, without what branches off from it."""
    superseded: bool = False
    """Whether to give tails that a grown file has superseded, too."""


class CommitRow(ApiAnswer, frozen=True, kw_only=True):
    """One row: a commit, or a run of them."""

    n: int
    """Its number; 0 is the newest."""
    kind: str
    """`turn`, `compaction`, `snapshot`, or `folded` for a run of commits without a prompt."""
    ids: list[str]
    """The full names of its commits, the newest first; of a long run its first and its last hundred."""
    commits: int
    """How many commits it stands for."""
    short: str
    """The short name of its newest commit."""
    text: str
    """What happened: the first words of the prompt, else of the answer, else a line about it."""
    said_by: str
    """Whose words those are: `prompt`, `answer`, `injected`, `summary` (somebody wrote it), or empty."""
    answer: str
    """The first words of the last answer, where `text` is something else."""
    tools: list[tuple[str, int]]
    """Tools that were called, and how often; the most used first."""
    prompts: int
    """How often a person spoke."""
    calls: int
    """Calls of tools."""
    failed: int
    """How many of these failed."""
    thoughts: int
    """Blocks of thinking."""
    before: int | None
    """Of a compaction: tokens before it; null where nobody knows."""
    after: int | None
    """Tokens behind it; null where nobody knows."""
    folded_messages: int | None
    """Of a compaction: prompts and responses that it folded into a summary."""
    record: str
    """The record of the compaction, for `compaction`; empty for others."""
    carried: int | None
    """Of the first commit of a conversation that goes on from another: the messages it was handed; of a snapshot those
    it holds."""
    continues: str
    """The short name of the commit that it goes on from in another session; empty for none."""
    continued_by: list[str]
    """The sessions that Harken wrote to go on from here."""
    session: str
    """The session it belongs to; empty where none was named."""
    runtime: str
    """The program that held it."""
    agent: str
    """Whose commit it is: the agent's name, or the runtime's for a session's own."""
    spawned: bool
    """Whether it belongs to a sub-agent."""
    held: int | None
    """Tokens that the conversation held there, as the model's provider counted; null where nobody did."""
    held_here: bool
    """Whether that was counted in this row, and not in an older one of its chain."""
    messages: int | None
    """Prompts and responses in it; null where nobody counted."""
    time: str | None
    """When its newest commit was made."""
    names: list[str]
    """The branches and tags that point at it."""
    superseded: bool
    """Whether a grown file has put another commit in its place."""
    unread: str
    """Why what happened is not known; empty where it is."""
    column: int
    """In which column its mark stands, counted from 0 at the left."""
    width: int
    """How many columns its row has."""
    above: list[tuple[int, int]]
    """The lines between the row above and this one: from which column of that to which column of this."""
    parent: str
    """The full name of the commit its line leads to; empty where it ends."""
    parent_spawned: bool
    """Whether that line leads into another chain: to where a sub-agent was spawned, or, where `continues` names it, to
    what it goes on from."""


class CommitRowsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Rows of a drawing, newest first."""

    rows: list[CommitRow]
    """The rows that were asked for."""
    more: bool
    """Whether there are older ones."""
    total: int | None
    """How many rows there are; null where not all were looked at."""
    commits: int | None
    """How many commits these stand for; null where not all were looked at."""
    tip: str
    """The full name of the commit that was asked for; empty where none was."""


_PlacedRun = PlacedCommit[FoldedRun[Commit]]


class _Listing(NamedTuple):
    """The rows of a drawing from the newest on, before they are described."""

    rows: list[_PlacedRun]
    complete: bool
    commits: int


@crosses
def commit_rows(repo: Repo, request: CommitRowsRequest) -> CommitRowsAnswer:
    """Commits with the columns of the drawing, as `log --graph` has them."""
    check_range(request.start, request.limit, MOST_ROWS)
    tip = _tip(repo, request)
    end = request.start + request.limit
    listing = _listed(repo, request, tip, end + 1)
    return CommitRowsAnswer(
        rows=_described(repo, listing, request.start, end),
        more=len(listing.rows) > end or not listing.complete,
        total=len(listing.rows) if listing.complete else None,
        commits=listing.commits if listing.complete else None,
        tip=tip,
    )


def _tip(repo: Repo, asked: CommitRowsRequest) -> str:
    if asked.ref and asked.session:
        raise BadRequest("name a commit or a session, not both", hint="give one of the two")
    if asked.session:
        return repo.chains.family(asked.session)[0].stand
    if asked.straight and not asked.ref:
        raise BadRequest("which chain?", hint="name a commit or a session")
    return repo.commit(asked.ref).id if asked.ref else ""


def _listed(repo: Repo, asked: CommitRowsRequest, tip: str, wanted: int) -> _Listing:
    """At least so many rows, if there are. What was laid out once serves the next question as long as nothing changes;
    where more is wanted, more is laid out than that, so that scrolling on does not begin anew each time."""
    size = wanted * (8 if asked.folded else 1)
    while True:
        key = (repo.chains.version, tip, asked.folded, asked.straight, asked.superseded)
        held: dict[str, _Listing] = remembered(repo, "commit rows", key, dict, most=6)
        known = held.get("")
        if known is None or not (known.complete or len(known.rows) >= wanted):
            known = held[""] = _lay_out(repo, asked, tip, size)
        if known.complete or len(known.rows) >= wanted:
            return known
        size *= 4


def _lay_out(repo: Repo, asked: CommitRowsRequest, tip: str, size: int) -> _Listing:
    """The rows of the newest commits, at least so many of these if there are."""
    links: Mapping[str, str] = {}
    beyond: Iterable[str]
    if asked.straight:
        commits = repo.history(tip, size)
        beyond = [commits[-1].parent] if commits and commits[-1].parent else []
    else:
        family = repo.family(tip or None, limit=size, superseded=asked.superseded)
        commits, links = with_continuations(repo, family, limit=size, whole=not tip)
        beyond = family.beyond
    runs = _folded(repo, commits, links) if asked.folded else unfolded(commits)
    first = {commit.id: run.id for run in runs for commit in run.commits}
    spawned = {child: first.get(at, at) for child, at in links.items()}
    complete = len(commits) < size and not beyond
    rows = list(place(runs, spawned, beyond=set(beyond)))
    if not complete:  # the last run may go on in what was not read
        rows = rows[:-1]
    return _Listing(rows=rows, complete=complete, commits=len(commits))


class _Seen(NamedTuple):
    """What of a commit decides whether it is to be seen by itself."""

    prompt: bool
    answer: bool
    compaction: bool
    unread: bool = False


def _folded(repo: Repo, commits: Sequence[Commit], links: Mapping[str, str]) -> list[FoldedRun[Commit]]:
    seen = _seen(repo, commits)
    named = repo.chains.named([commit.id for commit in commits])
    answered = {commit.parent for commit in commits if seen[commit.id].prompt}

    def is_loud(commit: Commit) -> bool:
        told = seen[commit.id]
        if commit.commit_type != "delta" or commit.forked_from or commit.id in named or told.unread:
            return True
        return told.prompt or (commit.id in answered and told.answer)

    def joins(commit: Commit, below: Commit) -> bool:
        """The record of a compaction stands in a delta below the commit that puts the summary in its place."""
        return commit.commit_type == "compaction" and seen[below.id].compaction

    return folded(commits, links, is_loud, joins)


def _seen(repo: Repo, commits: Sequence[Commit]) -> dict[str, _Seen]:
    """As the index knows it, which is quick; what it does not know of is read."""
    try:
        letters = commit_letters(repo.index, [commit.id for commit in commits if len(commit.id) == FULL])
    except (HarkenError, OSError, sqlite3.Error):
        letters = {}
    found = {commit: _Seen("p" in told, "w" in told, "|" in told) for commit, told in letters.items()}
    facts = _facts(repo, [commit for commit in commits if commit.id not in found])
    for commit, told in facts.items():
        found[commit] = _Seen(bool(told.prompts), bool(told.answer), bool(told.compaction), bool(told.unread))
    return found


def _facts(repo: Repo, commits: Sequence[Commit]) -> dict[str, DeltaFacts]:
    """The facts of commits; other threads may ask for some of the same."""
    held: dict[str, DeltaFacts] = remembered(repo, "commit facts", "", dict)
    found = {commit.id: told for commit in commits if (told := held.get(commit.id)) is not None}
    missing = [commit for commit in commits if commit.id not in found]
    if len(held) + len(missing) > FACTS:
        held.clear()
    for commit, events in repo.chains.read(missing):
        told = DeltaFacts(unread=str(events)) if isinstance(events, HarkenError) else facts_of(events)
        found[commit.id] = held[commit.id] = told
    return {commit.id: found[commit.id] for commit in commits}


# -- what a row says ---------------------------------------------------------------------------------------------------


class _Around(NamedTuple):
    """What describes rows beside their commits."""

    facts: Mapping[str, DeltaFacts]
    shown: Mapping[str, Shown]
    sessions: Mapping[str, SessionRow]
    held: Mapping[str, tuple[int | None, bool]]
    sizes: Mapping[str, tuple[int | None, int | None]]
    """Of compactions: tokens before and after."""
    repo: Repo


def _described(repo: Repo, listing: _Listing, start: int, end: int) -> list[CommitRow]:
    rows = listing.rows[start:end]
    facts = _facts(repo, [commit for row in rows for commit in row.commit.commits])
    shown = {one.id: one for one in repo.describe([row.commit.commits[0] for row in rows])}
    wanted = {row.commit.commits[0].session_id for row in rows}
    sessions = {row.session: row for row in repo.chains.rows() if row.session in wanted}
    held = _held(rows, facts)
    sizes = _sizes(repo, listing.rows[:end], rows, held)
    around = _Around(facts, shown, sessions, held, sizes, repo)
    return [_row(start + number, row, around) for number, row in enumerate(rows)]


def _held(rows: Sequence[_PlacedRun], facts: Mapping[str, DeltaFacts]) -> dict[str, tuple[int | None, bool]]:
    """How much the conversation held at each row; where a row has no request of its own, what the one below had."""
    found: dict[str, tuple[int | None, bool]] = {}
    for row in reversed(rows):
        told = together([facts[commit.id] for commit in reversed(row.commit.commits)])
        folds = row.commit.commit_type == "compaction"
        own = told.after if folds else told.held
        before, _ = (None, False) if folds or row.spawned else found.get(row.parent, (None, False))
        found[row.commit.id] = (own, True) if own is not None else (before, False)
    return found


FAR = 50
"""Rows above a compaction in which a request is looked for."""


def _sizes(
    repo: Repo, newer: Sequence[_PlacedRun], rows: Sequence[_PlacedRun], held: Mapping[str, tuple[int | None, bool]]
) -> dict[str, tuple[int | None, int | None]]:
    """Tokens before and behind each compaction: as its record says, else what the requests around it had."""
    folding = [row for row in rows if row.commit.commit_type == "compaction"]
    above = {row.parent: row for row in newer if not row.spawned} if folding else {}
    found: dict[str, tuple[int | None, int | None]] = {}
    for row in folding:
        told = together(list(_facts(repo, row.commit.commits).values()))
        before = told.before if told.before is not None else held.get(row.parent, (None, False))[0]
        after, child = told.after, above.get(row.commit.id)
        for _ in range(FAR):
            if after is not None or child is None:
                break
            after = together(list(_facts(repo, child.commit.commits[::-1]).values())).asked
            child = above.get(child.commit.id)
        found[row.commit.id] = (before, after)
    return found


EDGE = 100
"""Names of commits that are told of each end of a long run."""


def _row(number: int, row: _PlacedRun, around: _Around) -> CommitRow:
    run = row.commit
    newest, oldest = run.commits[0], run.commits[-1]
    shown, session = around.shown[newest.id], around.sessions.get(newest.session_id)
    told = together([around.facts[commit.id] for commit in reversed(run.commits)])
    kind = _kind(run)
    text, said_by = _text(kind, told, shown)
    held, here = around.held[run.id]
    names = [commit.id for commit in run.commits]
    counts = [commit.message_count for commit in run.commits if commit.message_count is not None]
    return CommitRow(
        n=number,
        kind=kind,
        ids=names if len(names) <= 2 * EDGE else [*names[:EDGE], *names[-EDGE:]],
        commits=len(names),
        short=newest.short,
        text=text,
        said_by=said_by,
        answer=told.answer if said_by != "answer" else "",
        tools=list(told.tools),
        prompts=told.prompts,
        calls=told.calls,
        failed=told.failed,
        thoughts=told.thoughts,
        before=around.sizes.get(run.id, (None, None))[0],
        after=around.sizes.get(run.id, (None, None))[1],
        folded_messages=around.repo.chains.folded_messages(run.parent) if kind == "compaction" else None,
        record=_record(around, run) if kind == "compaction" else "",
        carried=_carried(around.repo, kind, oldest),
        continues=_short(around.repo, oldest.forked_from),
        continued_by=list(shown.continued_by),
        session=newest.session_id,
        runtime=session.runtime if session else newest.template,
        agent=agent_name(session) if session else newest.template,
        spawned=bool(session and session.parent),
        held=held,
        held_here=here,
        messages=sum(counts) if counts else None,
        time=stamp(newest.time or None),
        names=list(shown.names),
        superseded=shown.superseded,
        unread=told.unread,
        column=row.column,
        width=row.width,
        above=list(row.above),
        parent=row.parent,
        parent_spawned=row.spawned,
    )


def _record(around: _Around, run: FoldedRun[Commit]) -> str:
    """The record of a compaction, as its chain calls it."""
    told = ((commit, around.facts[commit.id].compaction) for commit in reversed(run.commits))
    commit, record = next(((commit, record) for commit, record in told if record), (run.commits[0], ""))
    if record[:1] != "@":
        return record
    repo = around.repo
    return remembered(repo, "compaction records", commit.id, lambda: _chain_record(repo, commit), most=1000)


def _chain_record(repo: Repo, commit: Commit) -> str:
    """A record that is called after its place has another name in its delta than in the chain."""
    try:
        return facts_of(repo.delta(commit.id)).compaction
    except HarkenError:
        return ""


def _kind(run: FoldedRun[Commit]) -> str:
    if run.commit_type != "delta":
        return run.commit_type
    return "turn" if len(run.commits) == 1 else "folded"


def _text(kind: str, told: DeltaFacts, shown: Shown) -> tuple[str, str]:
    if not shown.derived:
        return shown.summary, "summary"
    if kind == "compaction":
        return told.injected or shown.summary, "summary"
    if kind == "folded":
        return told.answer or told.injected or shown.summary, "answer" if told.answer else ""
    for said_by in ("prompt", "answer", "injected"):
        if words := getattr(told, said_by):
            return words, said_by
    return shown.summary, "" if shown.derived else "summary"


def _carried(repo: Repo, kind: str, oldest: Commit) -> int | None:
    if kind == "snapshot":
        return oldest.message_count
    if not oldest.forked_from:
        return None
    return repo.chains.folded_messages(oldest.forked_from)


def _short(repo: Repo, commit: str) -> str:
    return repo.shorts([commit])[commit] if commit else ""
