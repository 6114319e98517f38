"""The connections that read the file of an index: as many as ask at once, up to a few, so that who asks waits neither
for who writes nor for a long answer to somebody else. Each statement sees the file as one commit left it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator

MOST = 4
"""Connections at once; who finds none free waits for one."""


class IndexReaders:
    """The connections to one file, while that is open. Who has one may not wait for whoever shuts it."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._free: list[sqlite3.Connection] = []
        self._made, self._most = 0, 0
        """How many there are, and how many there may be: none while no file is open."""
        self.users = 0
        """How many threads have one, or make one. A child that was forked off can read it: no lock is needed."""

    def open(self) -> None:
        """A file is open; connections to it are made when somebody asks."""
        with self._news:
            self._most = MOST

    @contextlib.contextmanager
    def held(self, another: Callable[[], sqlite3.Connection | None]) -> Iterator[sqlite3.Connection | None]:
        """A connection for this thread alone; None where no file is open. `another` makes one more, or says that there
        can be none: then those that are there have to do, and where there are none it is None."""
        taken = self._take(another)
        try:
            yield taken
        finally:
            if taken is not None:
                self._leave(taken)

    def shut(self) -> None:
        """Close all of them, when whoever has one is done."""
        with self._news:
            self._most = 0
            self._news.notify_all()
            self._news.wait_for(lambda: not self.users)
            free, self._free, self._made = self._free, [], 0
        for connection in free:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _take(self, another: Callable[[], sqlite3.Connection | None]) -> sqlite3.Connection | None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._free or self._made < self._most or not self._most)
                if not self._most:
                    return None
                self.users += 1
                if self._free:
                    return self._free.pop()
                self._made += 1
            made = None
            try:
                made = another()
            finally:
                if made is None:
                    self._leave(None)
            if made is not None or not self._made:
                return made

    def _leave(self, taken: sqlite3.Connection | None) -> None:
        """Give back what was taken. None where nothing could be made: while there are others, none is made again."""
        with self._news:
            self.users -= 1
            if taken is not None:
                self._free.append(taken)
            else:
                self._made -= 1
                self._most = min(self._most, max(1, self._made))
            self._news.notify_all()
