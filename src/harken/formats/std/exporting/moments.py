"""When things happened, for documents that ask for a time everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from harken.clock import format_instant
from harken.events import Event


class Moments:
    """The times of a session's events. An event without one has the last known time before it, else the first after it,
    else the one that is given."""

    def __init__(self, events: Iterable[Event], otherwise: int = 0) -> None:
        self._nearest: dict[int, int] = {}
        waiting: list[Event] = []
        last: int | None = None
        for event in events:
            if event.time is None and last is None:
                waiting.append(event)
            elif event.time is None:
                self._nearest[id(event)] = last or 0
            else:
                last = event.time
                self._nearest.update((id(one), last) for one in waiting)
                waiting.clear()
        self._otherwise = otherwise

    def of(self, event: Event) -> int:
        """When it happened, as far as that is known."""
        return self._nearest.get(id(event), self._otherwise) if event.time is None else event.time

    def text(self, event: Event) -> str:
        """The same as a document has it."""
        return format_instant(self.of(event))
