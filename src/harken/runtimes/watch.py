"""Going on importing as files grow: a look a few times a second, and a read of what changed (`lookout.py` says which
files are looked at).

Closed deltas are kept at once. What follows the last cut is kept when its file has been quiet for two seconds: a tail
that is still being written would only leave commits that the next moment supersedes.

Whenever a file has changed, all of it is read and compared with what was kept. So that a large file that keeps growing
does not keep a machine busy, it is read again only after ten times as long as reading it kept a processor busy (on a
machine that has other things to do, reading takes longer and costs no more); one that fails is tried again after pauses
that grow to a minute. So is a store that cannot be written to, since another program holds it or its disk is full.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from harken import clock
from harken.context.chains import FileStamp
from harken.errors import Closed, Locked
from harken.store import Store, giving_up

from .base import Environment, Runtime, chosen
from .files import Unreadable, as_paths, places, session_files, sought
from .importer import Importer
from .lookout import Lookout
from .memory import ImportResult, failure_of
from .sources import Reading, Resumption, read_source

QUIET = 2_000_000
"""Microseconds without a change after which a tail is kept."""
PACE = 10
"""How many times as long as reading a file kept a processor busy it is then left alone."""
LONGEST_LOOK_AWAY = 0.5
"""Seconds after which it is noticed that the store was closed."""
LONGEST_PAUSE = 60.0
"""Seconds after which a file that failed is tried again at the latest."""

KEPT = ("new", "grown", "rewritten")
"""What is said of a source of which something was stored."""


class Pauses:
    """When each source may be tried again, and what was last told of its failing."""

    def __init__(self, monotonic: Callable[[], float], shortest: float) -> None:
        self._monotonic, self._shortest = monotonic, shortest
        self._until: dict[str, float] = {}
        self._pause: dict[str, float] = {}
        self._told: dict[str, str] = {}

    def left(self, source: str) -> float:
        """Seconds until it may be tried again; zero or less where it may."""
        return self._until.get(source, 0.0) - self._monotonic()

    def note_cost(self, source: str, spent: float) -> None:
        """Trying it kept a processor busy for so long."""
        self._until[source] = self._monotonic() + PACE * spent

    def note_failure(self, source: str, why: str) -> bool:
        """It failed; the answer is whether that is news."""
        self._pause[source] = min(LONGEST_PAUSE, max(self._shortest, 2 * self._pause.get(source, 0.0)))
        self._until[source] = max(self._until.get(source, 0.0), self._monotonic() + self._pause[source])
        is_news = self._told.get(source) != why
        self._told[source] = why
        return is_news

    def note_success(self, source: str) -> None:
        """It did not fail."""
        self._pause.pop(source, None)
        self._told.pop(source, None)


def watch_sessions(
    store: Store,
    paths: Sequence[str | os.PathLike[str]],
    runtimes: Sequence[str],
    environ: Environment | None,
    *,
    interval: float,
    stop: threading.Event,
    now: clock.Clock,
    principal: str,
    poll: bool,
) -> Iterator[ImportResult]:
    """What became of each file that changed, at the paths or where the runtimes keep theirs, until `stop` is set."""
    known, given = chosen(runtimes), as_paths(paths)
    looked_for = sought(given, known, environ)
    places(given, known, environ)  # a request that says nothing of where to look is refused at once

    def roots() -> list[Path]:
        # Asked at each look: a runtime's folder may come with its first session, or go and come back.
        return places(given, known, environ)

    lookout = Lookout(
        lambda: session_files(roots(), looked_for),
        roots=None if poll else roots,
        suffixes={suffix for runtime in looked_for for suffix in runtime.read.suffixes},
    )
    with contextlib.closing(lookout):
        yield from watch(store, known, lookout, interval=interval, stop=stop, now=now, principal=principal)


def watch(
    store: Store,
    runtimes: Iterable[Runtime],
    lookout: Lookout,
    *,
    interval: float,
    stop: threading.Event,
    now: clock.Clock = clock.now,
    monotonic: Callable[[], float] = clock.monotonic,
    busy: Callable[[], float] = clock.processor_seconds,
    principal: str = "",
) -> Iterator[ImportResult]:
    """What became of every file that changed, until `stop` is set or the store is closed. What fails, a file or the
    store itself, is told once, then tried again."""
    known, pauses = tuple(runtimes), Pauses(monotonic, interval)
    reader = _PacedReader(known, now, pauses, busy)

    @functools.cache
    def importer() -> Importer:
        return _importer(store, known, now, principal, reader)

    while not (store.closed or stop.is_set()):
        results = _told(store, pauses, lambda: importer().run(_due(lookout, pauses)), stop)
        for result in _news(_looked_at_again(results, lookout, store), pauses):
            yield result
            if stop.is_set():
                return
        if _rest(store, stop, monotonic, max(interval, lookout.pause, pauses.left(store.location))):
            return


def _importer(
    store: Store, runtimes: Sequence[Runtime], now: clock.Clock, principal: str, reader: _PacedReader
) -> Importer:
    def is_quiet(stamp: FileStamp) -> bool:
        # A time in the future is nobody's present: such a file is not being written, or its clock is wrong.
        return abs(now() - stamp.modified // 1000) >= QUIET

    return Importer(
        store, runtimes, now=now, principal=principal, settle_tails=is_quiet, read=reader.read, details=False
    )


class _PacedReader:
    """Reads sources, and notes what that costs."""

    def __init__(
        self, runtimes: Sequence[Runtime], now: clock.Clock, pauses: Pauses, busy: Callable[[], float]
    ) -> None:
        self._runtimes, self._now, self._pauses, self._busy = runtimes, now, pauses, busy

    def read(self, path: Path, since: Resumption | None) -> Reading:
        """What `read_source` says of a file."""
        spent = 0.0
        parts = read_source(path, self._runtimes, since, self._now)
        while True:
            began = self._busy()
            try:
                part = next(parts, None)
            finally:
                # What is done with a part, here or by whoever is told of it, is not the file's.
                spent += self._busy() - began
                self._pauses.note_cost(str(path), spent)
            if part is None:
                return
            yield part


def _due(lookout: Lookout, pauses: Pauses) -> Iterator[Path | Unreadable]:
    """What is not left alone for now."""
    for one in lookout.find():
        if isinstance(one, Unreadable) or pauses.left(str(one)) <= 0:
            yield one
        else:
            lookout.look_again(str(one))


def _told(
    store: Store, pauses: Pauses, look: Callable[[], Iterator[ImportResult]], stop: threading.Event
) -> Iterator[ImportResult]:
    """What a look tells, up to where the store was closed. Trouble with the store itself (another program holds it,
    its disk is full) ends the look and is told like a failure of a file's. Once told to stop, it waits for nobody."""

    def following(results: Iterator[ImportResult]) -> ImportResult | None:
        with giving_up(stop.is_set):
            return next(results, None)

    try:
        with giving_up(stop.is_set):
            looking = look()
        while (result := following(looking)) is not None:
            if store.closed and result.status == "failed":
                return
            if result.status in KEPT:
                pauses.note_success(store.location)
            yield result
    except Closed:
        return
    except Exception as problem:  # noqa: BLE001  it goes on until it is told to stop
        if not store.closed and not (stop.is_set() and isinstance(problem, Locked)):
            yield failure_of(store.location, problem)


def _looked_at_again(results: Iterable[ImportResult], lookout: Lookout, store: Store) -> Iterator[ImportResult]:
    """The results; what failed is looked at again though nothing tells of it, and everything where it was the store."""
    for result in results:
        if result.status == "failed":
            lookout.look_again("" if result.source == store.location else result.source)
        yield result


def _news(results: Iterable[ImportResult], pauses: Pauses) -> Iterator[ImportResult]:
    """The results that say something new."""
    for result in results:
        if result.status == "failed":
            if pauses.note_failure(result.source, result.error):
                yield result
            continue
        pauses.note_success(result.source)
        if result.status != "unchanged":
            yield result


def _rest(store: Store, stop: threading.Event, monotonic: Callable[[], float], seconds: float) -> bool:
    """Wait until the next look, or until the store is closed; the answer is whether to stop."""
    again = monotonic() + seconds
    while not store.closed and (left := again - monotonic()) > 0:
        if stop.wait(min(left, LONGEST_LOOK_AWAY)):
            return True
    return False
