"""A fair lock between processes: who came first goes first, and who dies lets go.

SQLite lets one writer in at a time, but those who wait for it poll with growing pauses, and an unlucky one can starve
for seconds. So writers first queue at a file of their own. Each draws a number (the file holds the next one), locks
the byte at that offset for as long as it waits and works, and goes ahead when nobody holds a byte below its own.
The kernel drops the lock of a process that dies, whatever it was doing. The numbers decide only the order: that two
writers never work at once is still SQLite's own promise, so a damaged lock file costs fairness and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import threading
import time

from harken import clock
from harken.errors import Locked

_NUMBER = struct.Struct("<q")
_WRAP = 1 << 40
_BASE = 64  # bytes below are the number itself
# Open-file-description locks belong to the open file, not to the process, so that threads count as well.
_SETLK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_FLOCK = struct.Struct("hhqqi4x")
_FAIR = os.uname().sysname == "Linux"  # elsewhere the structure differs, and the whole file is the lock
_BUSY = (errno.EAGAIN, errno.EACCES)


class FairLock:
    """One queue; `acquire` and `release` by one thread at a time per process, others wait inside."""

    def __init__(self, path: str, *, timeout: float = 60.0) -> None:
        self.path = path
        self.timeout = timeout
        self._inside = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_size < _NUMBER.size:
            os.pwrite(self._file, _NUMBER.pack(0), 0)
        self._next = mmap.mmap(self._file, _NUMBER.size)

    def acquire(self) -> None:
        """Wait for our turn; `Locked` when that takes too long."""
        deadline = clock.monotonic() + self.timeout
        if not self._inside.acquire(blocking=False) and not self._inside.acquire(timeout=self.timeout):
            raise self._too_long()
        try:
            if _FAIR:
                self._await_turn(self._draw(), deadline)
            else:
                self._await_door(deadline)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let the next one go."""
        try:
            if _FAIR:
                self._byte(fcntl.F_UNLCK, 0, 0)
            else:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._inside.release()

    def close(self) -> None:
        """Let go of the file."""
        self._next.close()
        os.close(self._file)

    def _draw(self) -> int:
        """The next number whose byte nobody holds. Two who read the same number cannot both lock its byte."""
        number = _NUMBER.unpack_from(self._next)[0] % _WRAP
        while True:
            try:
                self._byte(fcntl.F_WRLCK, _BASE + number, 1)
                break
            except OSError as error:
                if error.errno not in _BUSY:
                    raise
                number += 1
        if number >= _NUMBER.unpack_from(self._next)[0] % _WRAP:
            _NUMBER.pack_into(self._next, 0, number + 1)
        return int(number)

    def _await_door(self, deadline: float) -> None:
        pause = 0.00002
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                pause = self._pause(error, pause, deadline)

    def _await_turn(self, number: int, deadline: float) -> None:
        """Go ahead once every lower byte is free. Asked for as a read lock, which those behind us may share."""
        pause = 0.00005
        while number:
            try:
                self._byte(fcntl.F_RDLCK, _BASE, number)
                return
            except OSError as error:
                pause = self._pause(error, pause, deadline)

    def _pause(self, error: OSError, pause: float, deadline: float) -> float:
        if error.errno not in _BUSY:
            raise error
        if clock.monotonic() > deadline:
            raise self._too_long()
        time.sleep(pause)
        return min(pause * 1.5, 0.001)

    def _byte(self, kind: int, start: int, length: int) -> None:
        fcntl.fcntl(self._file, _SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))

    def _too_long(self) -> Locked:
        return Locked(f"waited {self.timeout:.0f} s for another writer", hint=f"see which process holds {self.path}")
