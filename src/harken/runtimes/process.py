"""What a wrapper needs around a child process: signals that reach it, its end as something to select on, and a copy of
what goes into its stdin.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, Self

CHUNK = 64 * 1024
MAX_PIPED = 32 * 1024 * 1024
"""How much of stdin is remembered; all of it is passed on."""
_TO_GROUP = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""What a terminal sends to a whole group: the tools that the runtime has started get it as well."""
_TO_CHILD = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


@contextlib.contextmanager
def end_of(child: int) -> Iterator[int | None]:
    """Something to select on that tells the end of a process, where the system has it (a pidfd becomes readable when
    its process ends); elsewhere the loop looks from time to time."""
    if not hasattr(os, "pidfd_open"):
        yield None
        return
    handle = os.pidfd_open(child)
    try:
        yield handle
    finally:
        os.close(handle)


class PipedInput:
    """Carries our stdin to the runtime in a thread of its own, and remembers what went through."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()
        self._seen = bytearray()
        self._taken = 0
        # A thread, since a read from a terminal or a slow pipe cannot be given up; a daemon, so that it does not keep
        # the process from ending while it waits for words that will never come.
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self._source, CHUNK):
                with self._lock:
                    self._seen += part[: max(0, MAX_PIPED - len(self._seen))]
                while part:
                    part = part[os.write(self._sink, part) :]
        os.close(self._sink)

    def text(self) -> str:
        """Everything that went through so far."""
        with self._lock:
            return self._seen.decode("utf-8", "replace")

    def new_lines(self) -> list[bytes]:
        """Whole lines that went through since the last time."""
        with self._lock:
            end = self._seen.rfind(b"\n") + 1
            lines = bytes(self._seen[self._taken : end]).splitlines() if end > self._taken else []
            self._taken = max(end, self._taken)
            return lines


class SignalForwarder:
    """Passes signals on to the runtime for as long as it lives; a stop stops both, and both go on together."""

    def __init__(self) -> None:
        self._child = 0
        self._early: list[int] = []

    def forward_to(self, child: int) -> None:
        """The runtime has been started; what came before that reaches it now."""
        self._child = child
        for number in self._early:
            self._pass_on(number, None)

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        # Python lets only the main thread set handlers; a run in another thread leaves signals to its program.
        if threading.current_thread() is threading.main_thread():
            for number in (*_TO_GROUP, *_TO_CHILD):
                self._before[number] = signal.signal(number, self._pass_on)
            self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._pause)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _pass_on(self, number: int, _frame: object) -> None:
        if not self._child:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            if number in _TO_CHILD:
                os.kill(self._child, number)
            else:
                os.killpg(self._child, number)

    def _pause(self, _number: int, frame: object) -> None:
        # The runtime is in a group of its own, so Ctrl-Z reaches us alone. It is stopped first; the next line stops us,
        # and is left when the shell lets us go on, which is when the runtime goes on too. SIGTSTP would not do for us:
        # this is its handler.
        self._pass_on(signal.SIGSTOP, frame)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._pass_on(signal.SIGCONT, frame)
