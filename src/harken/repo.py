"""`Repo`: the one object callers hold. Each method is a sentence about contexts; the rooms below do the work.

A REF is a commit (`ctx-…`), a branch, a tag, a session id or `SESSION@MESSAGE`; wherever one is asked for, the value
that another method returned will do as well.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harken import clock as clocks
from harken import context, ids
from harken.context import Diff, Materialized, Ref, SessionTracker, Shown
from harken.context.agents import RUNTIME
from harken.context.checkpoint import (
    Time,
    advance_session,
    check_content,
    check_count,
    check_origin,
    take_artifact,
)
from harken.context.materialize import remake
from harken.context.remember import Recipe, note_recipe
from harken.context.spawned import settle
from harken.errors import BadRequest, Conflict, Evicted, NotFound
from harken.events import Event
from harken.events.cbor import encode_event
from harken.log import Session
from harken.store import Commit, Draft, Move, Name, SessionRow, Store, open_store
from harken.store import undo as undo_move

_STOPS = ("compaction", "root")


def default_location() -> Path:
    """Where the store lies unless somebody says otherwise: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification of these folders has relative paths ignored.
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "harken" / "store.db"


def open(
    path_or_url: str | os.PathLike[str] | None = None, *, create: bool = True, clock: clocks.Clock = clocks.now
) -> Repo:
    """Open the store at a path or URL; without one, the user's own.

    One that is not there is made, or with `create=False` is `NotFound`."""
    where = default_location() if path_or_url is None else path_or_url
    return Repo(open_store(where, create=create), clock=clock)


