"""What a session amounts to, alone and together with others: who prompted, which tools ran, what it cost.

A session's own figures are those of everything in it. In a total each thing counts once:

* a record that the session carried over counts where it was made, and nowhere else;
* a record that several sessions have under one name counts in one of them;
* the usage of a request counts once, whatever records tell of it;
* what a process says it cost is the cost of its agents together, however many: what their requests tell is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harken.events import Event, Metric
from harken.events.figures import Figures
from harken.events.records import SessionRecord
from harken.events.runs import SO_FAR
from harken.events.tally import MICROS, Tally, money


def stats(events: Iterable[Event]) -> Figures:
    """The figures of one stream of events."""
    return Tally.of(events).figures()


class SessionCount(msgspec.Struct, frozen=True, kw_only=True):
    """What one session amounts to."""

    figures: Figures
    carried: Figures | None = None
    """How much of that it did not do itself but began with; None where it began with nothing."""


def count_records(records: Sequence[SessionRecord]) -> SessionCount:
    """The figures of one session."""
    carried = [record for record in records if record.carried]
    return SessionCount(figures=_tally(records).figures(), carried=_tally(carried).figures() if carried else None)


def tells_process_cost(records: Iterable[SessionRecord]) -> bool:
    """Whether a process says in them what it cost, its sub-agents included."""
    return any(
        isinstance(event, Metric) and event.of_process and money(event.cost_usd) is not None
        for record in records
        for event in record.events
    )


def with_told_cost(records: list[SessionRecord], cost_usd_micros: int | None) -> list[SessionRecord]:
    """The records, and what a run told that the session cost, where nothing in its file says it again."""
    if cost_usd_micros is None or count_records(records).figures.cost_usd_micros is not None:
        return records
    return [*records, SessionRecord(events=[Metric(cost_usd=cost_usd_micros / MICROS, scope=SO_FAR)])]


def without_cost(records: Iterable[SessionRecord], *, of_process: bool) -> list[SessionRecord]:
    """The records without what processes say they cost, or else without what requests do."""
    return [msgspec.structs.replace(each, events=[_priceless(e, of_process) for e in each.events]) for each in records]


def _priceless(event: Event, of_process: bool) -> Event:
    priced = isinstance(event, Metric) and event.cost_usd is not None and event.of_process == of_process
    free: Event = event.replace(cost_usd=None) if priced else event
    return free


class SessionTotals:
    """Several sessions together, in whatever order they come, but for this: a session that a resume wrote comes before
    those that may have copied its beginning."""

    def __init__(self, *, with_carried: bool = False) -> None:
        """`with_carried` counts what was carried over as well: of a session and its agents that is everything."""
        self._with_carried = with_carried
        self._tally = Tally()
        self._seen: set[str] = set()
        self._carried: set[str] = set()
        """Names under which a session carried something over; whoever has them carried it over as well."""

    def add(self, records: Sequence[SessionRecord]) -> None:
        """Take in a session."""
        if not self._with_carried:
            self._carried.update(record.name for record in records if record.carried and record.name)
        left = [record for record in records if not self._is_carried(record)]
        new = [record for record in left if not record.name or record.name not in self._seen]
        tally = _tally(new)
        if len(new) < len(left):
            for record in left:
                if record.name in self._seen:
                    _count_requests(tally, record)
        self._seen.update(record.name for record in new if record.name)
        self._tally.take(tally)

    def _is_carried(self, record: SessionRecord) -> bool:
        return not self._with_carried and (record.carried or (record.name in self._carried and bool(record.name)))

    def figures(self) -> Figures:
        """Everything so far."""
        return self._tally.figures()


def _tally(records: Iterable[SessionRecord]) -> Tally:
    tally = Tally()
    for record in records:
        tally.record(record.events)
    return tally


def _count_requests(tally: Tally, record: SessionRecord) -> None:
    """Requests have ids of their own, and a copy may hold a later report of one."""
    for event in record.events:
        if isinstance(event, Metric) and event.api_id:
            tally.metric(event)
