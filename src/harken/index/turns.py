"""Whose turn it is to write to an index. Who waits is told of every step of whoever has the turn: what it waits for may
be there long before the turn ends, and many wait for the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self, TypeVar

from harken import clock

T = TypeVar("T")


class WriterTurn:
    """One thread at a time, which may take it again while it has it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._news = threading.Condition()
        self._steps = 0
        self._owner, self._taken = 0, 0
        """The thread that has it, and how many times."""
        self._wanted = 0
        """How many of those who wait have to have it, as who closes the index: they come before the others."""
        self.waiting = 0
        """How many threads wait for it."""

    def __enter__(self) -> Self:
        with self._news:
            self._wanted += 1
            self.waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._news:
                self._wanted -= 1
                self.waiting -= 1
                self._news.notify_all()
        self._note()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """It is the next one's, if it was not taken twice."""
        self._taken -= 1
        if not self._taken:
            self._owner = 0
        self._lock.release()
        self.tell()

    def tell(self) -> None:
        """Something was done; whoever waits looks whether that is enough."""
        with self._news:
            self._steps += 1
            self._news.notify_all()

    @property
    def is_taken(self) -> bool:
        """Whether another thread has it."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False

    def _note(self) -> None:
        self._owner = threading.get_ident()
        self._taken += 1

    def take_unless(self, found: Callable[[bool], T | None], deadline: float | None) -> tuple[bool, T | None]:
        """Wait until it is ours, `found` has an answer, or the time is over. The answer is whether it is ours, which is
        to be given back, and what was found. `found` is told whether another thread has it."""
        is_taken = False
        while True:
            seen = self._steps
            if (answer := found(is_taken)) is not None:
                return False, answer
            with self._news:
                is_wanted = self._wanted and self._owner != threading.get_ident()
                if not is_wanted and self._lock.acquire(blocking=False):
                    self._note()
                    return True, None
                left = None if deadline is None else deadline - clock.monotonic()
                if left is not None and left <= 0:
                    return False, None
                if is_taken and self._steps == seen:
                    self.waiting += 1
                    try:
                        self._news.wait(left)
                    finally:
                        self.waiting -= 1
                is_taken = True
