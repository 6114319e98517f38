"""The disk side of the log: one writer, whole lines, and an acknowledgement that means what it says.

Two levels of acknowledgement. `disk`: fdatasync has returned, so the line survives a power cut on a disk that honours
a flush. `os`: the write has returned, so the line survives the death of any process; fdatasync follows within 50 ms
or 256 lines, in the background.

A failed write or fdatasync poisons the writer: every later call fails, and nothing is tried again on the same file
descriptor, because a second fdatasync may succeed after the kernel has dropped the pages the first one lost. Opening
the session again reads what is really there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from harken.errors import BadRequest, Closed, HarkenError, Locked, NotFound, Poisoned
from harken.files import sync_folder
from harken.formats.session_log import LogRecord, may_be_log, read_records

from . import syncing
from .syncing import BackgroundSync

Ack = Literal["disk", "os"]

CHUNK = 64 * 1024


def chunks(fd: int, *, start: int = 0, end: int | None = None, size: int = CHUNK) -> Iterator[bytes]:
    """The bytes of an open file, from `start` to `end` or to where it ends now."""
    while part := _read(fd, size if end is None else min(size, end - start), start):
        yield part
        start += len(part)


def _read(fd: int, size: int, start: int) -> bytes:
    try:
        return os.pread(fd, size, start)
    except OSError as problem:
        raise HarkenError(
            f"reading the session log failed: {problem.strerror}", hint="look at the disk, then open it again"
        ) from problem


def open_to_read(path: Path) -> int:
    """A file descriptor for a regular file; a reader takes no lock and is never kept waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(
            f"there is no session log {path}", hint="look at the path; `Session(path)` makes a new one"
        ) from None
    except OSError as problem:
        raise _unopened(path, problem) from problem
    return _regular(fd, path)


