"""`RemoteRepo`: the methods of `Repo`, answered by a service.

    with harken.open("http://localhost:8037", token=…) as repo:
        repo.log("winter")

Every method that the service's operations can answer gives the same values and raises the same errors; the others are
in `local.py`, and say what to do instead. A path object names a file of this machine, and is read here. Paths that
somebody else reads (`import_sessions`, `resume`) are those of the service's machine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

from harken import clock as clocks
from harken import context
from harken.api.commits import (
    AnnotateRequest,
    DescribeRequest,
    DiffLine,
    DiffRequest,
    GraphRequest,
    HistoryRequest,
    LogRequest,
    ResolveRequest,
    ShowRequest,
)
from harken.api.feed import ChangesRequest
from harken.api.names import (
    DeleteNameRequest,
    ForkRequest,
    MovesRequest,
    NamesRequest,
    PinRequest,
    SetNameRequest,
    UndoRequest,
)
from harken.api.verbatim import EventBytesRequest
from harken.api.writing import CheckpointRequest, CompactRequest, MaterializeRequest, SnapshotRequest
from harken.context import Diff, Materialized, Ref, Shown
from harken.context.checkpoint import Time
from harken.context.family import Family
from harken.context.names import RESUMED_BRANCH, Continued
from harken.context.summary import WRITTEN
from harken.errors import BadRequest, Conflict, HarkenError, NotFound
from harken.events import Event
from harken.events.cbor import decode_events, encode_events
from harken.events.wire import from_readable
from harken.repo import CommitFacts, Repo
from harken.repo.arguments import FACTS, IMPORTING, LESS, REPO, RUN, SESSION, TRACK, check_limit
from harken.repo.checkpoint import check_facts, told_format
from harken.store import Change, Commit, Move, Name
from harken.store.arguments import parameters, public_methods
from harken.store.values import guarded

from . import values
from .asking import INLINE, AskingService, time_of, word_of, word_or_none
from .local import NEEDS_STORE, needs_store
from .remote_principals import RemotePrincipals
from .remote_sessions import RemoteSessions
from .wire import ServiceWire, place_of

LONGEST_WAIT = 50.0
TRIES = 5


class RemoteRepo(RemoteSessions, RemotePrincipals, AskingService, Repo):
    """What agents knew, by commit, in a store behind a service."""

    def __init__(self, url: str, *, token: str = "", clock: clocks.Clock = clocks.now) -> None:
        self.wire = ServiceWire(place_of(url), token)
        self.speaks_by_token = bool(token)
        """Whether the token says who asks, so that nobody has to."""
        self.clock = clock
        self.machine = ""

    def __getattr__(self, name: str) -> Any:
        if name == "store":
            raise BadRequest("this needs the store itself, not a service", hint="run it where the store lies")
        raise AttributeError(f"'RemoteRepo' object has no attribute {name!r}")

    @property
    def damage(self) -> str:
        """Empty: a service opens no store that cannot be read through."""
        return ""

    def close(self) -> None:
        """Let go of the service: from then on every call is `Closed`."""
        self._is_closed = True
        self.wire.close()

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
        """Make a commit of new bytes, of events, or of an artifact that is there already; who and where come from the
        token unless it may name others."""
        check_facts(facts)
        if data is not None and not isinstance(data, bytes):
            data, format = encode_events(data), format or "events-v1"
        if data is not None and artifact is None and len(data) > INLINE:
            format = format or told_format(data)
            artifact, data = self.put(data), None
        told: dict[str, Any] = {name: value for name, value in facts.items() if value is not None}
        if (fork := facts.get("forked_from")) is not None:
            told["forked_from"] = word_of(fork)
        request = CheckpointRequest(
            body=data,
            artifact=artifact,
            format=format,
            parent=word_or_none(parent or None),
            summary=summary,
            created_at=time_of(created_at),
            **told,
        )
        return values.commit_of(self.ask_service("checkpoint", request))

    def put(self, data: bytes, *, policy: str = "default", expires: int | None = None) -> str:
        """Keep bytes; the answer is the full name of the artifact."""
        return self._put_bytes(data, policy, None if expires is None else context.instant(expires))

    def get(self, ref: str) -> bytes:
        """The bytes of an artifact: `art-…`, its full name, or a unique beginning of it."""
        return self._get_bytes(ref)

    # -- asking ------------------------------------------------------------------------------------------------

    def materialize(self, ref: Ref | None, *, format: str | None = None, stop: Ref = "compaction") -> Materialized:
        """The conversation at a commit (None: the empty one), in its own format or another."""
        request = MaterializeRequest(ref=word_or_none(ref) or "", format=format, stop=word_of(stop))
        return values.materialized_of(self.ask_service("materialize", request))

    def conversation(self, ref: Ref | None, *, stop: Ref = "compaction") -> list[Event]:
        """`materialize`, as events."""
        return list(decode_events(self.materialize(ref, format="events-v1", stop=stop).bytes))

    def show(self, ref: Ref) -> Shown:
        """A commit with its summary, its names and everything said about it."""
        return self.describe([ref])[0]

    def history(self, ref: Ref, limit: int | None = None) -> list[Commit]:
        """The chain behind a commit, newest first, past every compaction, and what it was handed down."""
        check_limit(limit)
        request = HistoryRequest(ref=word_of(ref), limit=limit)
        return [values.commit_of(one) for one in self.ask_service("history", request)]

    def describe(self, commits: Iterable[Ref]) -> list[Shown]:
        """Commits with their summaries and names, in the order asked."""
        refs = [word_of(ref) for ref in commits]
        found = self.ask_service("describe", DescribeRequest(refs=refs)) if refs else ()
        return [values.shown_of(one) for one in found]

    def resolve(self, principal: str, time: Time = None) -> Commit | None:
        """The principal's newest commit at or before an instant; None where there is none."""
        try:
            return values.commit_of(
                self.ask_service("resolve", ResolveRequest(principal=principal, time=time_of(time)))
            )
        except NotFound:
            return None

    def diff(self, a: Ref, b: Ref) -> Diff:
        """What one context knows that the other does not."""
        first, *lines = self.ask_service("diff", DiffRequest(a=word_of(a), b=word_of(b)))
        sides: dict[str, list[Event]] = {"here": [], "there": []}
        for one in values.only(DiffLine, iter(lines)):
            sides[one.side].append(from_readable(one.event))
        ancestor = self.commit(first.ancestor) if first.ancestor else None
        return Diff(ancestor=ancestor, here=tuple(sides["here"]), there=tuple(sides["there"]), unread=first.unread)

    def delta(self, ref: Ref) -> list[Event]:
        """What a commit adds to the conversation, as events."""
        pieces = self.ask_service("event_bytes", EventBytesRequest(commit=word_of(ref)))
        return [event for piece in pieces for event in decode_events(piece.body)]

    def log(self, ref: Ref | None = None, *, limit: int | None = None, superseded: bool = False) -> Iterator[Shown]:
        """The chain behind a commit (without one, every commit), newest first, with summaries and names."""
        check_limit(limit)
        request = LogRequest(ref=word_or_none(ref) or "", limit=limit, superseded=superseded)
        return map(values.shown_of, self.ask_service("log", request))

    def family(self, ref: Ref | None = None, *, limit: int | None = None, superseded: bool = False) -> Family:
        """The tree a commit stands in (without one, all trees), with the sub-agents that were spawned in it."""
        check_limit(limit)
        request = GraphRequest(ref=word_or_none(ref) or "", limit=limit, superseded=superseded)
        found = self.ask_service("graph", request)
        commits = [values.commit_of(one) for one in found.commits]
        return Family(commits=commits, spawned=found.spawned, beyond=frozenset(found.beyond))

    def children(self, ref: Ref) -> list[Commit]:
        """The commits that were made on top of a commit."""
        children = self.ask_service("show", ShowRequest(ref=word_of(ref), content=False)).children
        return [self.commit(child) for child in children]

    def shorts(self, commits: Iterable[str]) -> dict[str, str]:
        """The shown names of commits given by their full names; of one that is not here, all of its name."""
        asked = list(commits)
        try:
            return {shown.id: shown.short for shown in self.describe(asked)}
        except HarkenError:  # one of them is gone or damaged: that must not hide the others
            return {commit: self._short(commit) for commit in asked}

    def _short(self, commit: str) -> str:
        try:
            return self.commit(commit).short
        except HarkenError:
            return commit

    def forgotten_of(self, ref: Ref) -> str:
        """What was forgotten of the bytes that a commit adds, by whom and why; empty where nothing was."""
        return str(self.ask_service("show", ShowRequest(ref=word_of(ref), content=False)).forgotten)

    def resumed_sessions(self) -> dict[str, Continued]:
        """The sessions that Harken wrote to continue a conversation, and what each goes on from."""
        targets = {name.target for name in self.names("branch") if name.name.startswith(RESUMED_BRANCH)}
        return values.continued_of(self.describe(sorted(targets)))

    # -- names and words ---------------------------------------------------------------------------------------

    def annotate(self, ref: Ref, text: str, *, key: str = WRITTEN, who: str = "") -> None:
        """Say something about a commit; the newest summary is the one that is shown."""
        self.ask_service("annotate", AnnotateRequest(ref=word_of(ref), text=text, key=key, who=who))

    def fork(self, ref: Ref, name: str, *, who: str = "", why: str = "") -> Name:
        """A new branch at a commit; nothing is copied."""
        request = ForkRequest(ref=word_of(ref), name=name, who=who, why=why)
        return values.name_of(self.ask_service("fork", request))

    def tag(self, ref: Ref, name: str, *, who: str = "", why: str = "") -> Name:
        """A new tag at a commit."""
        request = SetNameRequest(name=name, kind="tag", ref=word_of(ref), who=who, why=why or "tag")
        return values.name_of(self.ask_service("set_name", request))

    def move(
        self, name: str, to: Ref | None, *, kind: str, expect: str | None = None, who: str = "", why: str = ""
    ) -> None:
        """Point a branch or tag elsewhere (None: remove it), and write down that it was moved."""
        if to is None:
            request = DeleteNameRequest(name=name, kind=kind, expect=expect, who=who, why=why)
            self.ask_service("delete_name", request)
            return
        for left in reversed(range(TRIES)):
            there = self.find_name(name) if expect is None else None
            seen = expect if expect is not None else there.target if there else ""
            try:
                self.ask_service(
                    "set_name",
                    SetNameRequest(name=name, kind=kind, ref=word_of(to), expect=seen, who=who, why=why),
                )
            except Conflict:  # somebody else was faster; where nothing was expected, that does not matter
                if expect is not None or not left or (there is not None and there.kind != kind):
                    raise
            else:
                return

    def undo(self, name: str | None = None, *, number: int | None = None, who: str = "") -> Name:
        """Take back the newest deliberate move of a name (or of any), or the move of that number."""
        return values.name_of(self.ask_service("undo", UndoRequest(name=name or "", number=number, who=who)))

    def names(self, kind: str | None = None) -> list[Name]:
        """The branches and tags, or those of one kind."""
        return [values.name_of(one) for one in self.ask_service("names", NamesRequest(kind=kind or "", all=True))]

    def find_name(self, name: str) -> Name | None:
        """The branch or tag of exactly this name."""
        found = self.ask_service("names", NamesRequest(name=name, all=True)) if name else iter(())
        return next((values.name_of(one) for one in found), None)

    def moves(self, name: str | None = None, *, limit: int | None = None) -> list[Move]:
        """Where names were moved on purpose, newest first."""
        try:
            found = list(self.ask_service("moves", MovesRequest(name=name or "", limit=limit)))
        except NotFound:
            return []
        return [Move(**values.same_fields(Move, one) | {"time": values.instant(one.time) or 0}) for one in found]

    def pin(self, ref: Ref, *, off: bool = False, only: bool = False) -> int:
        """Keep a commit's bytes for ever (`off`: no longer), with the chain behind it unless `only`."""
        return int(self.ask_service("pin", PinRequest(ref=word_of(ref), off=off, only=only)).artifacts)

    # -- commits that stand for more ---------------------------------------------------------------------------

    def compact(
        self, ref: Ref, summary: str | None = None, *, model: str = "", created_at: Time = None, who: str = ""
    ) -> Commit:
        """Fold a chain into a summary: yours, one the model writes, or one made of the conversation's own words."""
        request = CompactRequest(
            ref=word_of(ref), summary=summary, model=model, created_at=time_of(created_at), who=who
        )
        return values.commit_of(self.ask_service("compact", request))

    def snapshot(self, ref: Ref, *, created_at: Time = None, who: str = "") -> Commit:
        """Store a commit's whole conversation, so that the walk is short."""
        request = SnapshotRequest(ref=word_of(ref), created_at=time_of(created_at), who=who)
        return values.commit_of(self.ask_service("snapshot", request))

    # -- following the store -----------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Tells a store from its backups and repairs: whoever follows one and meets another epoch starts over."""
        return str(self.ask_service("changes", ChangesRequest(limit=1)).epoch)

    def last_change(self) -> int:
        """The number of the newest change; 0 where nothing ever changed."""
        return int(self.ask_service("changes", ChangesRequest(limit=1)).last)

    def since(self, number: int, limit: int = 1000) -> list[Change]:
        """The changes after that number, oldest first."""
        if limit < 1:
            return []
        found = self.ask_service("changes", ChangesRequest(after=number, limit=limit)).changes
        return [Change(**values.same_fields(Change, one)) for one in found]

    def wait(self, number: int, timeout: float) -> bool:
        """Wait for a change after that number, by whatever thread or process; False where none came in time."""
        until = clocks.monotonic() + timeout
        while True:
            left = min(LONGEST_WAIT, max(0.0, until - clocks.monotonic()))
            if self.ask_service("changes", ChangesRequest(after=number, limit=1, wait=left)).changes:
                return True
            if clocks.monotonic() >= until:
                return False


def _refusing(name: str) -> Callable[..., Any]:
    """A method that says what to do instead."""

    def refuse(self: RemoteRepo, *_: object, **__: object) -> Any:
        raise needs_store(name, NEEDS_STORE[name])

    refuse.__name__, refuse.__doc__ = name, f"Needs the store itself: {NEEDS_STORE[name]}."
    return refuse


def _guard_methods() -> None:
    """Put the check of `Repo` before every method of it: the same arguments are taken, and refused."""
    more = {"checkpoint": FACTS, "import_sessions": IMPORTING, "resume": LESS, "run": RUN, "session": SESSION}
    more["track"] = TRACK
    for name, method in public_methods(Repo):
        own = _refusing(name) if name in NEEDS_STORE else getattr(RemoteRepo, name)
        enter = RemoteRepo._check_open if name != "close" else None
        kinds = parameters(inspect.unwrap(method), REPO) | more.get(name, {})
        setattr(RemoteRepo, name, guarded(own, kinds, enter))


_guard_methods()
