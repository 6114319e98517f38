"""From a live stream of events to commits: one tracker per agent, one chain per tracker.

The tracker never stands in the way of the agent it watches. A checkpoint that fails is told to `on_warning` and made up
for by the next; only `close` raises, and everything once the store was closed. How far a chain goes is written into the
session's row in the same transaction as the commit, so whoever feeds the same events again after a crash can skip those
that are kept. The row is compared before it is saved: where somebody else has gone on, this one goes on from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from harken import clock
from harken.errors import Closed, Conflict, HarkenError, Locked
from harken.events import Event, Metric, System, TranscriptEdit
from harken.events.cbor import decode_events, encode_what_can_be
from harken.events.edits import apply, transcript
from harken.events.tally import MICROS, Tally
from harken.formats.base import count
from harken.store.base import Commit, Draft, Name, SessionRow, Store, Writer

from . import refs, turns
from .materialize import DEFAULT_FORMAT, materialize
from .spawned import resolve_origin

RUN_FACTS = ("template", "principal", "machine", "ticket_id", "thread_id")
"""What a run says of itself, on its commits and in the session's row."""
Warn = Callable[[str], None]


class Keeper(Protocol):
    """What a tracker needs of a repo."""

    @property
    def store(self) -> Store: ...

    @property
    def clock(self) -> clock.Clock: ...


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """How far a chain goes, as it is written beside it."""

    events: int = 0
    """Events of the stream that are in the chain."""
    format: str = "tracker-1"


class Work(msgspec.Struct, kw_only=True):
    """A commit that is due: the next delta, and perhaps the compaction behind it."""

    events: list[Event]
    reason: str
    fold: TranscriptEdit | tuple[System, Event] | None = None
    """What the compaction commit is made from: an edit of the transcript, or a runtime's boundary and summary."""
    problem: Exception | None = None
    """Why it could not be made."""


class TrackerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a tracker is told of the agent it watches."""

    session_id: str
    principal: str = ""
    template: str = ""
    machine: str = ""
    ticket_id: str = ""
    thread_id: str = ""
    frequency: str = "turn"
    """`turn`, `tool`, `every=N` or `end`."""
    on_warning: Warn | None = None
    """Told what went wrong with the store; the agent goes on."""
    parent: str = ""
    """The commit to go on from when the session is new."""
    spawned_from: dict[str, Any] | None = None
    forked_from: str = ""
    row: SessionRow | None = None
    """What else is known of the session when it is new."""
    branch: str = ""
    """With it the chain goes on from that branch and takes it along, nothing of the stream is taken for a replay, and a
    session that was read from its file stays on the file's chain."""


