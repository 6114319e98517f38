"""`Repo`: the one object that programs hold. Each method is a sentence; the packages below do the work.

A REF is a commit (`ctx-…`), a branch, a tag, a session id or `SESSION@MESSAGE`; wherever one is asked for, the value
that another method returned will do as well.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from harken import clock as clocks
from harken import context
from harken.context import Diff, Materialized, Ref, Shown, Tracker, TrackerSettings, listing
from harken.context.checkpoint import Time
from harken.context.describe import delta_events, short_of
from harken.context.family import Family, family
from harken.context.materialize import Recipe, note_recipe
from harken.context.names import Continued, resumed_sessions
from harken.errors import BadRequest, Closed, HarkenError
from harken.events import Event
from harken.events.cbor import decode_events
from harken.store import Commit, SessionRow, Store, open_store
from harken.store.arguments import checks_arguments

from .agents import SessionAgent, agents_of
from .arguments import (
    FACTS,
    IMPORTING,
    LESS,
    REPO,
    RUN,
    SESSION,
    TRACK,
    ImportOptions,
    LessOptions,
    SessionOrFile,
    check_limit,
)
from .checkpoint import EVENTS, CommitFacts, NewCommit, make_commit
from .documents import Documenting
from .erasing import Erasing
from .exporting import Exporting
from .location import default_location
from .looking import bytes_of, events_of, view_of
from .naming import Naming
from .numbers import Counted
from .principals import Principals
from .starting import Starting
from .summarizing import Summarizing
from .summing_up import ask_for_summary, shortening
from .upkeep import Upkeep

if TYPE_CHECKING:
    from harken.runtimes import Environment
    from harken.runtimes.memory import ImportResult
    from harken.runtimes.resume import Resumed
    from harken.runtimes.run import Ended, RunOutput
    from harken.views import SessionViewer

    from .live import KeptSession
    from .running import RunSettings

_STOPS = ("compaction", "root")


@checks_arguments(REPO, checkpoint=FACTS, import_sessions=IMPORTING, resume=LESS, run=RUN, session=SESSION, track=TRACK)
class Repo(Naming, Principals, Upkeep, Counted, Exporting, Documenting, Summarizing, Erasing, Starting):
    """What agents knew, by commit."""

    def __init__(self, store: Store, *, clock: clocks.Clock = clocks.now) -> None:
        self.store = store
        self.clock = clock
        self.machine = platform.node()

    def _check_open(self) -> None:
        if self.store.closed:
            raise Closed("this repository has been closed", hint="open it again")

    # -- keeping -----------------------------------------------------------------------------------------------

    def checkpoint(
        self,
        data: bytes | Sequence[Event] | None = None,
        *,
        format: str | None = None,
        parent: Ref | None = None,
        artifact: str | None = None,
        summary: str | None = None,
        created_at: Time = None,
        **facts: Unpack[CommitFacts],
    ) -> Commit:
        """Make a commit of new bytes, of events, or of an artifact that is there already.

        Without a format it is what the bytes look like; without `created_at` it is as old as its newest event, and made
        now where none tells; `CommitFacts` lists what else may be said. A branch as `parent` moves along: `Conflict` if
        somebody else moved it meanwhile. So does the session of `session_id`, from its newest commit alone."""
        time = None if created_at is None else context.instant(created_at)
        new = NewCommit(data, artifact, format, summary or "", time, facts)
        return make_commit(self.store, new, parent=parent, now=self.clock, machine=self.machine)

    def put(self, data: bytes, *, policy: str = "default", expires: int | None = None) -> str:
        """Keep bytes; the answer is the full name of the artifact."""
        with self.store.write() as writer:
            return writer.put(data, policy=policy, expires=None if expires is None else context.instant(expires))

    def get(self, ref: str) -> bytes:
        """The bytes of an artifact: `art-…`, its full name, or a unique beginning of it."""
        return bytes_of(self.store, ref)

    # -- asking ------------------------------------------------------------------------------------------------

    def materialize(self, ref: Ref | None, *, format: str | None = None, stop: Ref = "compaction") -> Materialized:
        """The conversation at a commit (None: the empty one), in its own format or another.

        `stop` is `compaction` (the conversation as it stands), `root` (every delta) or an ancestor."""
        if ref is None:
            made, recipe = context.empty(format), Recipe(format=format or "")
        else:
            tip = self.commit(ref)
            if not isinstance(stop, str) or stop not in _STOPS:
                stop = self.commit(stop).id
            made = context.materialize(self.store, tip, format=format, stop=stop)
            recipe = Recipe(tip=tip.id, format=format or "", stop=stop)
        note_recipe(self.store, made.artifact, recipe)
        return made

    def conversation(self, ref: Ref | None, *, stop: Ref = "compaction") -> list[Event]:
        """`materialize`, as events."""
        return list(decode_events(self.materialize(ref, format=EVENTS, stop=stop).bytes))

    def commit(self, ref: Ref) -> Commit:
        """The commit a REF names."""
        return context.get_commit(self.store, ref)

    def show(self, ref: Ref) -> Shown:
        """A commit with its summary, its names and everything said about it."""
        return context.show(self.store, [self.commit(ref)])[0]

    def history(self, ref: Ref, limit: int | None = None) -> list[Commit]:
        """The chain behind a commit, newest first, past every compaction, and what it was handed down."""
        check_limit(limit)
        return context.lineage(self.store, self.commit(ref).id, limit)

    def describe(self, commits: Iterable[Ref]) -> list[Shown]:
        """Commits with their summaries and names, in the order asked."""
        return context.show(self.store, context.get_commits(self.store, list(commits)))

    def resolve(self, principal: str, time: Time = None) -> Commit | None:
        """The principal's newest commit at or before an instant; None where there is none. Of `RUNTIME:SESSION` a
        unique beginning of the session's id will do."""
        instant = context.instant(time, self.clock)
        found = self.store.latest(principal, instant)
        return found or self.store.latest(context.whole_principal(self.store, principal), instant)

    def diff(self, a: Ref, b: Ref) -> Diff:
        """What one context knows that the other does not."""
        return context.diff(self.store, self.commit(a), self.commit(b))

    def delta(self, ref: Ref) -> list[Event]:
        """What a commit adds to the conversation, as events."""
        return delta_events(self.store, self.commit(ref))

    def log(self, ref: Ref | None = None, *, limit: int | None = None, superseded: bool = False) -> Iterator[Shown]:
        """The chain behind a commit (without one, every commit), newest first, with summaries and names. Tails that
        a grown file has superseded are left out unless asked for."""
        check_limit(limit)
        if ref is None:
            return listing.newest(self.store, limit=limit, superseded=superseded)
        return listing.chain(self.store, self.commit(ref), limit=limit, superseded=superseded)

    def family(self, ref: Ref | None = None, *, limit: int | None = None, superseded: bool = False) -> Family:
        """The tree a commit stands in (without one, all trees), with the sub-agents that were spawned in it."""
        check_limit(limit)
        of = self.commit(ref).id if ref is not None else ""
        return family(self.store, of=of, limit=limit, superseded=superseded)

    def children(self, ref: Ref) -> list[Commit]:
        """The commits that were made on top of a commit."""
        return self.store.children(self.commit(ref).id)

    def shorts(self, commits: Iterable[str]) -> dict[str, str]:
        """The shown names of commits given by their full names; of one that is not here, all of its name."""
        asked = list(commits)
        try:
            return {commit.id: commit.short for commit in self.store.get_commits(asked)}
        except HarkenError:  # one of them is gone or damaged: that must not hide the others
            return {commit: short_of(self.store, commit) for commit in asked}

    def agents(self, session: SessionOrFile) -> list[SessionAgent]:
        """The agents of a session in the store (its id, or a unique beginning), or of a log file (a path object)."""
        return agents_of(self.store, session)

    def events(self, session: SessionOrFile) -> list[Event]:
        """Everything the agents of a session said, heard and did, as one stream in the order of time; of a file (a
        path object), in whatever format it is, what it holds."""
        return events_of(self.store, session)

    def view(self, session: SessionOrFile) -> SessionViewer:
        """The views of a session in the store (its id, or a unique beginning), or of a log file (a path object)."""
        return view_of(self.store, session)

    def sessions(self, prefix: str = "") -> list[SessionRow]:
        """The sessions in the store."""
        return self.store.sessions(prefix=prefix)

    def resumed_sessions(self) -> dict[str, Continued]:
        """The sessions that Harken wrote to continue a conversation, and what each goes on from."""
        return resumed_sessions(self.store)

    # -- commits that stand for more ---------------------------------------------------------------------------

    def compact(
        self, ref: Ref, summary: str | None = None, *, model: str = "", created_at: Time = None, who: str = ""
    ) -> Commit:
        """Fold a chain into a summary: yours, one the model writes, or one made of the conversation's own words."""
        if summary is not None and model:
            raise BadRequest("a compaction has a summary or a model, not both", hint="give one of the two")
        if model:
            summary = ask_for_summary(self.store, ref, model)
        return context.compact(self.store, ref, summary, time=context.instant(created_at, self.clock), who=who)

    def snapshot(self, ref: Ref, *, created_at: Time = None, who: str = "") -> Commit:
        """Store a commit's whole conversation, so that the walk is short."""
        return context.snapshot(self.store, ref, time=context.instant(created_at, self.clock), who=who)

    # -- runtimes ----------------------------------------------------------------------------------------------

    def import_sessions(
        self,
        paths: Sequence[str | os.PathLike[str]] = (),
        *,
        runtimes: Sequence[str] = (),
        environ: Environment | None = None,
        principal: str = "",
        **options: Unpack[ImportOptions],
    ) -> Iterator[ImportResult]:
        """Import the sessions at or below the paths; without paths, those that lie where `environ` says the runtimes
        keep them. Says what became of each file as it lands. `ImportOptions` lists the options."""
        _check_keywords("import_sessions", options, tuple(IMPORTING))
        return _imported(self, paths, runtimes, environ, principal=principal, **options)

    def watch(
        self,
        paths: Sequence[str | os.PathLike[str]] = (),
        *,
        runtimes: Sequence[str] = (),
        environ: Environment | None = None,
        principal: str = "",
        interval: float = 0.5,
        poll: bool = False,
        stop: threading.Event | None = None,
    ) -> Iterator[ImportResult]:
        """`import_sessions`, and go on as files grow, until `stop` is set or it is closed; `poll`: without notices."""
        from harken.runtimes.watch import watch_sessions

        options: dict[str, Any] = {"now": self.clock, "principal": principal, "poll": poll, "interval": interval}
        return watch_sessions(self.store, paths, runtimes, environ, stop=stop or threading.Event(), **options)

    def resume(
        self,
        ref: Ref,
        runtime: str,
        *,
        cwd: str | os.PathLike[str],
        home: str | os.PathLike[str] | None = None,
        environ: Environment | None = None,
        **less: Unpack[LessOptions],
    ) -> Resumed:
        """Write the conversation at a commit where a runtime finds it, and say which command goes on with it.

        `cwd` is the folder the runtime is going to work in; `home` its own folder, where `environ` does not tell.
        `LessOptions` lists how less than all of it goes along."""
        from harken import runtimes as registry
        from harken.runtimes.resume import Destination, resume

        if home is None and environ is None:
            raise BadRequest(
                "where does the runtime keep its sessions?", hint="pass `home`, or your environment as `environ`"
            )
        _check_keywords("resume", less, tuple(LESS))
        own = None if home is None else Path(home)
        asked = any(value is not None and value is not False and value != "" for value in less.values())
        part = shortening(less) if asked else None
        there = registry.get(runtime)
        to = Destination(runtime=there, cwd=Path(cwd), environ=environ or {}, home=own, shortening=part)
        return resume(self.store, self.commit(ref), to, now=self.clock)

    def run(
        self,
        runtime: str,
        words: Sequence[str] = (),
        *,
        cwd: str | os.PathLike[str],
        environ: Environment,
        start: Ref | None = None,
        output: RunOutput | None = None,
        **settings: Unpack[RunSettings],
    ) -> Ended:
        """Start a runtime with its own arguments and keep what it knows while it works; with `start` it goes on from
        that commit. `output` takes what it shows; `RunSettings` lists what else may be said."""
        from .running import RunSettings, RunStart, run_runtime

        _check_keywords("run", settings, tuple(RunSettings.__annotations__))
        source = None if start is None else self.commit(start)
        what = RunStart(runtime, words, environ, Path(cwd), source, self.machine)
        return run_runtime(self.store, what, settings, output, now=self.clock)

    # -- live sessions -----------------------------------------------------------------------------------------

    def session(self, path: str | os.PathLike[str], *, start: Ref | None = None, **settings: Any) -> KeptSession:
        """A session log whose agents are checkpointed as they speak. With `start` it is a new log that begins with the
        conversation at that commit. `settings` are those of `KeptSession`, and of `Session`."""
        from .live import SETTINGS, KeptSession

        _check_keywords("session", settings, SETTINGS)
        return KeptSession(path, repo=self, start=None if start is None else self.commit(start), **settings)

    def track(self, **settings: Any) -> Tracker:
        """A tracker that makes commits of a live agent's events as they are fed to it; see `Tracker` for settings."""
        _check_keywords("track", settings, TrackerSettings.__struct_fields__, needed=("session_id",))
        return Tracker(self, TrackerSettings(**settings))

    @property
    def damage(self) -> str:
        """Why this is only what is left of a store that was opened with `damaged=True`; empty where it is whole."""
        return str(getattr(self.store, "problem", None) or "")

    def close(self) -> None:
        """Close the store: from then on every call is `Closed`. One that was not closed is still whole, and lets go of
        its file when nobody holds it any more."""
        if "index" in self.__dict__:
            self.index.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(
    path_or_url: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    damaged: bool = False,
    clock: clocks.Clock = clocks.now,
) -> Repo:
    """Open the store at a path or URL; without one, the user's own.

    One that is not there is made, or with `create=False` is `NotFound`. One that cannot be read through is `Corrupt`;
    with `damaged=True` what is left of it can be looked at, and `repo.damage` says what is wrong."""
    where = default_location() if path_or_url is None else path_or_url
    return Repo(open_store(where, create=create, damaged=damaged), clock=clock)


