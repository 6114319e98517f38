"""Where a session's time went: to people, to models, to tools, to compaction, or to nobody; as a whole, per agent, and
in windows of time.

The time between two steps of an agent (`steps`) belongs to what ended it: until a result comes a tool is at work,
until a person says something it is the person's turn. A person who takes longer than `IDLE` is away: that time is idle,
and so is the time until something comes in that nobody asked for. So an agent's times add up to the time from its first
step to its latest. Agents work side by side: theirs together are more than a clock shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from harken.clock import SECOND
from harken.events import Event

from .steps import COMPACTION, PROMPT, steps

IDLE = 300 * SECOND
"""A pause before a person's words that is longer than this is no thinking about them."""
_MOST_WINDOWS = 10_000
"""A session that says it took longer than so many windows is told in windows of several times the length."""


class TimeSpent(msgspec.Struct, kw_only=True, frozen=True):
    """Microseconds by what they were spent on, and how many steps there are of each kind."""

    prompt: int = 0
    """A person's turn."""
    response: int = 0
    """A model is answering, or asking for a tool."""
    tool: int = 0
    """A tool is at work."""
    thinking: int = 0
    compaction: int = 0
    idle: int = 0
    events: dict[str, int] = {}
    """How many prompts, responses, calls, results, thoughts and compactions."""


class ProfileWindow(msgspec.Struct, kw_only=True, frozen=True):
    """A window of time."""

    start: int
    spent: TimeSpent


class Profile(msgspec.Struct, kw_only=True, frozen=True):
    """Where the time went."""

    whole: TimeSpent
    agents: dict[str, TimeSpent]
    """By agent; empty is the session's own."""
    windows: tuple[ProfileWindow, ...] = ()
    """The windows in which something happened, where any were asked for."""


class _Stretch(NamedTuple):
    """From one step of an agent to the next."""

    agent: str
    kind: str
    state: str
    start: int | None
    end: int | None


def of(events: Iterable[Event], window: int = 0) -> Profile:
    """The profile of a session; `window` is how long a window is, in microseconds, and without one there are none."""
    stretches = list(_stretches(events))
    agents: dict[str, _Sum] = {}
    whole = _Sum()
    for stretch in stretches:
        for each in (whole, agents.setdefault(stretch.agent, _Sum())):
            each.add(stretch)
    return Profile(
        whole=whole.spent(),
        agents={agent: each.spent() for agent, each in agents.items()},
        windows=_windows(stretches, window) if window > 0 else (),
    )


class _Sum:
    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self.events: dict[str, int] = {}

    def add(self, stretch: _Stretch) -> None:
        self.count(stretch.kind)
        if stretch.start is not None and stretch.end is not None:
            self.spend(stretch.state, stretch.end - stretch.start)

    def count(self, kind: str) -> None:
        self.events[kind] = self.events.get(kind, 0) + 1

    def spend(self, state: str, micros: int) -> None:
        self.times[state] = self.times.get(state, 0) + micros

    def spent(self) -> TimeSpent:
        return TimeSpent(**self.times, events=dict(sorted(self.events.items())))


def _stretches(events: Iterable[Event]) -> Iterator[_Stretch]:
    last: dict[str, int] = {}
    for kind, event in steps(events):
        agent, now = event.agent_id, event.time
        before = last.get(agent)
        # Records may be written down out of order: time does not go backwards for that.
        start = None if before is None or now is None else min(before, now)
        yield _Stretch(agent, kind, _state(kind, 0 if start is None or now is None else now - start), start, now)
        if now is not None:
            last[agent] = max(now, last.get(agent, now))


_STATES = {"response": "response", "call": "response", "result": "tool", "thinking": "thinking"}


def _state(kind: str, took: int) -> str:
    if kind == PROMPT:
        return "idle" if took > IDLE else "prompt"
    return "compaction" if kind == COMPACTION else _STATES.get(kind, "idle")


def _windows(stretches: list[_Stretch], size: int) -> tuple[ProfileWindow, ...]:
    ends = [stretch.end for stretch in stretches if stretch.end is not None]
    if not ends:
        return ()
    size *= (max(ends) - min(ends)) // (size * _MOST_WINDOWS) + 1
    found: dict[int, _Sum] = {}
    for stretch in stretches:
        if stretch.end is None:
            continue
        found.setdefault(stretch.end // size, _Sum()).count(stretch.kind)
        at = stretch.end if stretch.start is None else stretch.start
        while at < stretch.end:
            until = min(stretch.end, (at // size + 1) * size)
            found.setdefault(at // size, _Sum()).spend(stretch.state, until - at)
            at = until
    return tuple(ProfileWindow(start=place * size, spent=found[place].spent()) for place in sorted(found))
