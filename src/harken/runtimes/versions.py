"""What a session amounts to of which the store has several versions: several files, one that was rewritten, or a
recording that has more. All of them have to be read for it, which is done once for all results of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import msgspec

from harken.context.session_records import session_records
from harken.errors import HarkenError
from harken.events.figures import Figures
from harken.events.tally import Tally
from harken.store import SessionRow, Store

from .memory import ImportResult


def with_figures(store: Store, results: Iterable[tuple[ImportResult, SessionRow]]) -> Iterator[ImportResult]:
    """The results with what all versions of their sessions amount to together."""
    found: dict[str, Figures] = {}
    for result, row in results:
        if row.session not in found:
            found[row.session] = _figures_of(store, row, result.figures)
        yield msgspec.structs.replace(result, figures=found[row.session])


def _figures_of(store: Store, row: SessionRow, known: Figures) -> Figures:
    # The session is in the store by now: versions that nobody here can read must not make a failure of it.
    with contextlib.suppress(HarkenError):
        return Tally.of(event for record in session_records(store, row) for event in record.events).figures()
    return known
