"""What a session amounts to, alone and together with others: who prompted, which tools ran, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harken.events import Event
from harken.events.tally import Figures, Tally


def stats(events: Iterable[Event]) -> Figures:
    """The figures of one stream of events."""
    return Tally.of(events).figures()


class SessionTotals:
    """Several sessions together: a record that a fork copied, and the usage of a request, count once."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._seen: set[str] = set()

    def add(self, events: Sequence[Event]) -> Figures:
        """Take in a session; the answer are its own figures."""
        own = Tally.of(events)
        # A place in a file (`@120`) names a record of that file alone; any other name is the same in a copy.
        named = {event.message_id for event in events if event.message_id and event.message_id[0] != "@"}
        again = named & self._seen
        new = own
        if again:
            new = Tally.of(event for event in events if event.message_id not in again)
            # Requests have ids of their own, and a copy may hold a later report of one.
            new = msgspec.structs.replace(new, requests=own.requests)
        self._seen |= named
        self._tally.take(new)
        return own.figures()

    def figures(self) -> Figures:
        """Everything so far."""
        return self._tally.figures()
