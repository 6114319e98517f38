"""The stories of several agents as one, in the order of time and never an effect before its cause."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence

import msgspec

from harken.events import Event
from harken.events.records import by_record


class ToldRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A record of an agent's story."""

    events: tuple[Event, ...]
    after: tuple[str, ...] = ()
    """Records that come before it, besides those that its events name as their cause or substance."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.events[0].message_id

    @property
    def time(self) -> int | None:
        """The first instant that it names."""
        return next((event.time for event in self.events if event.time is not None), None)


Story = list[ToldRecord]


def records_of(events: Sequence[Event]) -> Story:
    """The events of one agent as records."""
    return [ToldRecord(events=tuple(record)) for record in by_record(events)]


def with_heard(story: Story, heard: Story) -> Story:
    """A story with records of other sources put in where their times belong; one without a time comes last."""
    if not heard:
        return story
    told: Story = []
    waiting = sorted(heard, key=lambda record: (record.time is None, record.time or 0))[::-1]
    for record in story:
        while waiting and waiting[-1].time is not None and record.time is not None and waiting[-1].time < record.time:
            told.append(waiting.pop())
        told.append(record)
    return [*told, *waiting[::-1]]


def side_by_side(stories: Sequence[Story]) -> Story:
    """Several stories of one agent as one: by time where they overlap, else one after the other. Each keeps its own
    order, and one that tells no time comes behind the one before it."""
    told: list[tuple[int, ToldRecord]] = []
    latest = 0
    for story in stories:
        now = next((record.time for record in story if record.time is not None), latest)
        for record in story:
            now = max(now, record.time or now)
            told.append((now, record))
        latest = max(latest, now)
    return [record for _, record in sorted(told, key=lambda one: one[0])]


def in_order(stories: Sequence[Story]) -> Iterator[Event]:
    """All events. Within a story its own order stands; a record waits for what it names, as far as somebody tells that.
    Where two wait for each other, the earlier goes on."""
    return _Telling(stories).events()


class _Telling:
    def __init__(self, stories: Sequence[Story]) -> None:
        self._stories = stories
        self._next = [0] * len(stories)
        self._latest = [0] * len(stories)
        self._told: set[str] = set()
        self._there = {record.name for story in stories for record in story if record.name}
        self._ready: list[tuple[int, int]] = []
        self._waiting: dict[str, list[int]] = {}
        self._parked: set[int] = set()
        self._by_time: list[tuple[int, int]] = []
        """The parked stories, the earliest first, and some that are parked no more."""
        self._links: dict[int, _Links] = {}
        """What the next record of a story waits for."""

    def events(self) -> Iterator[Event]:
        for number in range(len(self._stories)):
            self._queue(number)
        while self._ready or self._parked:
            number = heapq.heappop(self._ready)[1] if self._ready else self._give_up()
            record = self._stories[number][self._next[number]]
            self._next[number] += 1
            yield from record.events
            self._told.add(record.name)
            self._links.pop(number, None)
            for other in self._waiting.pop(record.name, ()):
                if other in self._parked:
                    self._parked.remove(other)
                    self._queue(other)
            self._queue(number)

    def _queue(self, number: int) -> None:
        """Put a story where its next record can be told, or where it waits."""
        place = self._next[number]
        if place == len(self._stories[number]):
            return
        record = self._stories[number][place]
        self._latest[number] = max(self._latest[number], record.time or 0)
        if number not in self._links:
            self._links[number] = _Links(record)
        if missing := self._links[number].missing(lambda name: self._is_to_come(name, record)):
            self._waiting.setdefault(missing, []).append(number)
            self._parked.add(number)
            heapq.heappush(self._by_time, (self._latest[number], number))
        else:
            heapq.heappush(self._ready, (self._latest[number], number))

    def _is_to_come(self, name: str, record: ToldRecord) -> bool:
        return name not in self._told and name in self._there and name != record.name

    def _give_up(self) -> int:
        """Stories wait for each other: the one that began earliest goes on."""
        while True:
            latest, number = heapq.heappop(self._by_time)
            if number in self._parked and latest == self._latest[number]:
                self._parked.remove(number)
                return number


class _Links:
    """The records that come before one. What was told once stays told, so each is passed once."""

    def __init__(self, record: ToldRecord) -> None:
        links = (name for event in record.events for name in (event.substance, *event.causes()) if name)
        self._names = itertools.chain(record.after, links)
        self._name = next(self._names, "")

    def missing(self, is_to_come: Callable[[str], bool]) -> str:
        """The next one that is still to come; empty where none is."""
        while self._name and not is_to_come(self._name):
            self._name = next(self._names, "")
        return self._name
