"""The runtimes there are, and their sessions in and out: import, watch, resume."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from harken import clock, ids
from harken import runtimes as registry
from harken.context.chains import readable_sessions
from harken.repo import Repo
from harken.runtimes.memory import ImportResult
from harken.runtimes.unread import PROGRAMS, count_at_home

from .base import ApiAnswer, ApiRequest, FiguresAnswer, figures_fields
from .crossing import crosses
from .import_report import ImportCounts, PassedOver
from .import_report import ImportReport as ImportReport
from .writing import LossAnswer


class ImportRequest(ApiRequest, frozen=True, kw_only=True):
    """What to import."""

    paths: tuple[str, ...] = ()
    """Files and folders; empty: wherever the runtimes keep their sessions, as `environ` tells."""
    runtimes: tuple[str, ...] = ()
    """Only sessions of these runtimes; empty for all."""
    environ: dict[str, str] | None = None
    """The environment that tells where the runtimes keep their sessions, where no paths are given."""
    verify: bool = False
    """Read every file from its beginning, whatever its size and time say."""
    dry_run: bool = False
    """Only say what would be imported."""
    details: bool = True
    """Whether the figures of files that have not changed are wanted, too."""
    jobs: int = 1
    """How many processes read at the same time."""
    principal: str = ""
    """Whose sessions they are; empty: `<runtime>:<session>`."""
    machine: str = ""
    """Where they ran, where that is known."""
    index: bool = True
    """Whether the index follows at once; else whoever asks it next brings it up to date."""


class ImportAnswer(FiguresAnswer, frozen=True, kw_only=True):
    """What became of one file."""

    session: str
    """The session it holds; empty where it could not be read."""
    runtime: str
    """The program that wrote it."""
    source: str
    """The file."""
    status: str
    """`new`, `grown`, `unchanged` (so is a copy of what is stored), `forgotten` (on purpose: it is not read), `skipped`
    (a session of a program that cannot be read yet) or `failed`."""
    rewritten: bool
    """Whether it was rewritten rather than continued; its old end is still there as `SESSION~1`."""
    tip: str
    """The short name of the session's newest commit."""
    tip_id: str
    """The full name of that commit."""
    parent: str | None
    """The session that spawned it, for a sub-agent."""
    agents: list[str]
    """The agents inside the file."""
    commits: int
    """Commits that this run added."""
    records: int
    """Records that this run added."""
    opaque: int
    """Records among them that could not be read, and are kept as they are."""
    bytes: int
    """Bytes that this run added."""
    total_commits: int
    """Commits of the session."""
    total_records: int
    """Records of the session."""
    total_opaque: int
    """Opaque records of the session."""
    total_bytes: int
    """Bytes of the session."""
    forked_from: str | None
    """The short name of the commit it goes on from, where it is a copy or a fork."""
    error: str | None
    """Why it failed, or was skipped."""
    hint: str | None
    """What to do about it."""


ADDED = ("commits", "records", "opaque", "bytes")
INDEXED = 5.0
"""Seconds of an import after which the index follows, so that little is left to do when it is interrupted."""


@crosses
def import_sessions(
    repo: Repo,
    request: ImportRequest,
    *,
    on_files: Callable[[int], None] | None = None,
    on_index: Callable[[int, int], None] | None = None,
) -> Iterator[ImportAnswer | ImportReport]:
    """Take in sessions: a line for each file that is one, and a report. `on_files` is told how many files there are,
    `on_index` how far the index is, which follows at the end and, in a long import, every few seconds."""
    found = repo.import_sessions(
        request.paths,
        runtimes=request.runtimes,
        environ=request.environ,
        verify=request.verify,
        dry_run=request.dry_run,
        details=request.details,
        jobs=request.jobs,
        principal=request.principal,
        machine=request.machine,
        on_files=on_files,
    )
    # Words and rows; the numbers, which take as long again, are made when they are first asked for.
    follow = None if request.dry_run or not request.index else lambda: repo.keep_index(on_index, numbers=False)
    at_home = count_at_home(request.environ or {}) if not request.paths and not request.runtimes else {}
    return _reported(repo, found, follow, every=INDEXED, unread=at_home)


