"""Looking at commits: log, history, graph, show, diff, resolve; and saying something about one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from harken.context import Shown, count, project_of
from harken.context.chains import readable_sessions
from harken.errors import BadRequest, Evicted, HarkenError, NotFound
from harken.events import Event, Metric
from harken.repo import Repo
from harken.store import Commit

from .base import ApiAnswer, ApiRequest
from .crossing import crosses
from .values import (
    CommitAnswer,
    EventLine,
    ShownCommit,
    commit_answer,
    event_fields,
    event_line,
    shown_commit,
    shown_fields,
)


class LogRequest(ApiRequest, frozen=True, kw_only=True):
    """Which commits to list."""

    ref: str = ""
    """The commit whose chain is listed; empty for every commit of the store."""
    limit: int | None = None
    """At most so many."""
    superseded: bool = False
    """Whether to list tails that a grown file has superseded, too."""


@crosses
def log(repo: Repo, request: LogRequest) -> Iterator[ShownCommit]:
    """The chain of commits behind a commit, newest first, past every compaction."""
    found = repo.log(request.ref or None, limit=request.limit, superseded=request.superseded)
    return (shown_commit(shown) for shown in found)


class HistoryRequest(ApiRequest, frozen=True, kw_only=True):
    """Which chain to list."""

    ref: str
    """The commit whose chain is listed."""
    limit: int | None = None
    """At most so many."""


@crosses
def history(repo: Repo, request: HistoryRequest) -> Iterator[CommitAnswer]:
    """The chain behind a commit without summaries and names, which is quicker than `log`."""
    return (commit_answer(commit) for commit in repo.history(request.ref, limit=request.limit))


class GraphRequest(ApiRequest, frozen=True, kw_only=True):
    """Which tree of commits to give."""

    ref: str = ""
    """A commit of the tree; empty for every tree of the store."""
    limit: int | None = None
    """At least so many commits, newest first, if there are; the tree below them is left out."""
    superseded: bool = False
    """Whether to give tails that a grown file has superseded, too."""


class GraphAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A tree of commits, to be drawn."""

    commits: list[CommitAnswer]
    """The commits, newest first."""
    spawned: dict[str, str]
    """From the first commit of a sub-agent's chain to the commit it was spawned at."""
    beyond: list[str]
    """Parents that are there and were left out."""


@crosses
def graph(repo: Repo, request: GraphRequest) -> GraphAnswer:
    """The tree a commit stands in: the branches beside it, and the sub-agents that were spawned in it."""
    found = repo.family(request.ref or None, limit=request.limit, superseded=request.superseded)
    return GraphAnswer(
        commits=[commit_answer(commit) for commit in found.commits],
        spawned=found.spawned,
        beyond=sorted(found.beyond),
    )


class ShowRequest(ApiRequest, frozen=True, kw_only=True):
    """Which commit to show."""

    ref: str
    """The commit."""
    content: bool = True
    """Whether to give what it adds to the conversation, too."""


class RunAbout(ApiAnswer, frozen=True, kw_only=True):
    """What a run of a session said of itself, as `sessions` has it; null where it did not say."""

    template: str | None
    """What kind of agent ran."""
    principal: str | None
    """Who ran it."""
    machine: str | None
    """Where it ran."""
    ticket_id: str | None
    """The ticket that was worked on."""
    thread_id: str | None
    """The thread it is part of."""


class ShowAnswer(ShownCommit, frozen=True, kw_only=True):
    """A commit with everything around it."""

    run: RunAbout | None
    """What the run of its session said of itself; a sub-agent has its parent's. Null where nothing is known of one."""
    parent_short: str
    """The short name of its parent; empty for a root."""
    children: list[str]
    """The full names of the commits made on top of it."""
    children_short: list[str]
    """The short names of these."""
    content: list[EventLine]
    """What it adds to the conversation."""
    unread: str
    """Why the content is missing, where it could not be read; empty otherwise."""
    forgotten: str
    """What was forgotten of it on purpose, by whom and why; empty where nothing was."""


@crosses
def show(repo: Repo, request: ShowRequest) -> ShowAnswer:
    """One commit, with what it adds and what was said about it."""
    shown = _sized(repo, repo.show(request.ref))
    children = repo.children(shown)
    content, unread = _content(repo, shown) if request.content else ([], "")
    return ShowAnswer(
        **shown_fields(shown),
        run=_run(repo, shown.session_id),
        parent_short=repo.shorts([shown.parent])[shown.parent] if shown.parent else "",
        children=[child.id for child in children],
        children_short=[child.short for child in children],
        content=content,
        unread=unread,
        forgotten=repo.forgotten_of(shown.id),
    )


def _run(repo: Repo, session: str) -> RunAbout | None:
    """What the session's row keeps: commits of a file are made without it, so that every machine names them alike."""
    seen: set[str] = set()
    while session and session not in seen:
        row = next((row for row in readable_sessions(repo, session) if row.session == session), None)
        facts = {name: getattr(row, name, "") or None for name in RunAbout.__struct_fields__}
        if any(facts.values()):
            return RunAbout(**facts)
        seen.add(session)
        session = row.parent if row else ""
    return None


def _sized(repo: Repo, shown: Shown) -> Shown:
    """The commit with an estimate of its tokens, where whoever made it did not count them."""
    if shown.token_count is not None:
        return shown
    try:
        counts = count(counted_events(repo, shown.id))
    except HarkenError:
        return shown  # its bytes are gone, or nobody can read them: unknown
    return msgspec.structs.replace(shown, token_count=counts.tokens, approximate=counts.approximate)


