"""Going on importing as files grow: a look at every file a few times a second, and a read of those that changed.

Closed deltas are kept at once. What follows the last cut is kept when its file has been quiet for two seconds: a tail
that is still being written would only leave commits that the next moment supersedes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harken import clock
from harken.store import Store

from .base import Runtime
from .files import Stamp, Trouble
from .importer import Importer
from .outcomes import Outcome

QUIET = 2_000_000
"""Microseconds without a change after which a tail is kept."""


def watch(
    store: Store,
    runtimes: Iterable[Runtime],
    find: Callable[[], Iterable[Path | Trouble]],
    *,
    interval: float,
    stop: threading.Event,
    now: clock.Clock = clock.now,
    principal: str = "",
) -> Iterator[Outcome]:
    """What became of every file that changed, until `stop` is set. A file that fails is told once, then tried again."""

    def is_quiet(stamp: Stamp) -> bool:
        return stamp.modified // 1000 + QUIET <= now()

    importer = Importer(store, runtimes, now=now, principal=principal, settle_tails=is_quiet)
    told: dict[str, str] = {}
    while True:
        for outcome in importer.run(find()):
            if outcome.status == "failed":
                if told.get(outcome.source) != outcome.error:
                    told[outcome.source] = outcome.error
                    yield outcome
            elif outcome.status not in ("unchanged", "skipped"):
                yield outcome
        if stop.wait(interval):
            return
