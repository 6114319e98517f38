"""A line about each commit that has none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from harken.repo import Repo

from .base import ApiAnswer
from .crossing import crosses
from .secret_rules import RulesRequest, compiled


class SummarizeRequest(RulesRequest, frozen=True, kw_only=True):
    """Which commits, and who writes."""

    refs: tuple[str, ...] = ()
    """The commits behind these; empty for every commit of the store."""
    model: str = ""
    """The model that writes; empty: the line is put together from the commit's own words."""
    per_minute: int | None = None
    """How often the model is asked a minute at most; null: as often as it answers."""
    limit: int | None = None
    """At most so many commits."""
    watch: bool = False
    """Whether to go on as commits come."""


class SummaryAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A commit that was looked at."""

    id: str
    """Its full name."""
    short: str
    """Its short name."""
    session_id: str
    """The session it belongs to; empty where none was named."""
    summary: str
    """The line that it got; empty where it got none."""
    problem: str
    """Why it got none; empty where it got one."""


class SummaryCounts(ApiAnswer, frozen=True, kw_only=True):
    """What became of it."""

    commits: int
    """Commits that got a line."""
    failed: int
    """Commits that got none."""


class SummariesReport(ApiAnswer, frozen=True, kw_only=True):
    """The end of it."""

    report: SummaryCounts
    """What became of it."""


@crosses
def summarize(
    repo: Repo,
    request: SummarizeRequest,
    *,
    stop: threading.Event | None = None,
    on_total: Callable[[int], None] | None = None,
) -> Iterator[SummaryAnswer | SummariesReport]:
    """Write a line about each commit that lacks one, the newest first; each is kept as soon as it is there."""
    done = failed = 0
    for one in repo.summarize(
        request.refs,
        model=request.model,
        per_minute=request.per_minute,
        limit=request.limit,
        own_rules=compiled(request.own_rules),
        watch=request.watch,
        stop=stop,
        on_total=on_total,
    ):
        done += bool(one.summary)
        failed += not one.summary
        commit = one.commit
        yield SummaryAnswer(
            id=commit.id, short=commit.short, session_id=commit.session_id, summary=one.summary, problem=one.problem
        )
    yield SummariesReport(report=SummaryCounts(commits=done, failed=failed))