class WatchRequest(ApiRequest, frozen=True, kw_only=True):
    """What to watch."""

    paths: tuple[str, ...] = ()
    """Files and folders; empty: wherever the runtimes keep their sessions, as `environ` tells."""
    runtimes: tuple[str, ...] = ()
    """Only sessions of these runtimes; empty for all."""
    environ: dict[str, str] | None = None
    """The environment that tells where the runtimes keep their sessions, where no paths are given."""
    interval: float = 0.5
    """Seconds between looks."""
    poll: bool = False
    """Look at every file each time, though the system could tell what has changed."""
    principal: str = ""
    """Whose sessions they are; empty: `<runtime>:<session>`."""


QUIET = ("unchanged", "forgotten")
"""What became of a file of which nothing is new."""


@crosses
def watch(
    repo: Repo, request: WatchRequest, *, stop: threading.Event | None = None
) -> Iterator[ImportAnswer | ImportReport]:
    """Import, and go on as sessions grow: a line for each change, and a report when `stop` is set."""
    found = repo.watch(
        request.paths,
        runtimes=request.runtimes,
        environ=request.environ,
        interval=request.interval,
        poll=request.poll,
        principal=request.principal,
        stop=stop,
    )
    # Numbers are made from all of a session, and one that is being worked on changes all the time.
    return _reported(repo, found, lambda: repo.keep_index(numbers=False), every=0.0)


def _reported(
    repo: Repo,
    outcomes: Iterator[ImportResult],
    follow: Callable[[], str] | None,
    *,
    every: float,
    unread: Mapping[str, int] = {},
) -> Iterator[ImportAnswer | ImportReport]:
    """The answers; `follow` brings the index up to date, while files land after so many seconds, and at the end."""
    started = followed = clock.monotonic()
    index = ""
    counts = dict.fromkeys((*ADDED, "failed"), 0)
    passed: dict[str, PassedOver] = {}
    seen: dict[str, ImportResult] = {}
    changed: set[str] = set()
    strangers: dict[str, str] = {}
    labels = {program.name: program.label for program in PROGRAMS}
    for outcome in outcomes:
        for name in ADDED:
            counts[name] += getattr(outcome, name)
        if outcome.status == "failed":
            counts["failed"] += 1
        elif outcome.status != "skipped":
            seen[outcome.session] = outcome
            passed.pop(outcome.source, None)
            changed |= {outcome.session} if outcome.status not in QUIET else set()
        if outcome.status == "skipped":
            # `watch` tells it again whenever the file has changed.
            passed[outcome.source] = PassedOver(source=outcome.source, why=outcome.error)
            strangers |= {outcome.source: labels[outcome.runtime]} if outcome.runtime else {}
        if outcome.status != "skipped" or outcome.runtime:
            yield _answer(repo, outcome)
        if follow is not None and outcome.commits and clock.monotonic() - followed >= every:
            index = follow()
            followed = clock.monotonic()
    if follow is not None:
        index = follow()
    counts |= _count(repo, seen, changed)
    seconds = round(clock.monotonic() - started, 3)
    counts["skipped"] = len(passed)
    found = Counter(unread) + Counter(label for source, label in strangers.items() if source in passed)
    report = ImportCounts(
        **counts, seconds=seconds, index=index, passed_over=list(passed.values()), unread=dict(sorted(found.items()))
    )
    yield ImportReport(report=report)


def _count(repo: Repo, seen: Mapping[str, ImportResult], changed: AbstractSet[str]) -> dict[str, int]:
    """Sessions by the rule of `ids.tops`, as in `stats`; an agent inside a session's file has no line of its own."""
    rows = readable_sessions(repo)
    files = {outcome.source for outcome in seen.values()}
    inside = {row.session for row in rows if row.source not in files and ids.file_around(row.source) in files}
    parents = {row.session: row.parent for row in rows} | {name: one.parent for name, one in seen.items()}
    tops = ids.tops(parents)
    looked_at = seen.keys() | inside
    return {
        "sessions": len({tops[name] for name in looked_at}),
        "agents": sum(tops[name] != name for name in looked_at),
        "changed": len({tops[name] for name in changed}),
    }


def _answer(repo: Repo, outcome: ImportResult) -> ImportAnswer:
    shorts = repo.shorts({commit for commit in (outcome.tip, outcome.forked_from) if commit})
    same = ("session", "runtime", "source", "commits", "records", "opaque", "bytes")
    totals = ("total_commits", "total_records", "total_opaque", "total_bytes")
    rewritten = outcome.status == "rewritten"
    return ImportAnswer(
        **figures_fields(outcome.figures),
        **{name: getattr(outcome, name) for name in same + totals},
        # To a program that waits for changes a rewritten file has grown.
        status="grown" if rewritten else outcome.status,
        rewritten=rewritten,
        tip=shorts.get(outcome.tip, ""),
        tip_id=outcome.tip,
        parent=outcome.parent or None,
        agents=list(outcome.agents),
        forked_from=shorts.get(outcome.forked_from),
        error=outcome.error or None,
        hint=outcome.hint or None,
    )


