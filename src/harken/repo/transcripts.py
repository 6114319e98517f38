"""The transcripts of sessions, in ranges: only the deltas of the rows that are asked for are read."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harken.analytics.transcript_rows import CALL, COMPACTION, DeltaRows, RowEvents
from harken.context.chains import recall
from harken.context.lineage import agent_name, names_agents
from harken.context.readable import contents_of
from harken.context.session_events import names_one
from harken.context.standing import Standing, standing
from harken.context.walk import named, places
from harken.errors import Corrupt, HarkenError, NotFound, PartlyCorrupt
from harken.events import Event, Image, ToolCall
from harken.events.tool_kinds import AGENT, tool_kind
from harken.formats import Format, find
from harken.store import SessionRow, Store
from harken.store.base import WalkStep

from .transcript_layout import TranscriptLayout
from .transcript_making import make_beginning, make_layout

if TYPE_CHECKING:
    from harken.index import StoreIndex

    from .transcript_finding import FoundRows

KEPT_SESSIONS, KEPT_ROWS = 32, 1_000_000
"""How many sessions' layouts are kept, and how many rows and commits these have together."""
LARGE, LARGEST = 256 << 10, 16 << 20
"""A delta of so many bytes is kept for whoever asks for its next rows, unless it is as large as the second."""
UNTOLD = 200
"""Deltas that are looked through for a record that is not told."""
FOLLOW_SECONDS = 1.0
"""How long the index may catch up before rows are asked for."""


class ReadRow(NamedTuple):
    """A row that was read, or why it could not be."""

    number: int
    row: RowEvents | None
    problem: str = ""


class OpenTranscript(NamedTuple):
    """A session's transcript as it stands."""

    row: SessionRow
    layout: TranscriptLayout
    earlier: bool
    """Whether it is meant as it was at an earlier commit."""


