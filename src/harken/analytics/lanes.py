"""When each agent of a session did what: segments of time, marks between them, and the pauses that can be folded.

The time between two steps of an agent belongs to what ended it, as in the profile (`profile.py`): until a result comes
a tool is at work, until an answer comes a model is. What took longer than `IDLE` before a person's words was a pause.
A drawing has room for so many segments: where there are more, those that fall together are told as one, as what most
of their time was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from .profile import IDLE

PROMPT, ANSWER, THINKING, TOOL, WAITING, COMPACTION = KINDS = (
    "prompt", "answer", "thinking", "tool", "waiting", "compaction",
)  # fmt: skip
A_MOMENT = 1_000_000
"""Microseconds in which two programs write down what is one end."""
INJECTED = "injected"
FAILURE = "failure"


class LaneStep(NamedTuple):
    """Something an agent was done with at an instant."""

    time: int
    kind: str
    """One of `KINDS`, or `injected`: something came that nobody had asked for."""
    record: str
    event: int
    failed: bool = False


class LaneSegment(NamedTuple):
    """A stretch of time in which an agent did one thing."""

    start: int
    end: int
    kind: str
    record: str
    """The record that ended it; of several together that of the longest."""
    event: int
    merged: int = 1
    """How many are told as one."""


class LaneMark(NamedTuple):
    """An instant at which something stands out."""

    time: int
    kind: str
    """`prompt`, `compaction` or `failure`."""
    record: str
    event: int
    merged: int = 1
    """How many are told as one."""


class Lane(NamedTuple):
    """What one agent did, in the order of time."""

    segments: list[LaneSegment]
    marks: list[LaneMark]


def lane(steps: Iterable[LaneStep]) -> Lane:
    """The segments and marks of one agent's steps."""
    segments: list[LaneSegment] = []
    marks: list[LaneMark] = []
    last: int | None = None
    for time, kind, record, event, failed in sorted(steps, key=_time):
        if kind in (PROMPT, COMPACTION):
            marks.append(LaneMark(time, kind, record, event))
        if failed:
            marks.append(LaneMark(time, FAILURE, record, event))
        if last is not None and kind != INJECTED and not (kind == PROMPT and time - last > IDLE):
            segments.append(LaneSegment(last, time, kind, record, event))
        last = time
    return Lane(segments, marks)


def _time(step: LaneStep) -> int:
    return step.time


def is_at_work_behind(lane: Lane, time: int) -> bool:
    """Whether an agent was at work at an instant, or was yet to begin; not one that begins again behind it. Its last
    record may be written a moment behind the result that its maker waited for."""
    if not lane.segments or lane.segments[-1].end <= time + A_MOMENT:
        return False
    later = next(one for one in lane.segments if one.end > time)
    return later.start < time or later is lane.segments[0]


def launching(lane: Lane, calls: Container[tuple[str, int]]) -> Lane:
    """The lane, where calls, by record and number, only launched an agent and did not wait for it."""
    segments = [
        one._replace(kind=TOOL) if one.kind == WAITING and (one.record, one.event) in calls else one
        for one in lane.segments
    ]
    return lane._replace(segments=segments)


def span(lanes: Iterable[Lane]) -> tuple[int, int] | None:
    """From the first instant of all to the last; None where nothing has a time."""
    starts: list[int] = []
    ends: list[int] = []
    for segments, marks in lanes:
        for times in ([segments[0].start, segments[-1].end] if segments else [], _ends(marks)):
            if times:
                starts.append(times[0])
                ends.append(times[-1])
    return (min(starts), max(ends)) if starts else None


def _ends(marks: Sequence[LaneMark]) -> list[int]:
    return [marks[0].time, marks[-1].time] if marks else []


def busy(lanes: Iterable[Lane]) -> list[tuple[int, int]]:
    """When somebody did something, without overlaps; a person's turn is not that."""
    found: list[list[int]] = []
    spans = sorted((one.start, one.end) for lane in lanes for one in lane.segments if one.kind != PROMPT)
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return [(start, end) for start, end in found]


