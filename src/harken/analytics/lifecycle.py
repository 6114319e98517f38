"""How a session went: how it ended, how long it took, how many turns and compactions it had."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.events import Event, Metric
from harken.events.tally import Tally


class Lifecycle(msgspec.Struct, kw_only=True, frozen=True):
    """A session from its beginning to its end."""

    outcome: str | None = None
    """The status of the run that ended last (`success`, `error_max_turns`, `error_during_execution`, …); None where the
    source says none, which is no success."""
    started: int | None = None
    ended: int | None = None
    """When that run ended; else the last instant there is."""
    duration: int | None = None
    """Microseconds between the two."""
    turns: int = 0
    """Times that a person said something."""
    told_turns: int | None = None
    """Turns as the runs count them, together; None where none does."""
    compactions: int = 0
    errors: int = 0


def of(events: Iterable[Event]) -> Lifecycle:
    """The life of a session."""
    held = list(events)
    tally = Tally.of(held)
    runs = [event for event in held if isinstance(event, Metric) and event.ends_run]
    last = runs[-1] if runs else None
    ended = last.time if last is not None and last.time is not None else tally.ended
    known = tally.started is not None and ended is not None
    return Lifecycle(
        outcome=last.status if last is not None else None,
        started=tally.started,
        ended=ended,
        duration=max(0, (ended or 0) - (tally.started or 0)) if known else None,
        turns=tally.prompts.human,
        told_turns=sum(run.turn_count for run in runs) if any(run.turn_count for run in runs) else None,
        compactions=tally.compactions,
        errors=tally.errors,
    )
