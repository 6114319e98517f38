"""When the files are looked at, and when a run is over.

Hooks say that something was written; a thread looks at the files, so that the program that is captured waits for
nothing. The run is over when its transport is closed: whoever runs the SDK closes it on every way out, also when he is
cancelled, and by then Claude Code has ended. The options say nothing of the transport, but the hooks are called by
whoever holds it. Where it is not found or never closed, the thread ends by itself: when the event loop is closed,
or once nothing was written for a while.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from harken.clock import monotonic

INTERVAL = 0.1
"""Seconds between two looks at the files."""
QUIET = 2.0
"""Seconds without news after which the thread ends when the turn is over; a hook starts it again."""
STALLED = 60.0
"""The same in the middle of a turn, in which the model may think for long."""
SETTLED = 0.5
"""Seconds without a change after which the files of a run that was broken off are taken as they are."""
LINGER = 3.0
"""So many seconds that is waited for at most."""


class FileWatch:
    """The thread that looks at files, while there is something to look at."""

    def __init__(self, look: Callable[[], bool], patience: Callable[[], float], at_exit: Callable[[], object]) -> None:
        self._look, self._patience, self._at_exit = look, patience, at_exit
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Look now; the thread is started where there is none."""
        with self._lock:
            self._news.set()
            if self._thread is None:
                self._stopped = False
                self._thread = threading.Thread(target=self._run, name="harken-capture", daemon=True)
                self._thread.start()
                atexit.register(self._at_exit)

    def settle(self, sizes: Callable[[], object]) -> None:
        """Wait until the files do not change for a moment."""
        begin = last = monotonic()
        known, pause = sizes(), threading.Event()
        while monotonic() < min(begin + LINGER, last + SETTLED):
            pause.wait(INTERVAL / 4)
            if known != (known := sizes()):
                last = monotonic()

    def stop(self) -> None:
        """End the thread and wait until it has ended."""
        with self._lock:
            thread, self._stopped = self._thread, True
            self._news.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        last = monotonic()
        while not self._has_ended(last):
            woken = self._news.wait(INTERVAL)
            self._news.clear()
            if not self._stopped and (self._look() or woken):
                last = monotonic()
        if not self._stopped:
            self._look()  # why it ends may be news to whoever looks
        atexit.unregister(self._at_exit)

    def _has_ended(self, last: float) -> bool:
        with self._lock:
            idle = monotonic() - last > self._patience() and not self._news.is_set()
            if self._stopped or idle:
                self._thread = None
            return self._thread is None


def transport_above(frame: FrameType | None, most: int = 8) -> Any:
    """The transport of whoever called a hook; None where nobody among the callers holds one."""
    while frame is not None and most:
        owner = frame.f_locals.get("self")
        transport = getattr(owner, "transport", None)
        if transport is not None and callable(getattr(transport, "close", None)):
            return transport
        frame, most = frame.f_back, most - 1
    return None


def on_close(transport: Any, told: Callable[[bool], object]) -> bool:
    """Have something called once a transport was closed, and told whether it is closed for certain; whether that could
    be arranged."""
    close = transport.close

    async def closed() -> Any:
        done = False
        try:
            result = await close()
            done = True
            return result
        finally:
            told(done)

    try:
        transport.close = closed
    except AttributeError:
        return False
    return True
