"""The texts of messages that were found. The index has none: they are read from the store, of those that are shown."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from harken.context.readable import for_readers
from harken.context.summary import written
from harken.context.walk import place_in, places
from harken.errors import HarkenError
from harken.events import Event
from harken.formats import Format, get
from harken.store.base import Commit, Store

from .rows import SUMMARY, TITLE, said


class MessagePlace(NamedTuple):
    """Where a message stands: what the index has kept of it."""

    role: str
    commit: str
    """The full name of its commit; empty for a title."""
    record: str
    """What its record is called; empty where it has no name."""
    title: str
    """The title of its session."""
    n: int
    event: int
    size: int
    sum: int
    end: int | None
    """The place in its chain behind the commit's delta, where that is known."""


def read_texts(store: Store, places: Sequence[MessagePlace]) -> Iterator[tuple[int, str | HarkenError]]:
    """The number of each message with its text, or why that cannot be had; one after the other."""
    by_commit: dict[str, list[MessagePlace]] = {}
    for place in places:
        if place.role == TITLE:
            yield place.n, place.title
        elif place.role == SUMMARY:
            yield place.n, _summary(store, place)
        else:
            by_commit.setdefault(place.commit, []).append(place)
    for name, delta in _deltas(store, list(by_commit)):
        for place in by_commit[name]:
            yield place.n, delta if isinstance(delta, HarkenError) else delta.text_of(place)


def _summary(store: Store, place: MessagePlace) -> str | HarkenError:
    try:
        notes = store.annotations(place.commit)
    except HarkenError as problem:
        return problem
    found = written(notes)
    return found.value if found else ""


class ReadableDelta:
    """What a commit adds, read as far as it has to be."""

    def __init__(self, format: Format, data: bytes) -> None:
        self._format = format
        self._data = data

    def text_of(self, place: MessagePlace) -> str | HarkenError:
        """The text of one of its messages."""
        try:
            for line in self._lines_of(place):
                if (text := _text(place, self._format.read_delta(line))) is not None:
                    return text
            text = _text(place, self._events)
        except HarkenError as problem:
            return problem
        except Exception as problem:  # noqa: BLE001  a format of somebody else may break in any way
            return HarkenError(
                f"{type(problem).__name__}: {problem}", hint="`harken doctor` says what each format can do"
            )
        if text is None:
            hint = "`harken index --rebuild` makes it again"
            return HarkenError("the store says something else than the index", hint=hint)
        return text

    @cached_property
    def _events(self) -> list[Event]:
        return self._format.read_delta(self._data)

    def _lines_of(self, place: MessagePlace) -> Iterator[bytes]:
        """The lines that may be the record: reading one is a fraction of the work. Its text is compared with what the
        index knows of it, so a line that says something else on its own does no harm."""
        format, data = self._format, self._data
        if not place.record or format.delta_reader is not None or format.places is not len:
            return
        if (offset := place_in(place.record)) is not None:
            at = -1 if place.end is None else offset - (place.end - places(format, data))
            if 0 <= at < len(data):
                yield data[at : data.find(b"\n", at) + 1 or None]
            return
        name = place.record.encode()
        at = data.find(name)
        for _ in range(_LINES):
            if at < 0:
                return
            end = data.find(b"\n", at) + 1 or len(data)
            yield data[data.rfind(b"\n", 0, at) + 1 : end]
            at = data.find(name, end)


_LINES = 4
"""A record's name stands in its own line, and in those that follow from it."""


def _text(place: MessagePlace, events: Iterable[Event]) -> str | None:
    """The text of one message among events; None where it is not there."""
    named = place.record[:1] not in ("", "@")
    for event in events:
        if event.index != place.event or (named and event.message_id != place.record):
            continue
        told = said(event)
        if told is not None and len(told.text) == place.size and zlib.crc32(told.text.encode()) == place.sum:
            return told.text
    return None


def _deltas(store: Store, names: Sequence[str]) -> Iterator[tuple[str, ReadableDelta | HarkenError]]:
    """What each commit adds; a frame that several share is opened once."""
    commits: list[Commit] = []
    for name in names:
        try:
            commits.append(store.get_commit(name))
        except HarkenError as problem:
            yield name, problem
    done = 0
    try:
        contents = store.get_many([commit.artifact for commit in commits], large=for_readers(store, commits))
        for commit, data in zip(commits, contents, strict=True):
            yield commit.id, _delta(commit, data)
            done += 1
    except HarkenError:
        for commit in commits[done:]:  # one of them cannot be read, and perhaps not this one
            try:
                yield commit.id, _delta(commit, store.get(commit.artifact))
            except HarkenError as problem:
                yield commit.id, problem


def _delta(commit: Commit, data: bytes) -> ReadableDelta | HarkenError:
    try:
        return ReadableDelta(get(commit.format), data)
    except HarkenError as problem:
        return problem
