"""Storing spools: what runs could not put into the store while they lasted."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from harken.context import find_session
from harken.context.live import kept_events, live_rest, recorded_events
from harken.context.names import LIVE_BRANCH
from harken.errors import BadRecord, Conflict, HarkenError, Locked
from harken.events import Event, Prompt, System
from harken.events.cbor import encode_event
from harken.ids import chunk_hash
from harken.store import Store

from . import base
from .display import parse
from .live import track
from .recorder import Opening, Recorder, trusted
from .spool import (
    SpoolHeader,
    SpoolNote,
    note_events,
    odd_spools,
    open_spool,
    read_spool,
    set_aside,
    spools,
    taken,
    waiting_spools,
)


class SpoolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a spool."""

    path: str
    sessions: tuple[str, ...] = ()
    """The sessions it was of."""
    problem: str = ""
    """Why it could not be stored; it is still there then, under `path`."""
    hint: str = ""
    is_left: bool = False
    """Whether it waits for another try."""


def store_spools(store: Store, *, runtime: str = "", moved: Callable[[], None] = lambda: None) -> list[SpoolResult]:
    """Store the spools beside the store whose runs are over: those of one runtime, or all. The failure of one is its
    own; where it is left for another try, later ones of a session of it stay behind it. `moved` is called with every
    line."""
    results = [] if runtime else [_put_odd_aside(store, path) for path in odd_spools(Path(store.location))]
    waiting: set[str] = set()
    for path in spools(store):
        if runtime and _runtime_of(path) != runtime:
            continue
        if waiting and not waiting.isdisjoint(named := _sessions_of(path, moved)):
            waiting |= named
            continue
        try:
            result = _store_one(store, path, moved)
        except Locked as problem:
            results.append(_left(path, problem))
            break  # the others would wait as long for it
        if result is not None:
            results.append(result)
            waiting |= _sessions_of(path, moved) if result.is_left else set()
    return results


def wait_for_earlier(store: Store, session: str, own: Path) -> None:
    """Raise where an earlier run of a session is not stored, behind which the one with this spool has to stand."""
    for path in waiting_spools(store):
        if path.name < own.name and session in _sessions_of(path):
            hint = f"what keeps {path} from being stored has to be mended first"
            raise Conflict(f"an earlier run of session {session!r} is not stored yet", hint=hint)


def _sessions_of(path: Path, moved: Callable[[], None] = lambda: None) -> set[str]:
    """The sessions that a spool names, and what it is called if it names none; as far as that can be read."""
    named: set[str] = set()
    with contextlib.suppress(HarkenError, OSError), open_spool(path) as handle:
        header, lines = read_spool(handle, path)
        launch = base.get(header.runtime).launch
        named.add(header.session)
        for line in lines:
            moved()
            if launch is not None and not isinstance(line, SpoolNote):
                with contextlib.suppress(Exception):  # what a plug-in cannot read names nothing
                    named.add(trusted(launch.owner(parse(line))).session)
    return named - {""}


def _runtime_of(path: Path) -> str:
    """The runtime of a spool; empty where that cannot be read."""
    header = _header(path)
    return header.runtime if header is not None else ""


def thread_of(path: str) -> str:
    """The thread that the run of a spool belongs to; empty where it is of none, or that cannot be read."""
    header = _header(Path(path))
    return header.facts.thread_id if header is not None else ""


def _header(path: Path) -> SpoolHeader | None:
    with contextlib.suppress(HarkenError, OSError), open_spool(path) as handle:
        return read_spool(handle, path)[0]
    return None


def _store_one(store: Store, path: Path, moved: Callable[[], None]) -> SpoolResult | None:
    try:
        with taken(path) as handle:
            if handle is None:
                return None
            if not os.fstat(handle).st_size:
                path.unlink()  # a power cut took what was in it
                return None
            try:
                sessions = _store(store, handle, path, moved)
            except Exception as problem:
                if not _is_of_the_spool(problem):
                    raise
                return _put_aside(store, path, problem)
            path.unlink()
            return SpoolResult(path=str(path), sessions=sessions)
    except FileNotFoundError:
        return None  # somebody else was faster
    except Locked:
        raise
    except Exception as problem:  # noqa: BLE001 (whatever is wrong with a file, the others are stored)
        return _left(path, problem)


def _left(path: Path, problem: Exception) -> SpoolResult:
    known = isinstance(problem, HarkenError)
    why = str(problem) if known else f"{type(problem).__name__}: {problem}"
    hint = (problem.hint if isinstance(problem, HarkenError) else "") or "the next command that writes tries again"
    return SpoolResult(path=str(path), problem=f"{path} could not be stored: {why}", hint=hint, is_left=True)


def _is_of_the_spool(problem: Exception) -> bool:
    """Whether another try would fail as this one did; what a store or a disk refuses, it may grant later."""
    return isinstance(problem, BadRecord) or not isinstance(problem, (HarkenError, OSError, MemoryError))


def _put_aside(store: Store, path: Path, problem: Exception) -> SpoolResult:
    aside = set_aside(store, path)
    why = str(problem) if isinstance(problem, BadRecord) else f"{path} could not be read: {problem!r}"
    hint = f"it is {aside} now, which no command looks at"
    return SpoolResult(path=str(aside), problem=why, hint=hint)


