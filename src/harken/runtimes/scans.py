"""Scans for runtimes that have none of their own, made from the reader of their format.

`line_scan` is for sessions that are lines of JSON: one pass, a cut before every prompt of a person but the first.
`document_scan` is for documents and the rows of databases: a delta for every message that is final. What both count is
what the format's reader reads, so an import reports the same figures that are counted later. A line or a message
depends on no other here; a format whose records do needs a scan that knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from harken.events import Event, Output, Prompt, Response, ToolCall, ToolResult
from harken.events.base import clean, folder, named
from harken.events.messages import asked_first
from harken.events.tally import Tally
from harken.formats import Delta
from harken.formats.facts import FileFacts, Scan

from .display import parse

TITLE = 80
LARGEST = 256 << 10
"""A delta of this size is closed at the next line."""
FINGERPRINT = 3

ReadRecord = Callable[[bytes], Iterable[Event]]


def line_scan(runtime: str, read: ReadRecord, session_of: Callable[[dict[str, Any]], str]) -> Scan:
    """The scan of a runtime whose sessions are lines: `read` gives the events of one line, `session_of` the session
    that a record names, or nothing."""

    def scan(data: bytes, state: bytes) -> FileFacts:
        return _LineScan(read, session_of, state).run(data, runtime)

    return scan


class DocumentParts(msgspec.Struct, frozen=True, kw_only=True):
    """A document taken apart: slices of it, verbatim."""

    closed: Sequence[bytes]
    """Messages whose state is final, and behind which there are others."""
    open: Sequence[bytes]
    """Those that may still change; the tail holds them."""
    tail: bytes
    """What stands around the closed messages, so that the format's `join` can put the document together again."""
    session: str = ""
    project: str = ""
    """The folder that was worked in, where the document names one."""
    damage: str = ""
    """Why its messages cannot be found, where they cannot; all of it then counts as one record that cannot be read."""


def document_scan(runtime: str, read: ReadRecord, take_apart: Callable[[bytes], DocumentParts]) -> Scan:
    """The scan of a runtime whose sessions are documents: `take_apart` finds the messages, `read` gives the events of
    one."""

    def scan(data: bytes, state: bytes) -> FileFacts:
        parts = take_apart(data)
        now = SessionCounts(session=named(parts.session), project=clean(parts.project))
        deltas: list[Delta] = []
        for message in parts.closed:
            deltas.append(_document_delta(now, deltas, [list(read(message))], message))
        records = [list(read(message)) for message in parts.open]
        if parts.damage:
            records.append([Output(raw=parts.tail, why=parts.damage)])
        deltas.append(_document_delta(now, deltas, records, parts.tail, closed=False))
        return now.facts(runtime, deltas, SessionCounts())

    return scan


def _document_delta(
    now: SessionCounts,
    before: Sequence[Delta],
    records: Sequence[Sequence[Event]],
    content: bytes,
    *,
    closed: bool = True,
) -> Delta:
    """The next delta of a document, whose records are counted."""
    said = now.messages
    times = [now.add(events) for events in records]
    start = before[-1].end if before else 0
    return Delta(
        start=start,
        end=start + len(content),
        time=max((time for time in times if time is not None), default=None),
        closed=closed,
        records=len(records),
        messages=now.messages - said,
        content=content,
    )


class SessionCounts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a session at a place in it."""

    offset: int = 0
    session: str = ""
    title: str = ""
    project: str = ""
    records: int = 0
    opaque: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    waiting: list[str] = []
    """Calls that have no result yet; a cut never parts the two."""
    fingerprint: list[str] = []

    def at(self, offset: int) -> SessionCounts:
        """The same at a cut, to go on from."""
        return msgspec.structs.replace(self, offset=offset, tally=self.tally.without_requests())

    def add(self, events: Sequence[Event]) -> int | None:
        """Count the events of one record; the answer is its time."""
        self.records += 1
        self.tally.record(events)
        self.title = self.title or " ".join(clean(asked_first(events)).split())[:TITLE]
        for event in events:
            if type(event) is ToolCall:
                self.waiting = [*self.waiting, event.id]
            elif type(event) is ToolResult:
                self.waiting = [call for call in self.waiting if call != event.id]
        self.opaque += any(type(event) is Output and bool(event.why) for event in events)
        spoken = [event for event in events if isinstance(event, (Prompt, Response))]
        names = [event.message_id for event in spoken if event.message_id]
        self.fingerprint = [*self.fingerprint, *names][:FINGERPRINT]
        return max((event.time for event in events if event.time is not None), default=None)

    @property
    def messages(self) -> int:
        """Prompts and responses so far."""
        return self.tally.messages

    def facts(self, runtime: str, deltas: Sequence[Delta], closed: SessionCounts) -> FileFacts:
        """As an importer wants it; `closed` is the state at the last cut."""
        return FileFacts(
            runtime=runtime,
            session=self.session,
            title=self.title,
            project=self.project,
            records=self.records,
            opaque=self.opaque,
            messages=self.messages,
            tally=self.tally,
            fingerprint=tuple(self.fingerprint),
            deltas=tuple(deltas),
            offset=closed.offset,
            state=msgspec.json.encode(closed),
        )


class _LineScan:
    """One pass. `now` goes with the lines, `closed` stays at the last cut."""

    def __init__(self, read: ReadRecord, session_of: Callable[[dict[str, Any]], str], state: bytes) -> None:
        self._read, self._session_of = read, session_of
        self._closed = msgspec.json.decode(state, type=SessionCounts) if state else SessionCounts()
        self._now = self._closed.at(self._closed.offset)
        self._deltas: list[Delta] = []
        self._start = self._end = self._closed.offset
        self._time: int | None = None
        self._before = self._closed
        """The state where the open delta begins."""

    def run(self, data: bytes, runtime: str) -> FileFacts:
        """What there is to know of the bytes behind the last cut."""
        base, at = self._closed.offset, 0
        while at < len(data):
            end = data.find(b"\n", at) + 1 or len(data)
            line = bytes(data[at:end])
            self._line(line, base + at, ended=line.endswith(b"\n"))
            self._end = base + end
            at = end
        if self._end > self._start:
            self._cut(closed=False)
        return self._now.facts(runtime, self._deltas, self._closed)

    def _line(self, line: bytes, offset: int, *, ended: bool) -> None:
        events = list(self._read(line)) if line.strip() else []
        # What is cut off may still become another record, so an unfinished line decides nothing.
        if ended and offset > self._start and self._begins_turn(events, offset):
            self._cut(closed=True)
            self._closed = self._before
        if line.strip():
            self._now.session = self._now.session or named(self._session_of(parse(line)))
            if not self._now.project and b'"cwd"' in line:
                self._now.project = folder(parse(line))
            self._time = self._now.add(events) or self._time

    def _begins_turn(self, events: Sequence[Event], offset: int) -> bool:
        if self._now.waiting or self._now.messages == self._before.messages:
            return False
        spoken = any(isinstance(event, Prompt) and event.source != "injected" for event in events)
        return spoken or offset - self._start >= LARGEST

    def _cut(self, *, closed: bool) -> None:
        delta = Delta(
            start=self._start,
            end=self._end,
            time=self._time,
            closed=closed,
            records=self._now.records - self._before.records,
            messages=self._now.messages - self._before.messages,
        )
        self._deltas.append(delta)
        self._start, self._time, self._before = self._end, None, self._now.at(self._end)
