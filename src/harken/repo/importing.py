"""Importing from where sessions lie: the files that were named, else the places where the runtimes keep theirs."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harken import clock
from harken import runtimes as registry
from harken.errors import BadRequest, HarkenError
from harken.runtimes import Environment, Runtime
from harken.runtimes.files import Unreadable, walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from harken.runtimes.watch import watch
from harken.store import Store


class ImportPlaces(NamedTuple):
    """What an import looks at, and whose sessions they are."""

    paths: Sequence[str | os.PathLike[str]] = ()
    runtimes: Sequence[str] = ()
    environ: Environment | None = None
    principal: str = ""


class ImportOptions(NamedTuple):
    """How an import goes about it."""

    verify: bool = False
    """Read every file from its beginning, whatever its size and time say."""
    dry_run: bool = False
    details: bool = True
    """Whether the figures of sources that have not changed are wanted, too."""
    jobs: int = 1
    """How many processes read at the same time."""
    on_files: Callable[[int], None] = lambda count: None
    """Is told how many files there are."""


def import_sessions(
    store: Store, places: ImportPlaces, options: ImportOptions, *, now: clock.Clock
) -> Iterator[ImportResult]:
    """What became of each file."""
    chosen = _runtimes(places.runtimes)
    files = list(_files(_starting_points(places, chosen), chosen))
    options.on_files(len(files))
    importer = Importer(
        store,
        chosen,
        verify=options.verify,
        dry_run=options.dry_run,
        details=options.details,
        jobs=options.jobs,
        principal=places.principal,
        now=now,
    )
    # Where files were named one by one, not being a session is a failure.
    paths = _paths(places.paths)
    named = bool(paths) and all(path.is_file() for path in paths)
    yield from importer.run(files, named=named)


def watch_sessions(
    store: Store, places: ImportPlaces, *, interval: float, stop: threading.Event, now: clock.Clock
) -> Iterator[ImportResult]:
    """What became of each file that changed, until `stop` is set."""
    chosen = _runtimes(places.runtimes)
    _starting_points(places, chosen)
    yield from watch(
        store,
        chosen,
        lambda: _files(_starting_points(places, chosen), chosen),
        interval=interval,
        stop=stop,
        now=now,
        principal=places.principal,
    )


def _runtimes(names: Sequence[str]) -> list[Runtime]:
    names = [names] if isinstance(names, str) else names
    return [registry.get(name) for name in names or registry.names()]


def _paths(given: Sequence[str | os.PathLike[str]] | str | bytes | os.PathLike[str]) -> list[Path]:
    """The paths a caller means; one by itself is one path, and not the letters of it."""
    one = isinstance(given, (str, bytes, os.PathLike))
    return [Path(os.fsdecode(path)) for path in ((given,) if one else given)]  # type: ignore[arg-type, union-attr]


def _starting_points(places: ImportPlaces, runtimes: Iterable[Runtime]) -> list[Path]:
    """The paths given, else where each runtime keeps its sessions, as far as that is there."""
    if paths := _paths(places.paths):
        return [path.absolute() for path in paths]
    if places.environ is None:
        raise BadRequest(
            "an import needs paths, or the environment that tells where the runtimes keep their sessions",
            hint="pass `paths`, or your environment as `environ`",
        )
    roots = (root for runtime in runtimes for root in _roots(runtime, places.environ or {}))
    found = [root for root in dict.fromkeys(roots) if _is_there(root)]
    if not found:
        raise HarkenError("no runtime has left sessions here", hint="name a file or a folder")
    return found


def _roots(runtime: Runtime, environ: Environment) -> list[Path]:
    """Where a runtime keeps its sessions; nowhere, where it cannot say."""
    try:
        return [Path(root) for root in runtime.roots(runtime.home(environ))]
    except Exception as problem:  # noqa: BLE001 (a plug-in may fail in any way, and the others must not)
        registry.note_failure(runtime, f"home() failed: {type(problem).__name__}: {problem}")
        return []


def _is_there(root: Path) -> bool:
    """Whether there is a folder or a file to look at; that it cannot be looked at is told when it is tried."""
    try:
        mode = root.stat().st_mode
        return stat.S_ISDIR(mode) or stat.S_ISREG(mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _files(points: Iterable[Path], runtimes: Iterable[Runtime]) -> Iterator[Path | Unreadable]:
    """Every session file at or below the starting points, those of a folder before those of the folders in it."""
    suffixes = tuple(sorted({suffix for runtime in runtimes for suffix in runtime.read.suffixes}))
    for point in points:
        yield from walk(point, suffixes)