def _put_odd_aside(store: Store, path: Path) -> SpoolResult:
    try:
        no_spool = BadRecord(f"{path} is no file, so it holds nothing of a run", hint="remove it, or move it away")
        return _put_aside(store, path, no_spool)
    except OSError as problem:
        return _left(path, problem)


def _store(store: Store, handle: int, path: Path, moved: Callable[[], None]) -> tuple[str, ...]:
    header, lines = read_spool(handle, path)
    launch = base.get(header.runtime).launch
    if launch is None:
        raise HarkenError(f"{path} is of {header.runtime}, which cannot be run", hint="is a plug-in missing?")
    heard: list[_SpooledChain] = []

    def open_tracker(opening: Opening) -> _SpooledChain:
        heard.append(_SpooledChain(store, header, opening))
        return heard[-1]

    recorder = Recorder(launch, open_tracker, lambda text: None, now=lambda: header.started, unnamed=header.session)
    for line in lines:
        moved()
        # The failure of one line is its own: the others are stored.
        with recorder.never_raising():
            if isinstance(line, SpoolNote):
                recorder.add(note_events(header.runtime, line))
            else:
                recorder.line(line, parse(line))
        for chain in heard:
            chain.check()
    with recorder.never_raising():
        recorder.end()
    _close_all(heard)
    if (problem := recorder.problem) is not None:
        if not _is_of_the_spool(problem):
            raise problem
        what = f"not all of {path} could be read, and the rest of it is stored: {problem}"
        raise BadRecord(what, hint="what it holds are the lines that a program printed") from problem
    return tuple(dict.fromkeys(chain.name for chain in heard))


def _close_all(chains: Sequence[_SpooledChain]) -> None:
    """Store the rest of every chain; the first that could not be is told when all have been tried."""
    failed: list[Exception] = []
    for chain in chains:
        try:
            chain.close()
        except Exception as problem:  # noqa: BLE001 (the failure of one chain is its own)
            failed.append(problem)
    if failed:
        raise failed[0]


class _SpooledChain:
    """The tracker of an agent, given what the store does not have of it: the run may have stored its beginning."""

    def __init__(self, store: Store, header: SpoolHeader, opening: Opening) -> None:
        self.name = opening.name
        branch = store.find_name(LIVE_BRANCH + opening.name)
        recorded = recorded_events(store, branch.target)[0] if branch is not None else ()
        self._recorded = recorded
        self._there: Counter[bytes] | None = None
        self._started = header.started
        row = find_session(store, opening.name)
        file = store.get_commit(row.tip) if row is not None and row.source and row.tip else None
        self._in_file = None if file is None else kept_events(store, file)
        """What the session's file holds, where that was imported meanwhile: the rest is known at the end."""
        self._held: list[Event] = []
        self._tracker = track(store, opening, header.facts, warn=lambda text: None, now=lambda: header.started)

    @property
    def current(self) -> str:
        return self._tracker.current

    @property
    def pending(self) -> int:
        return self._tracker.pending

    def feed(self, events: Sequence[Event], *, more: bool = False) -> None:
        left = [event for event in events if self._is_new(event)]
        if self._in_file is None:
            self._tracker.feed(left, more=more)
        else:
            self._held += left

    def checkpoint(self, reason: str) -> None:
        self._tracker.checkpoint(reason)

    def check(self) -> None:
        """Raise where the store refuses what it was given: each further line would wait for it as long again."""
        if (problem := self._tracker.problem) is not None:
            # A bug of the store's is not the spool's, which would be set aside for it.
            is_known = isinstance(problem, HarkenError) and not isinstance(problem, BadRecord)
            again = HarkenError(f"{type(problem).__name__}: {problem}", hint="the next command that writes tries again")
            raise problem if is_known else again

    def _is_new(self, event: Event) -> bool:
        name = _event_name(event)
        if self._there is None:  # the first event of the run says where its part begins
            self._there = _of_this_run(self._recorded, name, self._started)
        if not self._there[name]:
            return True
        self._there[name] -= 1
        return False

    def close(self) -> None:
        """Store the rest; the spool stays where that cannot be."""
        if self._in_file is not None:
            self._tracker.feed(live_rest(self._held, self._in_file).events, more=True)
        try:
            self._tracker.close()
        except HarkenError:
            self.check()
            raise


def _of_this_run(recorded: Iterable[Event], first: bytes, started: int) -> Counter[bytes]:
    """How often each event stands in what a run had stored of itself, by the name of its first event and the time at
    which it started. What earlier runs of the session stored does not count: a program may print the same lines in
    each of its runs."""
    # Their names and not the events: a session may be larger than the memory.
    there: Counter[bytes] = Counter()
    for event in recorded:
        if _is_noted(event) and event.time is not None and event.time < started:
            there.clear()
        elif (name := _event_name(event)) == first or there:
            there[name] += 1
    return there


def _is_noted(event: Event) -> bool:
    """Whether a line of ours may have told it: these have the time at which they were written."""
    return isinstance(event, Prompt) or (isinstance(event, System) and event.subtype == "shutdown")


def _event_name(event: Event) -> bytes:
    """A short name that no other event of a run has."""
    return chunk_hash(encode_event(event))
