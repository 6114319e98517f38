"""The recorder in a thread of its own, so that a store that nobody can write to holds up nothing.

The loop that attends to the runtime hands over what it hears and goes on. All of it goes into a spool first. When the
run is over and everything is in the store, the spool is taken away; where the store cannot be written to, the spool
stays, and the next command that writes stores it (`spooled.py`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from harken import clock

from .recorder import Recorder
from .spool import SpoolFile, SpoolNote

T = TypeVar("T")
GIVE_UP_AFTER = 2.0
"""Seconds without any progress after which nobody waits for the store any longer."""
ANSWER_TIME = 1.0
"""Seconds a question may wait for the store."""
BACKLOG = 16 * 1024 * 1024
"""Bytes that may wait to be stored; a runtime that prints faster waits, as long as the store makes progress."""


class Recording:
    """What is heard of a run, on its way into the store."""

    def __init__(self, recorder: Recorder, spool: SpoolFile) -> None:
        self._recorder = recorder
        self._spool = spool
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._done = threading.Event()
        self._finished = 0
        self._waiting = 0
        self._stuck_at = -1
        self._given_up = False
        self._left = threading.Lock()
        # A daemon: a program that ends does not wait for a store that somebody else holds.
        self._thread = threading.Thread(target=self._work, name="harken-recorder", daemon=True)
        self._thread.start()

    @property
    def session(self) -> str:
        """The session that is being recorded; empty while it is not known."""
        return self._recorder.session

    @property
    def context_id(self) -> str:
        """The commit that holds all of a run that is over; empty where not everything is stored."""
        return self._recorder.checkpoint("session_end") if self._done.is_set() else ""

    @property
    def spool(self) -> str:
        """The file that holds what is not stored; empty where there is none, or not everything is in it."""
        return str(self._spool.path) if self._spool.path is not None and self._spool.whole else ""

    def line(self, line: bytes, found: dict[str, Any]) -> None:
        """Record an output line; `found` is the object on it."""
        self._spool.line(line)
        if self._given_up:
            return
        with self._left:
            self._waiting += len(line)
        self._tasks.put(lambda: self._take(line, found))
        while self._waiting > BACKLOG and not self._given_up:
            self._given_up = not self._moves(GIVE_UP_AFTER)

    def note(self, note: SpoolNote) -> None:
        """Record what the runtime did not print."""
        self._spool.note(note)
        if not self._given_up:
            self._tasks.put(lambda: self._recorder.add(self._spool.events(note)))

    def ask(self, question: Callable[[Recorder], T]) -> T | None:
        """Put a question to the recorder once it has taken in everything so far; None where that takes too long."""
        if self._given_up or (self._stuck_at == self._finished and self._stuck_at >= 0):
            return None
        answers: queue.SimpleQueue[T] = queue.SimpleQueue()

        def answer() -> None:
            with suppress(Exception):  # whoever asks gets no answer; the recording goes on
                answers.put(question(self._recorder))

        self._tasks.put(answer)
        try:
            return answers.get(timeout=ANSWER_TIME)
        except queue.Empty:
            # Until something moves again nobody else has to wait.
            self._stuck_at = self._finished
            return None

    def end(self) -> bool:
        """The run is over; the answer is whether everything is in the store."""
        self._tasks.put(None)
        while self._moves(GIVE_UP_AFTER) and not self._done.is_set():
            pass
        if not self._done.is_set():
            self._spool.sync()
            return False
        return self._recorder.has_kept_all and not self._given_up

    def _take(self, line: bytes, found: dict[str, Any]) -> None:
        self._recorder.line(line, found)
        with self._left:
            self._waiting -= len(line)

    def _moves(self, seconds: float) -> bool:
        """Whether anything was recorded within that time."""
        before, end = self._finished, clock.monotonic() + seconds
        while self._finished == before and clock.monotonic() < end:
            if self._done.wait(0.01):
                return True
        return self._finished != before

    def _work(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=self._recorder.settles_after())
            except queue.Empty:
                self._recorder.settle()
                continue
            if task is None:
                break
            task()
            self._finished += 1
        self._recorder.end()
        if self._recorder.has_kept_all and not self._given_up:
            self._spool.discard()
        else:
            self._spool.keep()
        self._done.set()
