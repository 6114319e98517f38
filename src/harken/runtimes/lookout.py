"""Which files a watch looks at next: all of them or, where the system tells what has changed, those.

The system's notices (`watchfiles`, an extra) cost nothing while nothing happens. They are not trusted blindly: file
systems over a network give none, and a queue may run over. So all files are looked at now and then all the same, the
less often the more there are. Without notices all files are looked at each time, with pauses that grow with their
number as well.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harken import clock, ids

from .files import Unreadable, walk

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

SETTLED = 5.0
"""Seconds after the last notice until which a file is looked at: its tail is kept when it has been quiet for two."""
WHOLE_LOOK = 60.0
"""Seconds between two looks at everything where the system gives notices, at least."""
NOTICED, POLLED = 0.04, 0.0004
"""Seconds by which the pause between two looks at everything grows with each file, with notices and without. A look at
a file takes about 25 microseconds, so that this is less than a thousandth of a processor, and less than a tenth."""


class Lookout:
    """The files to look at. With `roots` (the places that are there now) the system's notices are used if they can be
    had; `suffixes` are how the names of sessions' files end."""

    def __init__(
        self,
        find_all: Callable[[], Iterable[Path | Unreadable]],
        *,
        roots: Callable[[], Sequence[Path]] | None = None,
        suffixes: Iterable[str] = (),
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._find_all, self._roots, self._monotonic = find_all, roots, monotonic
        self._suffixes = tuple(suffixes)
        self._notify: RustNotify | None = None
        self._marks: dict[str, tuple[int, int]] = {}
        """The places, and which folders they are: one may go and another come in its place."""
        self._named: list[Path] = []
        """Places that are files: they are few, and are looked at each time."""
        self._waiting: dict[str, float] = {}
        """Files to look at, and when a notice of them came last."""
        self._all_at, self._count, self._is_first = 0.0, 0, True

    @property
    def pause(self) -> float:
        """Seconds to wait before the next look, at least."""
        return 0.0 if self._notify is not None else self._count * POLLED

    def find(self) -> Iterator[Path | Unreadable]:
        """The files to look at now."""
        self._hear()
        if self._notify is None or self._monotonic() >= self._all_at:
            yield from self._everything()
            return
        yield from self._named
        now = self._monotonic()
        for file in sorted(self._waiting):
            if now - self._waiting[file] >= SETTLED:
                del self._waiting[file]
            if os.path.lexists(file):
                yield Path(file)

    def look_again(self, source: str = "") -> None:
        """Look at a file again though no notice of it comes, since it failed or was left alone; without one, at all."""
        if not source:
            self._all_at = 0.0
        elif self._notify is not None:
            file = ids.file_around(source) or source
            self._waiting[file] = max(self._waiting.get(file, 0.0), self._monotonic() - SETTLED)

    def close(self) -> None:
        """Ask for no more notices."""
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _everything(self) -> Iterator[Path | Unreadable]:
        self._count = 0
        for found in self._find_all():
            self._count += 1
            yield found
        # What was written just before the first look is not settled, and no notice of it will come.
        pause = SETTLED if self._is_first else max(WHOLE_LOOK, self._count * NOTICED)
        self._is_first, self._all_at = False, self._monotonic() + pause

    # -- what the system tells ---------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Take in what the system has told; where the places are others than before, ask it anew."""
        if self._roots is None:
            return
        try:
            notices = _notices(self._notify)
        except RuntimeError:  # of a name that is no UTF-8 it cannot tell, nor of anything after that
            notices, self._marks = (), {}
        roots = self._roots()
        marks = {str(root): mark for root in roots if (mark := _mark(root)) is not None}
        if marks != self._marks:
            self._marks, self._named = marks, [root for root in roots if not root.is_dir()]
            self._all_at, self._is_first = 0.0, True
            self.close()
            self._notify = _ask([str(root) for root in roots if root.is_dir()])
        now = self._monotonic()
        for changed in notices:
            self._waiting.update(dict.fromkeys(self._concerned(changed), now))

    def _concerned(self, changed: str) -> Iterator[str]:
        """The files that a notice may be about: that file, the one whose log or whose side file it is, or those in a
        folder that has come."""
        path = Path(changed)
        if path.is_dir():
            yield from (str(found) for found in walk(path, self._suffixes) if isinstance(found, Path))
        for file in (changed, changed.removesuffix("-wal"), changed.removesuffix("-journal")):
            if file.endswith(self._suffixes):
                yield file
        stems = [path.with_name(path.name.split(".", 1)[0])]
        stems += [above for above in path.parents if len(str(above)) > self._shortest(changed)]
        for stem in stems:
            yield from (file for suffix in self._suffixes if os.path.exists(file := f"{stem}{suffix}"))  # noqa: PTH110

    def _shortest(self, changed: str) -> int:
        return max((len(root) for root in self._marks if changed.startswith(root)), default=0)


def _mark(root: Path) -> tuple[int, int] | None:
    try:
        info = root.stat()
    except OSError:
        return None
    return (info.st_dev, info.st_ino) if stat.S_ISDIR(info.st_mode) else (0, 0)


def _ask(folders: list[str]) -> RustNotify | None:
    """Notices of everything below the folders; None where the system gives none."""
    try:
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError
    except ImportError:
        return None
    try:
        return RustNotify(folders, False, False, 0, True, True)
    except (OSError, WatchfilesRustInternalError):  # a limit of the user's is reached, or a folder has just gone
        return None


def _notices(notify: RustNotify | None) -> Iterable[str]:
    """What has changed since it was last asked; it waits for a millisecond."""
    told = notify.watch(1, 1, 1, None) if notify is not None else "timeout"
    if told == "signal":  # it has taken the exception that a handler raised
        raise KeyboardInterrupt
    return () if isinstance(told, str) else sorted({path for _, path in told})