def gaps(lanes: Sequence[Lane], worked: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """The pauses of more than `IDLE` in which nobody did anything; `worked` is when somebody did (`busy`)."""
    times = [begin, *(instant for both in worked for instant in both), end]
    marks = sorted(mark.time for lane in lanes for mark in lane.marks)
    found = []
    for before, after in zip(times[::2], times[1::2], strict=True):
        if after - before > IDLE:
            inside = marks[bisect_left(marks, before) : bisect_left(marks, after)]
            edges = [before, *inside, after]
            found += [(one, other) for one, other in pairwise(edges) if other - one > IDLE]
    return found


def spent(segments: Iterable[LaneSegment]) -> dict[str, int]:
    """Microseconds by kind."""
    found: dict[str, int] = {}
    for one in segments:
        found[one.kind] = found.get(one.kind, 0) + one.end - one.start
    return found


def at_once(lanes: Sequence[Lane]) -> list[tuple[int, int]]:
    """How many agents did something, from each instant on at which that changed; waiting for another is not that."""
    changes: dict[int, int] = {}
    for lane in lanes:
        for one in lane.segments:
            if one.kind not in (PROMPT, WAITING):
                changes[one.start] = changes.get(one.start, 0) + 1
                changes[one.end] = changes.get(one.end, 0) - 1
    found, now = [], 0
    for time in sorted(time for time, change in changes.items() if change):
        now += changes[time]
        found.append((time, now))
    return found


def most_in(counts: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """The most of such counts in a window, what held at its beginning included."""
    first = max(0, bisect_left(counts, begin, key=_instant) - 1)
    return max((count for time, count in counts[first:] if time < end), default=0)


def _instant(count: tuple[int, int]) -> int:
    return count[0]


def clipped(spans: Iterable[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """What of spans lies in a window."""
    return [(max(one, begin), min(other, end)) for one, other in spans if one < end and other > begin]


def within(lane: Lane, begin: int, end: int) -> Lane:
    """What of a lane lies in a window; a segment that reaches over its edge is cut there."""
    segments = lane.segments
    if segments and segments[0].start >= begin and segments[-1].end <= end:
        return Lane(segments, [mark for mark in lane.marks if begin <= mark.time <= end])
    first = bisect_left(lane.segments, begin, key=_end)
    segments = []
    for one in lane.segments[first:]:
        if one.start > end:
            break
        segments.append(one._replace(start=max(one.start, begin), end=min(one.end, end)))
    return Lane(segments, [mark for mark in lane.marks if begin <= mark.time <= end])


def _end(segment: LaneSegment) -> int:
    return segment.end


def reduced(lane: Lane, begin: int, end: int, most: int) -> Lane:
    """A lane with so many segments at most, and as many marks of each kind; what falls together is told as one."""
    width = max(1, -(-(end - begin) // max(1, most)))
    segments = lane.segments
    if len(segments) > most:
        bins: dict[int, list[LaneSegment]] = {}
        for one in segments:
            bins.setdefault((one.start - begin) // width, []).append(one)
        segments = [_together(several) for several in bins.values()]
    return Lane(segments, _fewer(lane.marks, begin, width, most))


def _together(several: list[LaneSegment]) -> LaneSegment:
    if len(several) == 1:
        return several[0]
    times = spent(several)
    kind = max(times, key=times.__getitem__)
    longest = max((one for one in several if one.kind == kind), key=lambda one: one.end - one.start)
    count = sum(one.merged for one in several)
    return longest._replace(start=several[0].start, end=max(one.end for one in several), merged=count)


def _fewer(marks: Sequence[LaneMark], begin: int, width: int, most: int) -> list[LaneMark]:
    if len(marks) <= most:
        return list(marks)
    bins: dict[tuple[str, int], LaneMark] = {}
    for mark in marks:
        place = (mark.kind, (mark.time - begin) // width)
        known = bins.get(place)
        bins[place] = mark if known is None else known._replace(merged=known.merged + 1)
    return list(bins.values())
