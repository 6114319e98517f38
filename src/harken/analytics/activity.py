"""When work happens: by hour and weekday, and how many sessions at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from harken.clock import local_hour
from harken.events import Event

from .steps import steps


class Activity(msgspec.Struct, kw_only=True, frozen=True):
    """What happened (`steps`) by weekday and hour."""

    hours: tuple[tuple[int, ...], ...]
    """Seven rows, Monday first, of 24 hours."""
    unknown: int = 0
    """Steps that nobody wrote the time of."""

    def __add__(self, other: Activity) -> Activity:
        """Two sessions together."""
        rows = zip(self.hours, other.hours, strict=True)
        return Activity(
            hours=tuple(tuple(a + b for a, b in zip(mine, theirs, strict=True)) for mine, theirs in rows),
            unknown=self.unknown + other.unknown,
        )


class Peak(msgspec.Struct, kw_only=True, frozen=True):
    """The most sessions that went on at the same time."""

    sessions: int = 0
    time: int | None = None
    """When that was first so."""


def of(events: Iterable[Event], hour: Callable[[int], tuple[int, int] | None] = local_hour) -> Activity:
    """Steps by the weekday and hour that `hour` gives for an instant: those of the local time zone."""
    counts = [[0] * 24 for _ in range(7)]
    unknown = 0
    for _, event in steps(events):
        place = None if event.time is None else hour(event.time)
        if place is None:
            unknown += 1
        else:
            counts[place[0]][place[1]] += 1
    return Activity(hours=tuple(map(tuple, counts)), unknown=unknown)


def peak(spans: Iterable[tuple[int | None, int | None]]) -> Peak:
    """The peak of sessions, each from its first instant to its last; one that ends as another begins meets it not."""
    ends: list[tuple[int, int]] = []
    for start, end in spans:
        if start is not None:
            # A session of one instant went on for that instant.
            last = start if end is None else end
            ends += [(start, 1), (max(last, start + 1), -1)]
    best, now = Peak(), 0
    for time, step in sorted(ends):
        now += step
        if now > best.sessions:
            best = Peak(sessions=now, time=time)
    return best