def _imported(
    repo: Repo,
    given: Sequence[str | os.PathLike[str]],
    names: Sequence[str],
    environ: Environment | None,
    *,
    on_files: Callable[[int], None] | None = None,
    **options: Any,
) -> Iterator[ImportResult]:
    """What became of each file at the paths, or where the runtimes keep theirs."""
    from harken import runtimes as registry
    from harken.runtimes.files import as_paths, session_files, sought, starting_points
    from harken.runtimes.importer import Importer
    from harken.runtimes.unread import not_looked_at

    paths, chosen = as_paths(given), registry.chosen(names)
    # A runtime says what is a session in its own place; in a folder that somebody named, nothing is left out silently.
    passed: list[str] | None = [] if paths else None
    points = starting_points(paths, chosen, environ)
    files = list(session_files(points, sought(paths, chosen, environ), passed))
    if on_files is not None:
        on_files(len(files))
    # Where files were named one by one, not being a session is a failure.
    named = bool(paths) and all(path.is_file() for path in paths)
    yield from Importer(repo.store, chosen, now=repo.clock, **options).run(files, named=named)
    given_too = set(map(str, files))
    for path in (path for path in passed or () if path not in given_too):
        yield not_looked_at(path)


def _check_keywords(call: str, given: Collection[str], known: Sequence[str], needed: Iterable[str] = ()) -> None:
    """Refuse a keyword that a call does not know, or that it lacks."""
    hint = "it takes: " + ", ".join(known)
    for name in given:
        if name not in known:
            raise BadRequest(f"`{call}` does not take {name!r}", hint=hint)
    for name in needed:
        if name not in given:
            raise BadRequest(f"`{call}` needs {name!r}", hint=hint)
