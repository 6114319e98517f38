"""Going on importing as files grow: a look at every file a few times a second, and a read of those that changed.

Closed deltas are kept at once. What follows the last cut is kept when its file has been quiet for two seconds: a tail
that is still being written would only leave commits that the next moment supersedes.

Whenever a file has changed, all of it is read and compared with what was kept. So that a large file that keeps growing
does not keep a machine busy, it is read again only after ten times as long as reading it kept a processor busy (on a
machine that has other things to do, reading takes longer and costs no more); one that fails is tried again after pauses
that grow to a minute.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harken import clock
from harken.context.chains import FileStamp
from harken.errors import Closed
from harken.store import Store

from .base import Environment, Runtime, chosen
from .files import Unreadable, as_paths, session_files, starting_points
from .importer import Importer
from .memory import ImportResult
from .sources import Reading, Resumption, read_source

QUIET = 2_000_000
"""Microseconds without a change after which a tail is kept."""
PACE = 10
"""How many times as long as reading a file kept a processor busy it is then left alone."""
LONGEST_LOOK_AWAY = 0.5
"""Seconds after which it is noticed that the store was closed."""
LONGEST_PAUSE = 60.0
"""Seconds after which a file that failed is tried again at the latest."""


class Waiting(msgspec.Struct):
    """When a file may be read again."""

    until: float = 0.0
    pause: float = 0.0
    """How long the last pause after a failure was."""


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
) -> Iterator[ImportResult]:
    """What became of each file that changed, at the paths or where the runtimes keep theirs, until `stop` is set."""
    known, given = chosen(runtimes), as_paths(paths)
    starting_points(given, known, environ)

    def find() -> Iterator[Path | Unreadable]:
        return session_files(starting_points(given, known, environ), known)

    yield from watch(store, known, find, interval=interval, stop=stop, now=now, principal=principal)


def watch(
    store: Store,
    runtimes: Iterable[Runtime],
    find: Callable[[], Iterable[Path | Unreadable]],
    *,
    interval: float,
    stop: threading.Event,
    now: clock.Clock = clock.now,
    monotonic: Callable[[], float] = clock.monotonic,
    busy: Callable[[], float] = clock.processor_seconds,
    principal: str = "",
) -> Iterator[ImportResult]:
    """What became of every file that changed, until `stop` is set or the store is closed. A file that fails is told
    once, then tried again."""
    known = tuple(runtimes)
    waiting: dict[str, Waiting] = {}

    def is_quiet(stamp: FileStamp) -> bool:
        # A time in the future is nobody's present: such a file is not being written, or its clock is wrong.
        return abs(now() - stamp.modified // 1000) >= QUIET

    def read(path: Path, since: Resumption | None) -> Reading:
        spent = 0.0
        parts = read_source(path, known, since, now)
        while True:
            began = busy()
            part = next(parts, None)
            # What is done with a part, here or by whoever is told of it, is not the file's.
            spent += busy() - began
            if part is None:
                break
            yield part
        waiting.setdefault(str(path), Waiting()).until = monotonic() + PACE * spent

    def due() -> Iterator[Path | Unreadable]:
        instant = monotonic()
        for path in find():
            wait = waiting.get(str(path)) if isinstance(path, Path) else None
            if wait is None or wait.until <= instant:
                yield path

    importer = Importer(store, known, now=now, principal=principal, settle_tails=is_quiet, read=read, details=False)
    told: dict[str, str] = {}
    while not (store.closed or stop.is_set()):
        for result in _until_closed(store, importer.run(due())):
            if result.status == "failed":
                wait = waiting.setdefault(result.source, Waiting())
                wait.pause = min(LONGEST_PAUSE, max(interval, 2 * wait.pause))
                wait.until = monotonic() + wait.pause
                if told.get(result.source) == result.error:
                    continue
                told[result.source] = result.error
            else:
                waiting.setdefault(result.source, Waiting()).pause = 0.0
            if result.status not in ("unchanged", "skipped"):
                yield result
            if stop.is_set():
                return
        again = monotonic() + interval
        while not store.closed and (left := again - monotonic()) > 0:
            if stop.wait(min(left, LONGEST_LOOK_AWAY)):
                return


def _until_closed(store: Store, results: Iterator[ImportResult]) -> Iterator[ImportResult]:
    """The results, up to where the store was closed."""
    try:
        for result in results:
            if store.closed and result.status == "failed":
                return
            yield result
    except Closed:
        return
