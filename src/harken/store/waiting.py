"""Waiting for another program that holds the file: a little at a time, so that a signal is heard, and whoever was asked
to stop need not wait to the end."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from harken import clock
from harken.errors import Locked

from .explaining import is_busy

T = TypeVar("T")
SLICE = 0.2
"""Seconds that SQLite waits by itself at most: meanwhile Python hears no signal."""


class _Asked(threading.local):
    """How a thread learns that it shall not wait any longer."""

    to_stop: Callable[[], bool] | None = None


_asked = _Asked()


@contextmanager
def giving_up(asked: Callable[[], bool]) -> Iterator[None]:
    """A block in which this thread waits for other writers only until `asked` says so; then it is `Locked`."""
    before, _asked.to_stop = _asked.to_stop, asked
    try:
        yield
    finally:
        _asked.to_stop = before


def go_on_waiting() -> None:
    """Raise `Locked` where the thread was asked to stop."""
    if _asked.to_stop is not None and _asked.to_stop():
        raise Locked("another program holds the store, and the wait for it was given up", hint="try again")


def patiently(attempt: Callable[[], T], timeout: float) -> T:
    """What an attempt says that found the file held by others, made again for as long as they hold it and the time
    lasts. SQLite may say so at once, as when several make a new file; so there is a pause before each."""
    deadline = clock.monotonic() + timeout
    while True:
        go_on_waiting()
        time.sleep(0.005)
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or clock.monotonic() >= deadline:
                raise