class Transcripts:
    """The transcripts of a store's sessions. Several threads may ask."""

    def __init__(self, store: Store, index: Callable[[], StoreIndex]) -> None:
        self._store = store
        self._index = index
        self._lock = threading.Lock()
        self._making = [threading.Lock() for _ in range(KEPT_SESSIONS)]
        """Held while a layout is made that nobody has made before."""
        self._layouts: OrderedDict[str, TranscriptLayout] = OrderedDict()
        self._intervened: dict[tuple[str, ...], tuple[int, int]] = {}
        self._large: tuple[bytes, list[RowEvents]] = (b"", [])
        self._epoch = ""

    # -- where rows are ----------------------------------------------------------------------------------------

    def open(self, session: str, *, first: int | None = None) -> OpenTranscript:
        """The transcript of a session: its id, a unique beginning of it, or another REF of it. Whoever wants only so
        many of its first rows gets the layout of these, where to make all of it would take long."""
        self._drop_erased()
        found = standing(self._store, session)
        key = found.row.session if not found.earlier else f"{found.row.session}@{found.row.stand}"
        with self._lock:
            known = self._layouts.get(key)
        if known is None and first is not None:
            beginning = make_beginning(self._store, self.index(), found.row, first)
            if beginning is not None:
                return OpenTranscript(found.row, beginning, found.earlier)
        if known is None:
            with self._making[hash(key) % len(self._making)]:  # who asks at the same time waits for what is made
                with self._lock:
                    known = self._layouts.get(key)
                return self._opened(found, key, known)
        return self._opened(found, key, known)

    def _opened(self, found: Standing, key: str, known: TranscriptLayout | None) -> OpenTranscript:
        layout = make_layout(self._store, self.index(), found.row, known)
        with self._lock:
            self._layouts[key] = layout
            self._layouts.move_to_end(key)
            while len(self._layouts) > 1 and (
                len(self._layouts) > KEPT_SESSIONS or sum(map(_weight, self._layouts.values())) > KEPT_ROWS
            ):
                self._layouts.popitem(last=False)
        return OpenTranscript(found.row, layout, found.earlier)

    def _drop_erased(self) -> None:
        """Where something was erased the store has another epoch: sessions stand where they stood, and what is held of
        them may be what must be gone."""
        epoch = self._store.epoch
        with self._lock:
            if epoch != self._epoch:
                self._layouts.clear()
                self._intervened.clear()
                self._large, self._epoch = (b"", []), epoch

    def index(self) -> StoreIndex | None:
        """The index, as far as it could follow its store; None where there is none."""
        try:
            index = self._index()
            index.catch_up(seconds=FOLLOW_SECONDS, numbers=False)
        except (HarkenError, OSError, sqlite3.Error):
            return None
        return index

    # -- reading rows ------------------------------------------------------------------------------------------

    def rows(self, opened: OpenTranscript, start: int, count: int) -> list[ReadRow]:
        """So many rows from a number on."""
        layout = opened.layout
        end = min(len(layout), start + count)
        if start >= end:
            return []
        first, last = layout.delta_of(start), layout.delta_of(end - 1)
        found: list[ReadRow] = []
        for delta, rows in self._deltas(opened, [at for at in range(first, last + 1) if layout.has_rows(at)]):
            begin, behind = layout.starts[delta], layout.starts[delta + 1]
            for number in range(max(begin, start), min(behind, end)):
                if isinstance(rows, str):
                    found.append(ReadRow(number, None, rows))
                elif number - begin < len(rows):
                    found.append(ReadRow(number, rows[number - begin]))
                else:
                    found.append(ReadRow(number, None, "the index is not of this store; `harken index --rebuild`"))
        return found

    def some_rows(self, opened: OpenTranscript, numbers: Iterable[int]) -> Iterator[ReadRow]:
        """The rows of these numbers, in order."""
        layout = opened.layout
        wanted: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            wanted.setdefault(layout.delta_of(number), []).append(number)
        for delta, rows in self._deltas(opened, list(wanted)):
            for number in wanted[delta]:
                at = number - layout.starts[delta]
                if isinstance(rows, str) or at >= len(rows):
                    yield ReadRow(number, None, rows if isinstance(rows, str) else "it is not there")
                else:
                    yield ReadRow(number, rows[at])

    def place(self, opened: OpenTranscript, name: str, index: int = 0) -> int | None:
        """The number of the row of an event: of the record, where that event is in no row; None where it has none."""
        near: int | None = None
        for row, delta in opened.layout.candidates(name):
            for read in self._read_delta(opened, delta):
                events = (read.row.event, read.row.joined) if read.row is not None else ()
                if any(event is not None and _is(event, name, index) for event in events):
                    return read.number
                if near is None and any(event is not None and _is(event, name) for event in events):
                    near = read.number
            if near is None and row >= 0 and self._has_record(opened, delta, name):
                near = row
        if near is None:
            near = self._place_untold(opened, name, index)
        return near

    def _place_untold(self, opened: OpenTranscript, name: str, index: int) -> int | None:
        """The row behind a record that is not told here: it repeats what is said, or is of an agent that has a chain of
        its own. A delta that has a record twice may tell it once."""
        layout = opened.layout
        for delta in list(layout.told)[:UNTOLD]:
            if self._has_record(opened, delta, name):
                for read in self._read_delta(opened, delta):
                    joined = read.row.joined if read.row is not None else None
                    if joined is not None and _is(joined, name, index):
                        return read.number
                return min(layout.starts[delta + 1], len(layout) - 1) if len(layout) else None
        return None

    def _has_record(self, opened: OpenTranscript, delta: int, name: str) -> bool:
        """Whether a delta has a record that is in no row."""
        found = [events for _, events in self._events(opened, [delta]) if not isinstance(events, str)]
        return any(event.message_id == name for events in found for event in events.events)

    def _read_delta(self, opened: OpenTranscript, delta: int) -> list[ReadRow]:
        rows = opened.layout.rows_of(delta)
        return self.rows(opened, rows.start, len(rows))

    def find(self, opened: OpenTranscript, words: str) -> FoundRows:
        """The rows that hold some words."""
        from .transcript_finding import find_rows

        return find_rows(self, self._store, opened, words)

    def picture(self, opened: OpenTranscript, name: str, index: int, number: int) -> Image:
        """A picture of a transcript, by the event that it stands in and its number there."""
        from harken.views.transcript import pictures_of

        place = self.place(opened, name, index)
        for read in self.rows(opened, place, 1) if place is not None else ():
            events = (read.row.event, read.row.joined) if read.row is not None else ()
            for event in (event for event in events if event is not None and _is(event, name, index)):
                images = pictures_of(event)
                if 0 <= number < len(images):
                    return images[number]
        raise NotFound(f"there is no picture {number} in {name!r}", hint="a row of the transcript lists its pictures")

    # -- reading deltas ----------------------------------------------------------------------------------------

    def _deltas(self, opened: OpenTranscript, deltas: Sequence[int]) -> Iterator[tuple[int, list[RowEvents] | str]]:
        """The rows of deltas, or why they cannot be read."""
        layout = opened.layout
        if len(deltas) == 1 and layout.commits[deltas[0]] == self._large[0]:
            yield deltas[0], self._large[1]
            return
        for delta, events in self._events(opened, deltas):
            if isinstance(events, str):
                yield delta, events
                continue
            rows = DeltaRows(events.events).rows
            if events.is_reset:
                rows = [row for row in rows if row.kind == COMPACTION]
            told = layout.told.get(delta)
            if told is not None:
                rows = [row for row, is_told in zip(rows, told, strict=False) if is_told]
            if opened.row.agent:
                name = agent_name(opened.row)
                rows = [_of_agent(row, name) for row in rows]
            if LARGE <= events.size <= LARGEST:
                self._large = (layout.commits[delta], rows)
            yield delta, rows

    def _events(self, opened: OpenTranscript, deltas: Sequence[int]) -> Iterator[tuple[int, DeltaEvents | str]]:
        layout = opened.layout
        contents = contents_of(self._store, [layout.step(delta) for delta in deltas])
        for delta, (step, data) in zip(deltas, contents, strict=True):
            if isinstance(data, HarkenError):
                yield delta, str(data)
                continue
            try:
                yield delta, _read(layout, delta, step, data)
            except Exception as problem:  # noqa: BLE001  a format of somebody else may break in any way
                yield (
                    delta,
                    str(problem) if isinstance(problem, HarkenError) else f"{type(problem).__name__}: {problem}",
                )

    # -- who there is ------------------------------------------------------------------------------------------

    def agent_names(self, opened: OpenTranscript) -> dict[str, str]:
        """What the agents of a session are called that its own records tell of."""
        index = self._index()
        marks = ", ".join("?" * len(opened.layout.sessions))
        try:
            rows = index.query(f"SELECT agent, name FROM agents WHERE session IN ({marks})", [*opened.layout.sessions])
        except (HarkenError, OSError, sqlite3.Error):
            return {}
        return dict(rows)

    def spawned(self, opened: OpenTranscript) -> Callable[[ToolCall], str | None]:
        """The session of the sub-agent that a call made, or of the one that it names: whoever made an agent may send it
        back to work."""
        below = self.children(opened.row)
        made: dict[str, str] = {}
        for each in below:
            if call := self.call_of(each):
                made.setdefault(call, each.session)

        def session_of(call: ToolCall) -> str | None:
            if call.id in made or not below or tool_kind(call.name) != AGENT:
                return made.get(call.id)
            told = call.input.decode("utf-8", "replace")
            named = [each.session for each in below if names_one(told, agent_name(each))]
            return named[0] if len(named) == 1 else None

        return session_of

    def errands(self, family: Sequence[SessionRow]) -> dict[str, str]:
        """Of sub-agents, by their sessions, what the calls that made them say in a few words; of those whose call the
        index has not seen nothing."""
        made = {each.session: (each.parent, call) for each in family if each.parent and (call := self.call_of(each))}
        if not made:
            return {}
        within = sorted({each.session for each in family} | {parent for parent, _ in made.values()})
        calls = sorted({call for _, call in made.values()})
        sql = f"""
            SELECT s.session, c.call_id, c.what FROM calls c JOIN sessions s ON s.n = c.session
            WHERE s.session IN ({", ".join("?" * len(within))}) AND c.call_id IN ({", ".join("?" * len(calls))})
        """
        try:
            rows = self._index().query(sql, [*within, *calls])
        except (HarkenError, OSError, sqlite3.Error):
            return {}
        by_call: dict[str, dict[str, str]] = {}
        for session, call, what in rows:
            by_call.setdefault(call, {}).setdefault(session, what)
        # Programs number their calls anew in each session: the one above is asked first.
        found = {session: (by_call.get(call, {}), parent) for session, (parent, call) in made.items()}
        return {one: said.get(parent) or next(iter(said.values()), "") for one, (said, parent) in found.items()}

    def children(self, row: SessionRow) -> list[SessionRow]:
        """The sub-agents of a session, and theirs."""
        from harken.context.lineage import below

        def of(session: str) -> list[SessionRow]:
            try:
                return self._store.sessions(parent=session)
            except PartlyCorrupt as problem:
                return [each for each in problem.rest if each.parent == session]

        return below(row, of)

    def has_session(self, session: str) -> bool:
        """Whether a session of this very name is in the store, readable or not."""
        try:
            return self._store.find_session(session) is not None
        except Corrupt:
            return True

    def call_of(self, row: SessionRow) -> str:
        """The call that made a sub-agent; empty where nobody knows."""
        for known in recall(row).values():
            if known.spawned_from is not None:
                return str(known.spawned_from.get("call_id") or "")
        if not row.stand:
            return ""
        try:
            first = self._store.get_commit(self._store.beginning(row.stand, 1)[0].id)
        except HarkenError:
            return ""
        return str((first.spawned_from or {}).get("call_id") or "")

    def format_of(self, opened: OpenTranscript) -> Format | None:
        """The format of the session's newest commit; None where there is none, or nobody knows it."""
        return find(self._store.get_commit(opened.row.stand).format) if opened.row.stand else None

    def begins_like(self, row: SessionRow, characters: int) -> list[str]:
        """The ids of sessions that begin as this one's does; not of sub-agents."""
        try:
            near = self._store.sessions(prefix=row.session[:characters])
        except PartlyCorrupt as problem:
            near = problem.rest
        return [each.session for each in near if not each.parent]

    def tells_agents(self, opened: OpenTranscript) -> bool:
        """Whether the session's own records tell of its agents, so that all speak in one chain."""
        return bool(opened.row.stand) and names_agents(self._store.get_commit(opened.row.stand).format)

    def interventions(self, opened: OpenTranscript, most: int) -> tuple[int | None, int | None]:
        """How many deliveries hooks changed, and how much they blocked, in a session log of no more rows than this."""
        if opened.earlier or not self.tells_agents(opened) or len(opened.layout) > most:
            return None, None
        family = (opened.row, *self.children(opened.row))
        if not self._may_be_hooked(family):
            return 0, 0
        stands = tuple(row.stand for row in family)
        if (found := self._intervened.get(stands)) is None:
            from .looking import view_of

            try:
                kinds = [one["kind"] for one in view_of(self._store, opened.row.session).interventions()]
            except HarkenError:
                return None, None
            while len(self._intervened) >= KEPT_SESSIONS:
                self._intervened.pop(next(iter(self._intervened)), None)
            changed = kinds.count("changed")
            found = self._intervened[stands] = (changed, len(kinds) - changed)
        return found

    def _may_be_hooked(self, family: Sequence[SessionRow]) -> bool:
        """Whether hooks can have intervened: then all of the session is read."""
        from harken.index.moments import may_be_hooked

        try:
            return len(family) > 1 or family[0].lost or may_be_hooked(self._index(), family[0].stand)
        except (HarkenError, OSError, sqlite3.Error):
            return True

    def outcomes(self, opened: OpenTranscript, calls: Sequence[str]) -> Mapping[str, tuple[bool, int | None]]:
        """Of calls whose results stand in other deltas: whether each failed, and how many microseconds it took."""
        sessions = [*opened.layout.sessions]
        if not calls or not sessions:
            return {}
        within, names = ", ".join("?" * len(sessions)), ", ".join("?" * len(calls))
        sql = f"SELECT call_id, failed, took FROM calls WHERE session IN ({within}) AND call_id IN ({names})"
        try:
            rows = self._index().query(f"{sql} AND failed IS NOT NULL", [*sessions, *calls])
        except (HarkenError, OSError, sqlite3.Error):
            return {}
        return {call: (bool(failed), took) for call, failed, took in rows}


