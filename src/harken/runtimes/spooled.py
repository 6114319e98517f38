"""Storing spools: what runs could not put into the store while they lasted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harken.context import find_session
from harken.context.live import kept_events, live_rest, recorded_events
from harken.context.names import LIVE_BRANCH
from harken.errors import HarkenError
from harken.events import Event
from harken.events.cbor import encode_event
from harken.store import Store

from . import base
from .display import parse
from .live import track
from .recorder import Opening, Recorder
from .spool import SpoolHeader, SpoolNote, note_events, read_spool, spools, taken


class SpoolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a spool."""

    path: str
    sessions: tuple[str, ...] = ()
    """The sessions it was of."""
    problem: str = ""
    """Why it could not be stored; it is still there then."""
    hint: str = ""


def store_spools(store: Store) -> list[SpoolResult]:
    """Store every spool beside the store whose run is over. The failure of one is its own."""
    return [result for path in spools(store) if (result := _store_one(store, path)) is not None]


def _store_one(store: Store, path: Path) -> SpoolResult | None:
    try:
        with taken(path) as handle:
            if handle is None:
                return None
            sessions = _store(store, handle, path)
            path.unlink()
            return SpoolResult(path=str(path), sessions=sessions)
    except FileNotFoundError:
        return None  # somebody else was faster
    except HarkenError as problem:
        return SpoolResult(path=str(path), problem=str(problem), hint=problem.hint or "")
    except Exception as problem:  # noqa: BLE001 (whatever is wrong with a file, the others are stored)
        return SpoolResult(path=str(path), problem=f"{path} could not be stored: {type(problem).__name__}: {problem}")


def _store(store: Store, handle: int, path: Path) -> tuple[str, ...]:
    header, lines = read_spool(handle, path)
    launch = base.get(header.runtime).launch
    if launch is None:
        raise HarkenError(f"{path} is of {header.runtime}, which cannot be run", hint="is a plug-in missing?")
    heard: list[tuple[Opening, _Heard]] = []

    def open_tracker(opening: Opening) -> _Heard:
        heard.append((opening, _Heard()))
        return heard[-1][1]

    problems: list[str] = []
    recorder = Recorder(launch, open_tracker, problems.append, now=lambda: header.started, unnamed=header.session)
    for line in lines:
        if isinstance(line, SpoolNote):
            recorder.add(note_events(header.runtime, line))
        else:
            recorder.line(line, parse(line))
    recorder.end()
    for opening, agent in heard:
        _keep(store, header, opening, _not_kept(store, opening.name, agent.events))
    if problems:
        hint = "it stays where it is; what could be read of it is stored"
        raise HarkenError(f"{path} could not be read to its end: {problems[0]}", hint=hint)
    return tuple(dict.fromkeys(opening.name for opening, _ in heard))


class _Heard:
    """Takes what an agent's tracker would be given."""

    current = ""
    pending = 0

    def __init__(self) -> None:
        self.events: list[Event] = []

    def feed(self, events: Sequence[Event], *, more: bool = False) -> None:
        self.events += events

    def checkpoint(self, reason: str) -> None:
        pass


def _not_kept(store: Store, session: str, events: Sequence[Event]) -> list[Event]:
    """What the store does not have of an agent: the run may have stored its beginning, and an import its file."""
    name = store.find_name(LIVE_BRANCH + session)
    there = Counter(map(encode_event, recorded_events(store, name.target)[0])) if name is not None else Counter()
    left = []
    for event in events:
        key = encode_event(event)
        if there[key]:
            there[key] -= 1
        else:
            left.append(event)
    row = find_session(store, session)
    if row is not None and row.source and row.tip:
        return live_rest(left, kept_events(store, store.get_commit(row.tip))).events
    return left


def _keep(store: Store, header: SpoolHeader, opening: Opening, events: Sequence[Event]) -> None:
    if not events:
        return
    told: list[str] = []
    tracker = track(store, opening, header.facts, warn=told.append, now=lambda: header.started)
    tracker.feed(events, more=True)
    try:
        tracker.close()
    except HarkenError as problem:
        hint = "the next command that writes tries again"
        raise HarkenError(f"{problem}: {told[-1]}" if told else str(problem), hint=hint) from problem