def counted_events(repo: Repo, commit: str) -> list[Event]:
    """What a commit adds, without the figures that an earlier one told: a running total may be told again in the next
    turn, and read alone it looks like something that was used there."""
    events = repo.delta(commit)
    counted: set[str] = set()
    with suppress(HarkenError):  # what is gone or cannot be read tells nothing
        for before in repo.history(commit)[1:] if _request_ids(events) else ():
            if counted := _request_ids(repo.delta(before)):
                break
    return [event for event in events if not (isinstance(event, Metric) and event.request_id in counted)]


def _request_ids(events: Iterable[Event]) -> set[str]:
    return {event.request_id for event in events if isinstance(event, Metric) and event.request_id}


def _content(repo: Repo, commit: Commit) -> tuple[list[EventLine], str]:
    folder = _folder(repo, commit)
    try:
        return [event_line(event, folder) for event in repo.delta(commit.id)], ""
    except (BadRequest, Evicted) as problem:
        return [], f"{problem}; {problem.hint}" if problem.hint else str(problem)


def _folder(repo: Repo, commit: Commit) -> str:
    """The folder that the session of a commit worked in; empty where nobody knows."""
    session = commit.session_id
    rows = readable_sessions(repo, session) if session else []
    return next((project_of(row) for row in rows if row.session == session), "")


class DescribeRequest(ApiRequest, frozen=True, kw_only=True):
    """Which commits to describe."""

    refs: list[str]
    """The commits."""


@crosses
def describe(repo: Repo, request: DescribeRequest) -> Iterator[ShownCommit]:
    """Commits with their summaries and names, in the order asked."""
    return (shown_commit(shown) for shown in repo.describe(request.refs))


class DiffRequest(ApiRequest, frozen=True, kw_only=True):
    """Which two contexts to compare."""

    a: str
    """The first commit."""
    b: str
    """The second commit."""
    limit: int | None = None
    """At most so many events of each side; None for all."""
    brief: bool = False
    """Whether an event is told by its line, its type and its record's id alone."""


class DiffStart(ApiAnswer, frozen=True, kw_only=True):
    """The first line of a comparison."""

    ancestor: str | None
    """The full name of the newest commit both stand on."""
    ancestor_short: str | None
    """Its short name."""
    unread: int
    """Commits that cannot be read here, for their format or what they hold; they are on neither side."""
    here: int
    """How many events only the first has."""
    there: int
    """How many events only the second has."""
    common: int | None
    """Prompts and responses in the commits that both stand on; null where nobody counted."""


class DiffLine(EventLine, frozen=True, kw_only=True):
    """An event that only one of the two contexts has."""

    side: str
    """`here` where only the first has it, `there` where only the second has."""


@crosses
def diff(repo: Repo, request: DiffRequest) -> Iterator[DiffStart | DiffLine]:
    """What one context knows that another does not."""
    if request.limit is not None and request.limit < 0:
        raise BadRequest("a limit is no less than 0", hint="leave it out for all")
    found = repo.diff(request.a, request.b)
    ancestor = found.ancestor
    yield DiffStart(
        ancestor=ancestor.id if ancestor else None,
        ancestor_short=ancestor.short if ancestor else None,
        unread=found.unread,
        here=len(found.here),
        there=len(found.there),
        common=_messages(repo, ancestor.id) if ancestor else 0,
    )
    for side, events, ref in (("here", found.here, request.a), ("there", found.there, request.b)):
        folder = _folder(repo, repo.commit(ref))
        for event in events[: request.limit]:
            yield _diff_line(side, event, folder, brief=request.brief)


def _diff_line(side: str, event: Event, folder: str, *, brief: bool) -> DiffLine:
    fields = event_fields(event, folder)
    if brief:
        fields["event"] = {name: fields["event"][name] for name in ("type", "message_id") if name in fields["event"]}
    return DiffLine(side=side, **fields)


def _messages(repo: Repo, commit: str) -> int | None:
    """The prompts and responses down to the root, those that a compaction sums up included."""
    counts = [one.message_count for one in repo.history(commit) if one.commit_type == "delta"]
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


class ResolveRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose context, and when."""

    principal: str
    """Who, like `claude-code:SESSION`."""
    time: str | int | None = None
    """When; None for now."""


@crosses
def resolve(repo: Repo, request: ResolveRequest) -> ShownCommit:
    """The principal's newest commit at or before a time."""
    commit = repo.resolve(request.principal, request.time)
    if commit is None:
        when = "now" if request.time is None else request.time
        raise NotFound(
            f"{request.principal!r} has no commit at or before {when}",
            hint="`harken log --json` shows the principals; they are written like claude-code:SESSION",
        )
    return shown_commit(repo.show(commit))


class AnnotateRequest(ApiRequest, frozen=True, kw_only=True):
    """What to say about which commit."""

    ref: str
    """The commit."""
    text: str
    """The remark."""
    key: str = "summary"
    """What kind of remark it is; the newest summary is shown in lists."""
    who: str = ""
    """Who says so."""


@crosses
def annotate(repo: Repo, request: AnnotateRequest) -> ShownCommit:
    """Add a remark to a commit; the older ones stay."""
    commit = repo.commit(request.ref)
    repo.annotate(commit, request.text, key=request.key, who=request.who)
    return shown_commit(repo.show(commit))