def read_chunks(path: str | os.PathLike[str], *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a log, with bounded memory; takes no lock."""
    fd = open_to_read(Path(path))
    try:
        yield from chunks(fd, start=start, end=end)
    finally:
        os.close(fd)


def scan(path: str | os.PathLike[str], *, offset: int = 0, line: int = 1) -> Iterator[LogRecord]:
    """Every record of a log, oldest first, with bounded memory; takes no lock. `offset` is where line `line` begins."""
    fd = open_to_read(Path(path))
    try:
        yield from read_records(chunks(fd, start=offset), offset=offset, line=line)
    finally:
        os.close(fd)


def _unopened(path: Path, problem: OSError) -> HarkenError:
    return HarkenError(
        f"could not open {path}: {problem.strerror}", hint="look at the path, the disk and the permissions"
    )


def _regular(fd: int, path: Path) -> int:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise BadRequest(f"{path} is not a regular file", hint="give the path of a session log")
    return fd


class LogLock:
    """The right to write a log, held as a lock on a file beside it that names the process."""

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(log.name + ".lock")
        self._log = log
        self._fd = self._take()

    def _take(self) -> int:
        while True:
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
                fd = _regular(os.open(self.path, flags, 0o600), self.path)
            except FileNotFoundError:
                raise NotFound(
                    f"there is no folder {self._log.parent}", hint="make the folder first, or give another path"
                ) from None
            except OSError as problem:
                raise _unopened(self.path, problem) from problem
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
                os.close(fd)
                raise Locked(
                    f"{self._log} is being written by process {holder or '(unknown)'}",
                    hint="close the other session, or open this one with readonly=True",
                ) from None
            except OSError as problem:
                os.close(fd)
                raise _unopened(self.path, problem) from problem
            if self._is_current(fd):
                self._sign(fd)
                return fd
            os.close(fd)  # its holder removed it while we waited; the next one is somebody's afresh

    def _sign(self, fd: int) -> None:
        # Only so that others can name us: the lock holds without it, on a full disk too.
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let others write. The file goes first, so that nobody can hold a lock on a name that is gone."""
        if self._fd >= 0:
            with suppress(OSError):  # one that is left behind does no harm
                if self._is_current(self._fd):
                    self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


class LogWriter:
    """Appends whole lines to one file, alone."""

    def __init__(self, path: Path, *, ack: Ack = "disk") -> None:
        if ack not in ("disk", "os"):
            raise BadRequest(f"there is no acknowledgement {ack!r}", hint='there are "disk" and "os"')
        self.path = path
        self.ack = ack
        self._lock = LogLock(path)
        self._pid = os.getpid()
        self._forks = _forks
        self._poison: str | None = None
        self._fd = -1
        self._syncer: BackgroundSync | None = None
        try:
            self._fd = self._open()
            self._claim()
            self.size = os.fstat(self._fd).st_size
            if self.size == 0:  # new, or left by somebody who died before the folder knew of it
                os.fsync(self._fd)
                sync_folder(self.path.parent)
            elif not may_be_log(self.chunks()):
                raise BadRequest(f"{path} is not a session log", hint="nothing was written to it; give another path")
            if ack == "os":
                self._syncer = BackgroundSync()
                self._syncer.start(self._fd)
        except OSError as problem:
            self.close()
            raise _unopened(path, problem) from problem
        except BaseException:
            self.close()
            raise

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            return _regular(os.open(self.path, flags), self.path)
        except FileNotFoundError:
            pass
        return os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)

    def _claim(self) -> None:
        """Lock the log itself too: the file beside it names the holder, but anybody may remove it."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(
                f"{self.path} is being written by another process, whose lock file is gone",
                hint="close the other session, or open this one with readonly=True",
            ) from None

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """What is in the file, as long as it is open: the number of a closed file is soon that of another one."""
        parts = chunks(self._fd, start=start, end=end)
        while True:
            self._refuse_closed()
            try:
                part = next(parts, None)
            except HarkenError:
                self._refuse_closed()
                raise
            self._refuse_closed()
            if part is None:
                return
            yield part

    def _refuse_closed(self) -> None:
        if self._fd < 0:
            raise Closed(f"the session {self.path} is closed", hint="open it again")

    def is_torn(self) -> bool:
        """Whether the file ends in the middle of a line."""
        return self.size > 0 and os.pread(self._fd, 1, self.size - 1) != b"\n"

    def last_line(self) -> int:
        """Where the last line begins."""
        end = self.size
        while end > 0:
            start = max(0, end - CHUNK)
            if (at := _read(self._fd, end - start, start).rfind(b"\n")) >= 0:
                return start + at + 1
            end = start
        return 0

    def append(self, lines: bytes, count: int = 1) -> None:
        """Put whole lines at the end; when this returns they are acknowledged."""
        if self._poison is not None or self._fd < 0 or self._forks != _forks or (self._syncer and self._syncer.failure):
            self._refuse()
        try:
            written = os.write(self._fd, lines)
            self.size += written
            if written != len(lines):
                self._write_on(memoryview(lines)[written:])
            if self.ack == "disk":
                syncing.sync(self._fd)
        except OSError as problem:
            raise self._poisoned(problem) from problem
        if self._syncer is not None:
            self._syncer.wrote(count)

    def _write_on(self, rest: memoryview) -> None:
        """After a short write, go on only where the file agrees about how much of it arrived."""
        while rest:
            if os.fstat(self._fd).st_size != self.size:
                raise OSError(errno.EIO, "fewer bytes arrived than were said to be written")
            written = os.write(self._fd, rest)
            self.size += written
            rest = rest[written:]

    def flush(self) -> None:
        """Return when everything appended so far is on disk."""
        self._refuse()
        try:
            if self._syncer is not None:
                self._syncer.flush()
        except OSError as problem:
            raise self._poisoned(problem) from problem

    def _refuse(self) -> None:
        """Raise what stands in the way of writing, if anything does."""
        if self._poison is None and self._syncer is not None and self._syncer.failure is not None:
            raise self._poisoned(self._syncer.failure)
        if self._poison is not None:
            raise Poisoned(self._poison, hint=_AGAIN)
        self._refuse_closed()
        if self._forks != _forks:
            raise Locked(
                f"{self.path} is being written by process {self._pid}, from which this one was forked",
                hint="open the session in the process that writes it",
            )

    def _poisoned(self, problem: OSError) -> Poisoned:
        self._poison = f"writing {self.path} failed: {problem.strerror or problem}"
        return Poisoned(self._poison, hint=_AGAIN)

    def interrupted(self) -> None:
        """A signal came in between: nobody can tell any more what is there and what is believed."""
        self._poison = self._poison or f"writing {self.path} was interrupted"

    def close(self) -> None:
        """Put what is left on disk and let others write; harmless when done twice."""
        mine = self._forks == _forks
        try:
            if mine and self._fd >= 0 and self._poison is None:
                self.flush()
        finally:
            if mine and self._syncer is not None:
                self._syncer.stop()
            if self._fd >= 0:
                if mine:  # a child that was forked off meanwhile has the file open, and would keep it locked
                    with suppress(OSError):
                        fcntl.flock(self._fd, fcntl.LOCK_UN)
                fd, self._fd = self._fd, -1  # before it is closed, for whoever reads in another thread
                os.close(fd)
            if mine:
                self._lock.release()

    def __del__(self) -> None:
        with suppress(HarkenError, OSError, AttributeError):  # forgotten by its owner, perhaps half made
            self.close()


_forks = 0
"""How often this process was forked from one like it; cheaper to compare than a process id, which is a system call."""


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)

_AGAIN = "nothing acknowledged is lost; close this session and load the file again to go on"
