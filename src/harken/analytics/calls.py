"""Calls in a stream of events, each once and with its own result.

Some servers number calls anew in each reply, give two of one reply the same id, or none; some runtimes tell a call
again in another record. So an id alone says little: what is told again has the same agent, id, time and place in its
record. A result is that of the last record that calls by its id, and of the first call in there that has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from harken.events import Event, ToolCall, ToolResult


def told_as(event: ToolCall | ToolResult, record: str) -> tuple[object, ...] | None:
    """What calls and results share that are one, told in several records or in one again; None for one that nothing
    tells apart from others. `record` is what its record is called."""
    which = record if not event.id or event.time is None else event.time
    return (event.kind, event.agent_id, event.id, which, event.index) if which != "" else None


class AskedCall(Protocol):
    """A call that has no result yet."""

    @property
    def time(self) -> int | None:
        """When it was made."""

    @property
    def record(self) -> str | None:
        """The record in which it stands."""


CallT = TypeVar("CallT", bound=AskedCall)


def next_answered(asked: Sequence[CallT]) -> CallT:
    """Of calls with one id, in the order in which they were made, the one that the next result is of."""
    last = asked[-1] if asked[-1].time is not None else asked[0]  # without times nobody knows which was left alone
    return next(one for one in asked if one.record == last.record)


class RetoldCalls:
    """The calls and results of a session that were seen, to know one by that is told again."""

    def __init__(self) -> None:
        self._told: set[tuple[object, ...]] = set()

    def is_told_again(self, event: ToolCall | ToolResult) -> bool:
        """Whether another record, or the same again, says what was said."""
        key = told_as(event, event.message_id)
        if key is None:
            return False
        known = key in self._told
        self._told.add(key)
        return known


class AnsweredCall(NamedTuple):
    """A call, and its result where there is one."""

    call: ToolCall
    result: ToolResult | None


class _OpenCall(NamedTuple):
    place: int
    """The number of the call."""
    time: int | None
    record: str | None

    def is_after(self, result: ToolResult) -> bool:
        """Whether it was made when that result was there: it calls by an id that another had before."""
        return self.time is not None and result.time is not None and self.time > result.time


_Key = tuple[str, str]
"""Calls by their agent and their id."""


class _Pairing:
    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.results: dict[int, ToolResult] = {}
        self._open: dict[_Key, list[_OpenCall]] = {}

    def call(self, event: ToolCall) -> None:
        """A call is made."""
        place = len(self.calls)
        self.calls.append(event)
        if event.id:
            waiting = _OpenCall(place, event.time, event.message_id)
            self._open.setdefault((event.agent_id, event.id), []).append(waiting)

    def end(self, event: ToolResult) -> bool:
        """A call has its result; gives whether one waited for it."""
        waiting = self._open.get((event.agent_id, event.id), [])
        asked = [one for one in waiting if not one.is_after(event)]
        if asked:
            ended = next_answered(asked)
            waiting.remove(ended)
            self.results[ended.place] = event
        return bool(asked)


def answered_calls(events: Iterable[Event]) -> list[AnsweredCall]:
    """The calls of a stream of events in their order, each with its result."""
    pairing, told, early = _Pairing(), RetoldCalls(), list[ToolResult]()
    for event in events:
        if not isinstance(event, ToolCall | ToolResult) or told.is_told_again(event):
            continue
        if isinstance(event, ToolCall):
            pairing.call(event)
        elif not pairing.end(event):
            early.append(event)
    for result in early:  # of several files that of the result may come first
        pairing.end(result)
    return [AnsweredCall(call, pairing.results.get(place)) for place, call in enumerate(pairing.calls)]
