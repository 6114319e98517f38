"""What has been written reaches the disk soon, without anybody waiting for it."""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue

SYNC_AFTER_SECONDS = 0.05
SYNC_AFTER_LINES = 256

sync = getattr(os, "fdatasync", os.fsync)


class BackgroundSync:
    """Calls fdatasync in the background, soon after something was written.

    Only the writer changes `_written`, and `_synced` changes under a lock, so that no line has to take one. The thread
    is woken through queues that are one step for the interpreter: a signal in the middle of `threading.Event.set` would
    leave its lock taken, and whoever closes the session waiting for ever.
    """

    def __init__(self) -> None:
        self.fd = -1
        self.failure: OSError | None = None
        self._written = 0
        self._synced = 0
        self._awake = False
        self._hurried = False
        self._stopped = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._hurry: SimpleQueue[None] = SimpleQueue()
        self._syncing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="harken-sync", daemon=True)

    def start(self, fd: int) -> None:
        """Begin to look after a file."""
        self.fd = fd
        _running.add(self)
        self._thread.start()

    def wrote(self, count: int) -> None:
        """Lines were written."""
        self._written += count
        if not self._awake:
            self._awake = True
            self._wake.put(None)
        if self._written - self._synced >= SYNC_AFTER_LINES and not self._hurried:
            self._hurried = True
            self._hurry.put(None)

    def flush(self) -> None:
        """Return when all of them are on disk."""
        if self._written > self._synced:
            self._sync()
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        """End the thread."""
        _running.discard(self)
        self._stopped = True
        self._hurry.put(None)
        self._wake.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped and self.failure is None:
            self._wake.get()
            with suppress(Empty):
                self._hurry.get(timeout=SYNC_AFTER_SECONDS)
            # Before the sync: a line written from now on is a reason to wake again, and to hurry.
            self._awake = self._hurried = False
            if self._written > self._synced:
                self._sync()

    def _sync(self) -> None:
        # One at a time, so that whoever comes second knows whether the first one failed.
        with self._syncing:
            goal = self._written
            if self.failure is None:
                try:
                    sync(self.fd)
                    self._synced = goal
                except OSError as problem:
                    self.failure = problem


_running: set[BackgroundSync] = set()
"""Those whose thread was started and not ended."""


@atexit.register
def _end_threads() -> None:
    """The program ends, and perhaps closed nothing. Daemon threads are soon cut off wherever they are, also in a sync
    whose lock they hold: whoever closed the file then would wait for it for ever."""
    for syncer in tuple(_running):
        syncer.stop()
