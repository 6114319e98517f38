"""The recorder in a thread of its own, so that a store that nobody can write to holds up nothing.

The loop that attends to the runtime hands over what it hears and goes on. All of it goes into a spool first. When the
run is over and everything is in the store, the spool is taken away; where the store cannot be written to, the spool
stays, and the next command that writes stores it (`spooled.py`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from harken import clock
from harken.errors import Conflict, HarkenError

from .recorder import Recorder
from .spool import SpoolFile, SpoolNote

T = TypeVar("T")
GIVE_UP_AFTER = 2.0
"""Seconds without any progress after which nobody waits for the store any longer."""
ANSWER_TIME = 1.0
"""Seconds a question may wait for the store."""
BACKLOG = 16 * 1024 * 1024
"""Bytes that may wait to be stored; a runtime that prints faster waits, as long as the store makes progress."""
AFTER_TIME = 10.0
AFTER_STILL = 5.0
"""Seconds that what is done after a run may take, however much it gets on, and those it may take without getting on:
more than before the run, since nobody is kept from their work."""
Moved = Callable[[], None]
"""What work calls whenever it gets on; it raises `Conflict` once nobody waits any longer."""


class Recording:
    """What is heard of a run, on its way into the store."""

    def __init__(
        self, recorder: Recorder, spool: SpoolFile, store_earlier: Callable[[Moved], object] = lambda moved: None
    ) -> None:
        """`store_earlier` stores what has to stand before this run."""
        self._recorder = recorder
        self._spool = spool
        self._store_earlier = store_earlier
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._done = threading.Event()
        self._too_late = threading.Event()
        self._afterwards: Callable[[Moved], object] = lambda moved: None
        self._finished = 0
        self._waiting = 0
        self._stuck_at = -1
        self._given_up = False
        self._kept = False
        """Whether all of a run that is over is in the store."""
        self._context_id = ""
        self._busy_with = ""
        self._left = threading.Lock()
        # A daemon: a program that ends does not wait for a store that somebody else holds.
        self._thread = threading.Thread(target=self._work, name="harken-recorder", daemon=True)
        self._thread.start()

    @property
    def session(self) -> str:
        """The session that is being recorded; empty while it is not known."""
        return self._recorder.session

    @property
    def sessions(self) -> list[str]:
        """The sessions that were recorded, in their order."""
        return self._recorder.sessions

    @property
    def context_id(self) -> str:
        """The commit that holds all of a run that is over; empty where not everything is stored."""
        return self._context_id

    @property
    def spool(self) -> str:
        """The file that holds what is not stored; empty where there is none, or not everything is in it."""
        return str(self._spool.path) if self._spool.path is not None and self._spool.whole and not self._kept else ""

    def line(self, line: bytes, found: dict[str, Any]) -> None:
        """Record an output line; `found` is the object on it."""
        self._spool.line(line)
        if self._given_up:
            return
        with self._left:
            self._waiting += len(line)
        self._tasks.put(lambda: self._take(line, found))
        while self._waiting > BACKLOG and not self._given_up:
            self._given_up = not self._moves(GIVE_UP_AFTER) and self._spool.whole

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

    def before(self, work: Callable[[Moved], object]) -> bool:
        """Do something before the run begins, and wait for it as long as it makes progress; the answer is whether it
        was done."""
        over, too_late = threading.Event(), threading.Event()
        done: list[bool] = []

        def moved() -> None:
            self._moved()
            if too_late.is_set():
                raise Conflict("the run has begun", hint="try again when it is over")

        def task() -> None:
            with suppress(Exception):  # the answer says so, and the run is recorded all the same
                work(moved)
                done.append(True)
            over.set()

        self._tasks.put(task)
        while not over.is_set() and self._moves(GIVE_UP_AFTER):
            pass
        too_late.set()
        return over.is_set() and bool(done)

    @contextmanager
    def busy_with(self, what: str) -> Iterator[None]:
        """Says what the recorder is about; meant for a question's or a task's own code."""
        self._busy_with = what
        try:
            yield
        finally:
            self._busy_with = ""

    @property
    def silence(self) -> str:
        """Why a question has no answer."""
        return self._busy_with or "the store cannot be written at the moment"

    @property
    def trouble(self) -> str:
        """Why not everything is in the store, what can be done about it, and what becomes of the rest."""
        problem, left = self._recorder.problem, self.spool
        what, then = "the store could not be written", f"the next command that writes to the store stores {left}"
        if problem is not None:
            could_not = "stored" if isinstance(problem, HarkenError) else "read"
            what = f"not all of this run could be {could_not}: {problem}"
            then = f"all of it is in {left}, which the next command that writes tries to store"
        if not left:
            then = "what was not stored of this run is lost"
        hint = problem.hint if isinstance(problem, HarkenError) else None
        return "; ".join(part for part in (what, hint, then) if part)

    @property
    def problem(self) -> str:
        """What else than the store kept something from being recorded; empty where nothing did."""
        return "" if self._recorder.problem is None else str(self._recorder.problem)

    def end(self, afterwards: Callable[[Moved], object] = lambda moved: None) -> bool:
        """The run is over; the answer is whether everything is in the store. Where it is, `afterwards` is done before
        `is_over`, unless it stands still or takes too long; its failure is its own."""
        self._afterwards = afterwards
        self._tasks.put(None)
        # Where there is no whole spool to fall back on, it takes as long as it takes.
        while not self._closed.is_set() and (self._moves(GIVE_UP_AFTER) or not self._spool.whole):
            pass
        if not self._closed.is_set():
            self._too_late.set()
            self._spool.sync()
            return False
        latest = clock.monotonic() + AFTER_TIME
        while not self._done.is_set() and clock.monotonic() < latest and self._moves(AFTER_STILL):
            pass
        self._too_late.set()
        return self._kept

    @property
    def is_over(self) -> bool:
        """Whether nothing is being done any longer."""
        return self._done.is_set()

    def _moved_afterwards(self) -> None:
        self._moved()
        if self._too_late.is_set():
            raise Conflict("it took too long", hint="import the session's files")

    def _take(self, line: bytes, found: dict[str, Any]) -> None:
        try:
            self._recorder.line(line, found)
        finally:
            with self._left:
                self._waiting -= len(line)

    def _moves(self, seconds: float) -> bool:
        """Whether anything was recorded within that time."""
        before, end = self._finished, clock.monotonic() + seconds
        while self._finished == before and clock.monotonic() < end:
            if self._done.wait(0.01):
                return True
        return self._finished != before

    def _moved(self) -> None:
        self._finished += 1

    def _work(self) -> None:
        # A run is recorded, whatever is wrong with another.
        with suppress(Exception), self.busy_with("what an earlier run has left is being stored"):
            self._store_earlier(self._moved)
        self._record()
        self._kept = self._recorder.has_kept_all and not self._given_up
        if self._kept:
            self._spool.discard()
        else:
            self._spool.keep()
        self._moved()
        self._closed.set()
        with suppress(Exception):  # whoever wants to know about it notes it
            if self._kept:
                self._afterwards(self._moved_afterwards)
        self._done.set()

    def _record(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=self._recorder.settles_after())
            except queue.Empty:
                task = self._recorder.settle
            if task is None:
                break
            # The failure of one is its own: what is queued behind it is recorded all the same.
            with self._recorder.never_raising():
                task()
            self._finished += 1
        with self._recorder.never_raising():
            self._recorder.end()
            self._context_id = self._recorder.checkpoint("session_end")