class ResumeRequest(ApiRequest, frozen=True, kw_only=True):
    """Which conversation to continue, and where."""

    ref: str
    """The commit to go on from."""
    runtime: str
    """The runtime to go on in."""
    cwd: str
    """The folder it is going to work in."""
    home: str | None = None
    """The runtime's own folder, like `~/.claude` or `CODEX_HOME`; None: as `environ` tells."""
    environ: dict[str, str] | None = None
    """The environment that tells where the runtime keeps its sessions."""
    budget: int | None = None
    """Tokens that go along at most, about; the older part becomes a summary."""
    last: int | None = None
    """The last turns alone as they are; the older ones become a summary."""
    narrative: bool = False
    """All of it told as one message, within the budget where there is one."""
    model: str = ""
    """The model that writes the summary; empty: put together from the conversation's own words."""


class ResumeAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A session that is ready to be continued."""

    runtime: str
    """The runtime."""
    session: str
    """The id of the new session."""
    path: str
    """Where it was written."""
    command: list[str]
    """The command that goes on with it."""
    prepare: list[list[str]]
    """Commands that have to run before it."""
    cwd: str
    """The folder to run it in."""
    environment: dict[str, str]
    """What has to be set for it."""
    tier: str
    """`1`: the runtime's own records; `2`: those of an older version of it; `2s`: translated, or shortened; `3`: told
    as one message."""
    losses: list[LossAnswer]
    """What could not be carried over."""
    source: str
    """The full name of the commit it continues."""


@crosses
def resume(repo: Repo, request: ResumeRequest) -> ResumeAnswer:
    """Write a conversation into a runtime's own place, and say which command goes on with it."""
    home = Path(request.home) if request.home is not None else None
    done = repo.resume(
        request.ref,
        request.runtime,
        cwd=request.cwd,
        home=home,
        environ=request.environ,
        budget=request.budget,
        last=request.last,
        narrative=request.narrative,
        model=request.model,
    )
    return ResumeAnswer(
        runtime=done.runtime,
        session=done.session,
        path=done.path,
        command=list(done.command),
        prepare=[list(words) for words in done.prepare],
        cwd=done.cwd,
        environment=done.environment,
        tier=done.tier,
        losses=[LossAnswer(what=loss.what, count=loss.count, why=loss.why) for loss in done.losses],
        source=done.source,
    )


class RuntimesRequest(ApiRequest, frozen=True, kw_only=True):
    """Which runtimes to list."""

    name: str = ""
    """The one of this name, which has to be there; empty for all."""
    can: str = ""
    """Those that can do this: `import`, `resume` or `run`; empty for all."""
    broken: bool = False
    """The plug-ins that cannot be used, in place of those that can."""
    home: str = ""
    """A folder to be the runtime's own; `environment` of the answer leads it there."""


class RuntimeAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A runtime."""

    name: str
    """What it is called, like `claude-code`."""
    label: str
    """What people call it, like `Claude Code`."""
    format: str
    """The format of its sessions."""
    can: list[str]
    """What can be done with it: `import`, `resume`, `run`."""
    problem: str
    """Why it cannot be used, where a plug-in has failed; empty otherwise."""
    environment: dict[str, str]
    """What has to be set so that its own folder is `home`; empty where none was given, or where nothing leads there."""


def runtimes(repo: None, request: RuntimesRequest) -> Iterator[RuntimeAnswer]:
    """The runtimes whose sessions Harken knows. Needs no store: `repo` is None."""
    if request.broken:
        for failed in registry.problems():
            yield RuntimeAnswer(name=failed.name, label="", format="", can=[], problem=str(failed), environment={})
        return
    for name in [request.name] if request.name else registry.names():
        found = registry.get(name)
        if request.can in ("", *found.can):
            can = sorted(found.can)
            leads = dict(found.environment(Path(request.home))) if request.home else {}
            yield RuntimeAnswer(
                name=name, label=found.label, format=found.format, can=can, problem="", environment=leads
            )