class DeltaEvents(NamedTuple):
    """What a delta says."""

    events: list[Event]
    size: int
    is_reset: bool
    """Whether it stands for everything below it, and only its summary is told."""


def _read(layout: TranscriptLayout, delta: int, step: WalkStep, data: bytes) -> DeltaEvents:
    format = find(step.format)
    if format is None or "read" not in format.can:
        raise NotFound(f"{step.format} cannot be read here", hint="install what reads it")
    resets = delta in layout.resets
    part = layout.part_of(delta)
    end = layout.ends[delta]
    begin = None if resets or end < 0 else end - places(format, data)
    if begin is None and not resets and (delta == part.first or layout.ends[delta - 1] >= 0):
        begin = 0 if delta == part.first else layout.ends[delta - 1]
    events = list(named(format, format.read_delta(data), begin))
    if part.caller:
        events = [_placed(event, part.caller) for event in events]
    return DeltaEvents(events, len(data), resets)


def _placed(event: Event, caller: str) -> Event:
    name = event.message_id
    found: Event = event.replace(message_id=caller + name) if name.startswith("@") else event
    return found


def _of_agent(row: RowEvents, agent: str) -> RowEvents:
    return row._replace(event=row.event.replace(agent_id=agent))


def _is(event: Event, name: str, index: int | None = None) -> bool:
    return event.message_id == name and index in (None, event.index)


def _weight(layout: TranscriptLayout) -> int:
    return len(layout) + len(layout.commits)


def open_calls(rows: Iterable[ReadRow]) -> list[str]:
    """The ids of calls among rows that have no result there."""
    found = []
    for read in rows:
        row = read.row
        if row is not None and row.kind == CALL and row.joined is None and isinstance(row.event, ToolCall):
            found.append(row.event.id)
    return [call for call in found if call]