class Repo:
    """What agents knew, by commit."""

    def __init__(self, store: Store, *, clock: clocks.Clock = clocks.now) -> None:
        self.store = store
        self.clock = clock
        self.machine = platform.node()

    # -- keeping -----------------------------------------------------------------------------------------------

    def checkpoint(
        self,
        data: bytes | None = None,
        *,
        format: str,
        parent: Ref | None = None,
        commit_type: str = "delta",
        checkpoint: str = "explicit",
        created_at: Time = None,
        template: str | None = None,
        principal: str | None = None,
        machine: str | None = None,
        session_id: str | None = None,
        ticket_id: str | None = None,
        thread_id: str | None = None,
        summary: str | None = None,
        message_count: int | None = None,
        token_count: int | None = None,
        artifact: str | None = None,
        spawned_from: dict[str, Any] | None = None,
        forked_from: Ref | None = None,
    ) -> Commit:
        """Make a commit of new bytes, or of an artifact that is there already.

        With a branch as `parent` the branch moves along: `Conflict` if somebody else moved it meanwhile."""
        if (data is None) == (artifact is None):
            raise BadRequest("a checkpoint has either data or an artifact", hint="give exactly one of the two")
        check_origin(spawned_from)
        counted = None not in (check_count("messages", message_count), check_count("tokens", token_count))
        known = None if artifact is None else context.get_artifact(self.store, artifact)
        if known is not None:
            counts = take_artifact(self.store, known, format, counted=counted)
        else:
            check_content(format, data or b"")
            counts = context.Counts() if counted else context.measure(format, data or b"")
        above = self._parent(parent)
        time = context.instant(created_at, self.clock)
        draft = Draft(
            artifact=known or "",
            format=format,
            parent=above.commit.id if above else "",
            commit_type=commit_type,
            checkpoint=checkpoint,
            time=time,
            template=template or "",
            principal=principal or "",
            machine=self.machine if machine is None else machine,
            session_id=session_id or "",
            ticket_id=ticket_id or "",
            thread_id=thread_id or "",
            message_count=counts.messages if message_count is None else message_count,
            token_count=counts.tokens if token_count is None else token_count,
            approximate=token_count is None and counts.approximate,
            spawned_from=spawned_from if above else settle(self.store, spawned_from, time),
            forked_from=context.get_commit(self.store, forked_from).id if forked_from else "",
        )
        return context.checkpoint(
            self.store,
            draft,
            data=data,
            summary=summary or "",
            branch=above.branch if above else None,
            advance=advance_session(template or "") if session_id else None,
        )

    def _parent(self, parent: Ref | None) -> context.Found | None:
        return context.find(self.store, parent) if parent else None

    def put(self, data: bytes, *, policy: str = "default", expires: int | None = None) -> str:
        """Keep bytes; the answer is the full name of the artifact."""
        with self.store.write() as writer:
            return writer.put(data, policy=policy, expires=expires)

    def get(self, ref: str) -> bytes:
        """The bytes of an artifact: `art-…`, its full name, or a unique beginning of it."""
        try:
            return self.store.get(context.get_artifact(self.store, ref))
        except Evicted:
            raise
        except NotFound:
            # What materialize answered has such a name too; it is remembered, or can be made again.
            digits = ref.removeprefix(ids.ARTIFACT_PREFIX).lower()
            made = remake(self.store, digits) if len(digits) >= ids.ARTIFACT_SHORT and ids.is_hex(digits) else None
            if made is None:
                raise
            return made

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

    def commit(self, ref: Ref) -> Commit:
        """The commit a REF names."""
        return context.get_commit(self.store, ref)

    def show(self, ref: Ref) -> Shown:
        """A commit with its summary, its names and everything said about it."""
        return context.show(self.store, [self.commit(ref)])[0]

    def history(self, ref: Ref, limit: int | None = None) -> list[Commit]:
        """The chain behind a commit, newest first, past every compaction."""
        if limit is not None and limit < 0:
            raise BadRequest("a limit cannot be negative")
        return self.store.chain(self.commit(ref).id, limit=limit)

    def describe(self, commits: Iterable[Commit]) -> list[Shown]:
        """Commits with their summaries and names."""
        return context.show(self.store, commits)

    def resolve(self, principal: str, time: Time = None) -> Commit | None:
        """The principal's newest commit at or before an instant; None where there is none."""
        return self.store.latest(principal, context.instant(time, self.clock))

    def diff(self, a: Ref, b: Ref) -> Diff:
        """What one context knows that the other does not."""
        return context.diff(self.store, self.commit(a), self.commit(b))

    def events(self, session: str) -> list[Event]:
        """Everything the agents of a session said, heard and did, as one stream in the order of time."""
        row = context.get_session(self.store, session)
        return context.session_events(self.store, row, self.store.sessions(prefix=row.session))

    def sessions(self, prefix: str = "") -> list[SessionRow]:
        """The sessions in the store."""
        return self.store.sessions(prefix=prefix)

    # -- names and words ---------------------------------------------------------------------------------------

    def annotate(self, ref: Ref, text: str, *, key: str = "summary", who: str = "") -> None:
        """Say something about a commit; the newest summary is the one that is shown."""
        if not text.strip():
            raise BadRequest("there is nothing to say", hint="give a text")
        commit = self.commit(ref)
        with self.store.write() as writer:
            writer.annotate(commit.id, key, text, time=self.clock(), who=who)

    def fork(self, ref: Ref, name: str, *, who: str = "", why: str = "") -> Name:
        """A new branch at a commit; it costs a row."""
        commit = self.commit(ref)
        self.move(name, commit, kind="branch", expect="", who=who, why=why or f"fork of {commit.short}")
        return Name(name=name, kind="branch", target=commit.id)

    def tag(self, ref: Ref, name: str, *, who: str = "", why: str = "") -> Name:
        """A new tag at a commit."""
        commit = self.commit(ref)
        self.move(name, commit, kind="tag", expect="", who=who, why=why or "tag")
        return Name(name=name, kind="tag", target=commit.id)

    def move(
        self, name: str, to: Ref | None, *, kind: str, expect: str | None = None, who: str = "", why: str = ""
    ) -> None:
        """Point a branch or tag elsewhere (None: remove it), and write down that it was moved."""
        target = self.commit(to).id if to is not None else ""
        with self.store.write() as writer:
            writer.move(name, kind=kind, to=target, expect=expect, time=self.clock(), who=who, why=why)

    def undo(self, name: str | None = None, *, number: int | None = None, who: str = "") -> Name:
        """Take back the newest deliberate move of a name (or of any), or the move of that number, which is one more
        move. `Conflict` if the name has gone on since."""
        moves = self.store.moves(name, limit=None if number else 1)
        move = next((move for move in moves if number in (None, move.number)), None)
        if move is None:
            which = f"no move {number}" if number else f"no move of {name!r}" if name else "there is no move"
            raise NotFound(f"{which} to undo", hint="`harken moves` lists them")
        try:
            back = undo_move(self.store, move.number, time=self.clock(), who=who)
        except Conflict as problem:
            raise Conflict(str(problem), hint=self._instead(move) or problem.hint) from problem
        return Name(name=back.name, kind=back.kind, target=back.after)

    def _instead(self, move: Move) -> str:
        """What to do where a move cannot be taken back because the name is not where the move left it."""
        now = self.store.find_name(move.name)
        if now is None or now.target == move.after:
            return ""
        last = self.store.moves(move.name, limit=1)[0]
        if last.after == now.target:
            return f"it was moved again since; take that back first: `harken undo {last.number}`"
        here = self.commit(now.target).short
        there = self.commit(move.before).short if move.before else ""
        to = (
            f"`harken {move.kind} --move {move.name} {there}`"
            if there
            else f"`harken {move.kind} --delete {move.name}`"
        )
        return f"it has gone on to {here} by itself since; {to} does it all the same, and {here} stays in the store"

    # -- commits that stand for more ---------------------------------------------------------------------------

    def compact(self, ref: Ref, summary: str | None = None, *, created_at: Time = None, who: str = "") -> Commit:
        """Fold a chain into a summary; without one, a summary made of the conversation's own words."""
        return context.compact(self.store, ref, summary, time=context.instant(created_at, self.clock), who=who)

    def snapshot(self, ref: Ref, *, created_at: Time = None, who: str = "") -> Commit:
        """Store a commit's whole conversation, so that the walk is short."""
        return context.snapshot(self.store, ref, time=context.instant(created_at, self.clock), who=who)

    # -- live sessions -----------------------------------------------------------------------------------------

    def session(
        self,
        path: str | os.PathLike[str],
        *,
        session_id: str | None = None,
        frequency: str = "turn",
        principal: str = "",
        on_warning: context.tracker.Warn | None = None,
        **options: Any,
    ) -> KeptSession:
        """A session log whose agents are checkpointed as they speak. Takes the options of `Session` too."""
        return KeptSession(
            path,
            repo=self,
            session_id=session_id,
            frequency=frequency,
            principal=principal,
            on_warning=on_warning,
            **options,
        )

    def close(self) -> None:
        """Let go of the store; one left without this is still whole."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class KeptSession(Session):
    """A session log with a chain of commits for each of its agents.

    A log that is opened again is read once, and what the store does not have of it yet is made up for."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        repo: Repo,
        session_id: str | None = None,
        frequency: str = "turn",
        principal: str = "",
        on_warning: context.tracker.Warn | None = None,
        **options: Any,
    ) -> None:
        self.tracker: SessionTracker | None = None
        """None until something is logged: a session is named after the first event in its log."""
        self._repo = repo
        self._chosen_id = session_id or ""
        self._settings: dict[str, Any] = {"frequency": frequency, "principal": principal, "on_warning": on_warning}
        super().__init__(path, **options)
        self._catch_up()
        self.observers.insert(0, self._keep)

    @property
    def session_id(self) -> str:
        """The name its chains go by in the store; empty while nothing is logged."""
        return self.tracker.session if self.tracker else self._chosen_id

    def checkpoint(self, reason: str = "explicit") -> None:
        """Keep what is pending, of every agent."""
        if self.tracker is not None:
            self.tracker.checkpoint(reason)

    def close(self) -> None:
        """Checkpoint the end of the session, then close the log."""
        if self.tracker is not None and not self.readonly:
            self.tracker.close()
        super().close()

    def _catch_up(self) -> None:
        events = self.events()
        if (first := next(events, None)) is not None:
            self._follow(first).observe((first, *events))

    def _keep(self, events: list[Event]) -> None:
        self._follow(events[0]).observe(events)

    def _follow(self, first: Event) -> SessionTracker:
        if self.tracker is None:
            self.tracker = SessionTracker(
                self._repo,
                session_id=self._chosen_id or session_name(self.path, first),
                source=str(self.path),
                template=RUNTIME,
                **self._settings,
            )
        return self.tracker


def session_name(path: Path, first: Event) -> str:
    """The id of a session log: what its file is called, and a few digits of its first event."""
    return f"{path.stem}-{ids.artifact_id(encode_event(first))[:8]}"