class Tracker:
    """Keeps what one agent knows, as it comes to know it. Safe to feed and to ask from several threads."""

    def __init__(self, repo: Keeper, settings: TrackerSettings) -> None:
        self._repo = repo
        self._rule = turns.frequency(settings.frequency)
        self._warn = settings.on_warning or (lambda _: None)
        self._lock = threading.RLock()
        self._facts = Draft(
            artifact="",
            format=DEFAULT_FORMAT,
            time=0,
            template=settings.template,
            principal=settings.principal,
            machine=settings.machine,
            session_id=settings.session_id,
            ticket_id=settings.ticket_id,
            thread_id=settings.thread_id,
            spawned_from=settings.spawned_from,
            forked_from=settings.forked_from,
        )
        parent, branch = settings.parent, settings.branch
        known = refs.find_session(repo.store, settings.session_id)
        self._row = known or settings.row or SessionRow(session=settings.session_id, runtime=settings.template)
        self._spent, self._spent_kept, self._spent_before = Tally(), 0, self._row.cost_usd_micros
        """What this run has cost, how much of that the row says already, and what the session's others have cost."""
        self._cost_at_start = self._row.cost_usd_micros or 0
        """What the session had cost when this run began, until a report is known to include it or not."""
        self._alone = True
        """Whether nobody else has gone on with the session: what two streams say cannot be counted for a replay."""
        self._tip = repo.store.get_commit(self._row.tip or parent) if self._row.tip or parent else None
        self._kept = _read_state(self._row.state)
        self._branch: Name | None = None
        self._left = ""
        """What the session stood at that this run does not go on from; it becomes an older tip."""
        self._follows = True
        """Whether the branch still goes where this tracker goes."""
        if branch:
            self._branch = repo.store.find_name(branch) or Name(name=branch, kind="branch", target="")
            if known and known.source and known.live not in ("", self._branch.target):
                # An import found that the file lacks this, and the file is what the runtime itself goes on from.
                self._left = known.live
                unheard = repo.store.get_commit(known.live).message_count or 0
                self._row = msgspec.structs.replace(known, live="", messages=known.messages - unheard)
            tip = (self._row.stand if known and known.source else "") or self._branch.target or parent
            self._tip = repo.store.get_commit(tip) if tip else None
            self._kept = Kept()
        self._above = known.tip if known and known.source and branch else ""
        """The tip of the file's chain above which this one is made."""
        self._lost = ""
        """What is still to be said of a repair that did not find everything."""
        self._skip = self._kept.events
        self._position = turns.Position()
        self._pending: list[Event] = []
        self._queue: list[Work] = []
        self._last_boundary: System | None = None

    # -- asking ------------------------------------------------------------------------------------------------

    @property
    def current(self) -> str:
        """The commit the agent stands on, as people see it; empty before the first."""
        with self._lock:
            return self._tip.short if self._tip else ""

    @property
    def tip(self) -> Commit | None:
        """The newest commit, or None before the first."""
        with self._lock:
            return self._tip

    @property
    def kept(self) -> int:
        """How many events of the stream are in the chain; a replay of the stream is skipped that far by itself."""
        with self._lock:
            return self._kept.events

    @property
    def pending(self) -> int:
        """Events that are in no commit yet."""
        with self._lock:
            return len(self._pending) + sum(len(work.events) for work in self._queue)

    @property
    def problem(self) -> Exception | None:
        """Why a commit that was due could not be made and waits for the next; None where none does."""
        with self._lock:
            return next((work.problem for work in self._queue if work.problem is not None), None)

    # -- feeding -----------------------------------------------------------------------------------------------

    def feed(self, events: Sequence[Event], *, more: bool = False) -> None:
        """Take in what happened. `more` says that the message that is being said goes on."""
        with self._lock:
            for event in events:
                self._take(event)
            if not more:
                self._position, reason = turns.at_rest(self._rule, self._position)
                self._due(reason)
            self._flush()

    def checkpoint(self, reason: str = turns.EXPLICIT) -> str:
        """Keep what is pending now; the answer is where the agent stands then."""
        with self._lock:
            self._due(reason)
            self._flush()
            return self.current

    def close(self) -> None:
        """The session has ended. Raises where something of it could not be stored; closing again tries again."""
        self.checkpoint(turns.END)
        if left := self.pending:
            raise HarkenError(f"{left} events could not be stored", hint="close again when the store can be written")

    def _take(self, event: Event) -> None:
        self._position, reason = turns.before(self._rule, self._position, event)
        self._due(reason)
        summary = turns.is_summary(self._position, event)
        self._position, reason = turns.after(self._rule, self._position, event)
        if self._skip:
            self._skip -= 1
        else:
            self._pending.append(event)
        fold: TranscriptEdit | tuple[System, Event] | None = event if isinstance(event, TranscriptEdit) else None
        if fold is None and summary and self._last_boundary is not None:
            fold = (self._last_boundary, event)
        self._last_boundary = event if self._position.boundary and isinstance(event, System) else None
        self._due(reason, fold)

    def _due(self, reason: str, fold: TranscriptEdit | tuple[System, Event] | None = None) -> None:
        if not reason or not self._pending:
            return
        self._queue.append(Work(events=self._pending, reason=reason, fold=fold))
        self._pending = []

    # -- keeping -----------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        while self._queue:
            self._merge()
            work = self._queue[0]
            try:
                self._keep(work)
            except Closed:
                raise  # nothing will ever be kept again
            except Exception as problem:  # noqa: BLE001  whatever is wrong with the store, the agent goes on
                if isinstance(problem, Conflict) and not isinstance(problem, Locked) and self._lets_go(problem):
                    continue
                work.problem = problem
                self._warn(f"a checkpoint failed and is made up for by the next: {problem}")
                return
            self._queue.pop(0)

    def _lets_go(self, problem: Conflict) -> bool:
        """Somebody else goes on from the same branch: both keep what they have, this one without the name."""
        if self._branch is None or not self._follows:
            return False
        self._follows = False
        self._warn(f"this run goes on without its branch: {problem}")
        return True

    def _merge(self) -> None:
        """What failed before becomes part of the next delta; a compaction keeps its place between two."""
        while len(self._queue) > 1 and self._queue[0].problem is not None and self._queue[0].fold is None:
            missed = self._queue.pop(0)
            self._queue[0].events[:0] = missed.events

    def _keep(self, work: Work) -> None:
        """Delta, compaction and how far they go, in one transaction: a crash between them would hide nothing."""
        with self._repo.store.write() as writer:
            self._meet(known := refs.find_session(self._repo.store, self._row.session))
            tip, messages = self._tip, 0
            parts = [(work.events, "delta", work.reason)]
            if work.fold is not None:
                parts.append((self._survivors(work.events, work.fold), "compaction", turns.COMPACTION))
            for events, commit_type, reason in parts:
                draft = self._draft(tip, events, commit_type, reason)
                messages += (draft.message_count or 0) if commit_type == "delta" else 0
                tip = writer.commit(msgspec.structs.replace(draft, artifact=writer.put(encode_what_can_be(events))))
            assert tip is not None
            kept = Kept(events=self._kept.events + len(work.events))
            row = msgspec.structs.replace(
                self._row,
                tip=tip.id,
                started=[*_times(work.events), tip.time][0] if self._row.started is None else self._row.started,
                ended=tip.time,
                messages=self._row.messages + messages,
                state=msgspec.json.encode(kept) if self._alone and self._branch is None else b"",
            )
            spent = self._spent_with(work.events)
            included = self._included(spent)
            row = self._save(writer, row, known, spent.cost_usd_micros, (self._spent_before or 0) - included)
            if (branch := self._branch) is not None and self._follows:
                writer.move(branch.name, kind="branch", to=tip.id, expect=branch.target, time=tip.time, record=False)
        if branch is not None:
            self._branch = msgspec.structs.replace(branch, target=tip.id)
        self._tip, self._row, self._kept = tip, row, kept
        if self._lost:
            self._warn(self._lost)
            self._lost = ""
        self._spent, self._spent_kept = spent, spent.cost_usd_micros or 0
        if included:
            self._spent_before, self._cost_at_start = (self._spent_before or 0) - included, 0

    def _meet(self, row: SessionRow | None) -> None:
        """Go on from where the session is now. Nobody else can write meanwhile, so the row is the newest there is."""
        if row is None and self._row.version:  # a repair found nothing of it
            row = SessionRow(session=self._row.session, runtime=self._row.runtime, lost=True)
        if row is None or row.version == self._row.version or self._is_from_file(row):
            return
        if row.lost and not self._row.lost:
            self._go_on_after_repair(row)
        if row.tip not in ("", self._row.tip, self._tip.id if self._tip else ""):
            self._tip, self._alone = self._repo.store.get_commit(row.tip), False
        if row.cost_usd_micros is not None:
            self._spent_before = row.cost_usd_micros - self._spent_kept
        self._row = row

    def _go_on_after_repair(self, row: SessionRow) -> None:
        """What is left of the chain is gone on with. The row goes on saying that a part is lost; who feeds this tracker
        hears of it when the next commit is there."""
        stood, self._tip = self._tip, self._repo.store.get_commit(row.tip) if row.tip else None
        self._alone = False
        at, behind = stood.short if stood else "none", f"behind {self._tip.short}" if self._tip else "with a new chain"
        self._lost = f"a repair lost a part of session {row.session}: this run stood at {at} and goes on {behind}"

    def _is_from_file(self, row: SessionRow) -> bool:
        """Whether the session goes by a chain that was made from its file, which this one is no part of."""
        return bool(row.source) and (self._branch is not None or row.source != self._row.source)

    def _spent_with(self, events: list[Event]) -> Tally:
        """What the run has cost with these events. Only a transaction that has landed makes it the tracker's own: what
        failed is tried again, and must not cost twice."""
        costs = [event for event in events if isinstance(event, Metric) and event.cost_usd is not None]
        spent = self._spent.copy() if costs else self._spent
        for event in costs:
            spent.metric(event)
        return spent

    def _included(self, spent: Tally) -> int:
        """How much of what the session had cost before is in this run's own report: Claude Code goes on from there."""
        reported = spent.process_cost
        return self._cost_at_start if reported is not None and round(reported * MICROS) >= self._cost_at_start else 0

    def _save(
        self, writer: Writer, row: SessionRow, known: SessionRow | None, spent: int | None, before: int
    ) -> SessionRow:
        """Save the session's row, with what the run says of itself. Where the session has a chain made from its file,
        it stays on that one, and stands at this one only while this one is above it; an import made meanwhile finds
        the rest by itself."""
        said = {name: text for name in RUN_FACTS if (text := getattr(self._facts, name))}
        if spent is not None:
            said["cost_usd_micros"] = before + spent
        if known is None or not self._is_from_file(known):
            return writer.save_session(msgspec.structs.replace(row, **said), expect=row.version)
        changed = msgspec.structs.replace(known, **said)
        if self._above and known.tip == self._above:
            left = (self._left,) if self._left and known.live == self._left else ()
            stand = {"live": row.tip, "messages": row.messages, "ended": row.ended, "older": (*left, *known.older)}
            changed = msgspec.structs.replace(changed, **stand)
        if changed != known:
            writer.save_session(changed, expect=known.version)
        return row

    def _survivors(self, delta: Sequence[Event], fold: TranscriptEdit | tuple[System, Event]) -> list[Event]:
        events: list[Event] = []
        restores = isinstance(fold, TranscriptEdit) and fold.action == "restore"
        if self._tip is not None:
            stop = "root" if restores else "compaction"
            events = decode_events(materialize(self._repo.store, self._tip, format=DEFAULT_FORMAT, stop=stop).bytes)
        events += delta
        if restores:  # which counts all entries that there ever were, so that every edit is made again
            return [event for entry in transcript(events) for event in entry]
        return apply(events, fold) if isinstance(fold, TranscriptEdit) else _after_boundary(events, *fold)

    def _draft(self, tip: Commit | None, events: Sequence[Event], commit_type: str, reason: str) -> Draft:
        counts = count(events)
        time = self._time(tip, events)
        return msgspec.structs.replace(
            self._facts,
            parent=tip.id if tip else "",
            commit_type=commit_type,
            checkpoint=reason,
            time=time,
            message_count=counts.messages,
            token_count=counts.tokens,
            approximate=counts.approximate,
            spawned_from=None if tip else resolve_origin(self._repo.store, self._facts.spawned_from, time),
            forked_from="" if (self._branch.target if self._branch else self._row.tip) else self._facts.forked_from,
        )

    def _time(self, tip: Commit | None, events: Sequence[Event]) -> int:
        """The last instant written in the events, never before the parent's; the present where none is written.

        So the same stream gives the same commits wherever it is kept."""
        written = _times(events)
        instant = written[-1] if written else self._repo.clock()
        return max(instant, tip.time) if tip else instant


def _read_state(state: bytes) -> Kept:
    try:
        return msgspec.json.decode(state, type=Kept) if state else Kept()
    except (msgspec.DecodeError, msgspec.ValidationError):
        return Kept()


def _times(events: Sequence[Event]) -> list[int]:
    return [event.time for event in events if event.time is not None and clock.in_calendar(event.time)]


def _after_boundary(events: Sequence[Event], boundary: System, summary: Event) -> list[Event]:
    """The transcript as a runtime that has compacted leaves it: its summary, and what it says it kept."""
    from harken.formats.claude_stream import preserved_in  # no other stream says what was kept

    kept = preserved_in(boundary.metadata, [event.message_id for event in events])
    return [boundary, summary, *(e for e in events if e.message_id in kept and e not in (boundary, summary))]
