"""From a path or a URL to a store; and of its file, whose it is, which version it has, and who may write to it next.

The lock is fair: who came first goes first, and who dies lets go. SQLite lets one writer in at a time, but those who
wait for it poll with growing pauses, and an unlucky one can starve for seconds. So writers first queue at a file of
their own. Each draws a number (the file holds the next one), locks the byte at that offset for as long as it waits and
works, and goes ahead when nobody holds a byte below its own. The kernel drops the lock of a process that dies, whatever
it was doing. The numbers decide only the order: that two writers never work at once is still SQLite's own promise, so
a damaged lock file costs fairness and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import struct
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harken import clock, ids
from harken.errors import BadRequest, Corrupt, Locked, NotFound
from harken.files import make_folder, sync_folder

from . import forking, sql
from .arguments import PATH
from .plugins import known, plugin, plugins
from .waiting import go_on_waiting

if TYPE_CHECKING:
    from .base import Store
    from .db import Database

Steps = Sequence[tuple[int, str, Sequence[str]]]
FILE_NAME = "harken.db"
"""What the store is called inside a folder that was named instead of a file."""

MEMORY, SQLITE = "memory", "sqlite"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?!\\)")
"""Before a colon, as in a URL; one letter is a drive of Windows."""


def open_store(where: str | os.PathLike[str], *, create: bool = True, damaged: bool = False) -> Store:
    """The store at a path, made if it is not there unless `create` forbids it; with `damaged`, what is left of it.

    A folder stands for the file `harken.db` inside it; `sqlite:PATH` says the same as PATH. `memory:` is a store that
    goes with the program. Other schemes come from plug-ins."""
    from .memory import MemoryStore
    from .sqlite import SqliteStore

    path = locate(where)
    if path is None:
        text = os.fspath(where)
        scheme = _scheme(text)
        return MemoryStore() if scheme == MEMORY else plugin(scheme)(text, create=create)
    if not create and (not path.exists() or (path.is_file() and not path.stat().st_size and not _was_a_store(path))):
        raise NotFound(
            f"{path} is empty" if path.exists() else f"there is no store at {path}",
            hint="is that the place? `harken import` and `harken checkpoint` make one; --store names another",
        )
    return SqliteStore(path, damaged=damaged)


def locate(where: str | os.PathLike[str]) -> Path | None:
    """The file that the words name; None for a store that is in no file of ours.

    A path object is a path. Text that begins like a URL is one, unless there is a file of that name: whoever writes
    `postgres:x` does not mean a new file."""
    text = os.fspath(PATH.take("open", "path_or_url", where))
    scheme = _scheme(text) if isinstance(where, str) else ""
    if scheme == MEMORY:
        if text[len("memory:") :].strip("/"):
            raise BadRequest("a store in memory has no name", hint="`memory:` is a new one each time")
        return None
    # Plug-ins are looked for only where there is a scheme: that takes longer than all the rest.
    if scheme and scheme != SQLITE:
        if scheme in plugins():
            return None
        shown = f"{scheme}:…" if "@" in text else text  # before it may stand a password, and errors are written down
        raise BadRequest(f"no store for {scheme}: addresses", hint=f"a path (`./{shown}` is one), {known()}")
    if scheme:
        text = text[len("sqlite:") :].removeprefix("//")
    if not text:  # after `sqlite:`
        raise BadRequest("an empty path names no store", hint=f"a path, {known()}")
    path = Path(text)
    return path / FILE_NAME if path.is_dir() else path


def _scheme(text: str) -> str:
    """What stands before the colon; empty where it cannot be a scheme, or where there is a file of that name."""
    found = _SCHEME.match(text)
    return found[1].lower() if found and not Path(text).exists() else ""


# -- the file of a store ----------------------------------------------------------------------------------------------

_SQLITE = b"SQLite format 3\0"
_HEADER = 100
"""Bytes of a SQLite file's header; the mark of the program that owns it stands at 68."""

_EFFECTIVE = os.access in os.supports_effective_ids


def is_writable(path: Path) -> bool:
    """Whether a store there can be written to, or made: the file and its folder, which gets files beside it."""
    return not path.exists() or all(os.access(one, os.W_OK, effective_ids=_EFFECTIVE) for one in (path, path.parent))


def enlist(path: Path, user: forking.UserOfSqlite, *, make: bool, newest: int) -> tuple[int, int]:
    """Look whose file it is, and make it if it is not there; the answer is its device and inode.

    Not where this process uses it already: the system drops every lock that a process has on a file as soon as the
    process closes any descriptor of it, and SQLite's locks are what keeps others from tearing it apart."""
    with forking.OPENING:
        if forking.forked_in_use:
            raise BadRequest(
                "this process was forked off while another thread used a store, and SQLite could hang in it",
                hint="start it with `spawn`, or fork while nobody uses a store",
            )
        if identity(path) in forking.INHERITED:
            raise BadRequest(
                f"{path} was open in the process that this one was forked from",
                hint="start the child with `spawn`, or open the store only after the fork",
            )
        if not forking.IN_USE[identity(path)]:
            _refuse_strangers(path, newest)
            if os.path.exists(f"{path}-wal"):  # noqa: PTH110 - each opening comes here
                from .wal import refuse_damage  # few ever need it

                refuse_damage(path)
            if make:
                _make_private(path)
        found = identity(path)
        forking.IN_USE[found] += 1
        forking.USERS.add(user)
        return found


def identity(path: str | Path) -> tuple[int, int]:
    """The device and inode of a file; zeros where there is none."""
    try:
        return (found := os.stat(path)).st_dev, found.st_ino  # noqa: PTH116 - each question to a store comes here
    except FileNotFoundError:
        return 0, 0


def _refuse_strangers(path: Path, newest: int) -> None:
    """Leave another program's SQLite file, or a newer Harken's, as it is: asking for our journaling would change it."""
    if path.exists() and not path.is_file():  # to read from a pipe would be to wait for ever
        raise BadRequest(f"{path} is not a file", hint="name the file of a store, or the folder it is in")
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except OSError:
        return  # not there yet, or not readable, which opening it will say better
    if head and not _SQLITE.startswith(head[: len(_SQLITE)]) and not _was_a_store(path):
        from .read_only import refuse_without_rows  # few ever need it

        refuse_without_rows(path)
    if len(head) < _HEADER and (head or _was_a_store(path)):  # SQLite would take it for a new file
        raise Corrupt(f"{path} is cut off: {len(head)} bytes are left of it", hint=sql.PUT_BACK)
    if not head.startswith(_SQLITE):
        return
    if int.from_bytes(head[60:64], "big") > newest or int.from_bytes(head[68:72], "big") != sql.APPLICATION_ID:
        from .read_only import refuse_unknown  # few ever need it

        refuse_unknown(path, newest)


def _was_a_store(path: Path) -> bool:
    """Whether somebody has written there: a number was drawn at its lock, never before the file has its first page."""
    try:
        file = _open_lock(f"{path}-lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return any(os.pread(file, _NUMBER.size, 0))
    finally:
        os.close(file)


def _make_private(path: Path) -> None:
    """The file and any folder made for it are for their owner alone, and synced: SQLite syncs only names it made."""
    if path.exists() and path.stat().st_size:
        return
    make_folder(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    sync_folder(path.parent)


def delist(file: tuple[int, int]) -> None:
    """This process has one database less that uses the file."""
    with forking.OPENING:
        if forking.IN_USE[file] > 0:
            forking.IN_USE[file] -= 1


def upgrade(db: Database, steps: Steps) -> None:
    """Bring the file to our version in one transaction, unless it can only be read; a newer one is refused."""
    missing = _missing_steps(db, steps)
    db.is_old = bool(missing) and not db.writable
    if missing == () or db.is_old:
        return
    with db.transaction():
        missing = _missing_steps(db, steps)  # somebody may have been faster
        for version, name, statements in steps if missing is None else missing:
            for statement in statements:
                db.do(statement)
            row = (version, name, clock.now())
            db.do(sql.ADD_VERSION, (*row, ids.row_sum("migrations", row)))
        if missing is None:
            db.do(sql.SET_FACT, drawn_epoch())
        for mark in sql.MARKS:
            db.do(mark.format(version=steps[-1][0]))


def drawn_epoch() -> tuple[str, str, bytes]:
    """The fact that says which epoch it is, drawn anew: whoever follows the store must start over."""
    fact = ("epoch", os.urandom(16).hex())
    return *fact, ids.row_sum("facts", fact)


def _missing_steps(db: Database, steps: Steps) -> Steps | None:
    """The steps this file has not seen; None for a file without any table."""
    if not (tables := {name for (name,) in db.all(sql.TABLES)}):
        return None
    if "migrations" not in tables:
        raise BadRequest(f"{db.path} is not a store of Harken's", hint="give another: `--store FILE` or HARKEN_STORE")
    rows = db.all(sql.VERSIONS)
    seen = {row[0] for row in rows}
    if seen != {step[0] for step in steps} and any(ids.row_sum("migrations", row[:-1]) != row[-1] for row in rows):
        raise Corrupt(f"{db.path} does not know its version", hint=sql.PUT_BACK)
    newest = max(seen, default=0)
    if 0 < newest < steps[0][0]:
        raise BadRequest(
            f"{db.path} is of an early Harken whose format was never released (schema {newest})",
            hint="import the sessions again: move this file away, or name another with --store",
        )
    if newest > steps[-1][0]:
        from .read_only import newer

        raise newer(db.path, newest, steps[-1][0])
    return tuple(step for step in steps if step[0] not in seen)


_NUMBER = struct.Struct("<q")
_WRAP, _BASE = 1 << 40, 64  # bytes below the base are the number itself
# Open-file-description locks belong to the open file, not to the process, so that threads count as well.
_SETLK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_FLOCK = struct.Struct("hhqqi4x")
_FAIR = os.uname().sysname == "Linux"  # elsewhere the structure differs, and the whole file is the lock
_BUSY = (errno.EAGAIN, errno.EACCES)


class FairTurns:
    """So many may be inside at once, and who came first goes first: a place is handed on to the next in line."""

    def __init__(self, places: int = 1) -> None:
        self._places = places
        self._lock = threading.Lock()
        self.waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        """Wait for a place; False where none came free in time."""
        with self._lock:
            if self._places:  # never while somebody waits
                self._places -= 1
                return True
            mine = threading.Lock()
            mine.acquire()
            self.waiting.append(mine)
        try:
            if mine.acquire(timeout=max(0.0, timeout)):
                return True
        except BaseException:
            if not self._left(mine):
                self.release()
            raise
        return not self._left(mine)

    def release(self) -> None:
        """Hand the place on."""
        with self._lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self._places += 1

    def _left(self, mine: threading.Lock) -> bool:
        """Whether it could leave the line; not if the place had been handed to it already."""
        with self._lock:
            if mine in self.waiting:
                self.waiting.remove(mine)
                return True
            return False


def _open_lock(path: str, flags: int) -> int:
    """A descriptor of a lock file. A symbolic link points at what is somebody else's; a pipe would keep us waiting."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, f"{path} is no regular file; remove it, the lock file will be made there")
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


class FairLock:
    """One queue; `acquire` and `release` by one thread at a time per process, others wait inside."""

    def __init__(self, path: str, *, timeout: float = 60.0) -> None:
        self.path, self.timeout = path, timeout
        self._inside = FairTurns()
        self._file = _open_lock(path, os.O_RDWR | os.O_CREAT)

    def acquire(self) -> None:
        """Wait for our turn; `Locked` when that takes too long."""
        deadline = clock.monotonic() + self.timeout
        if not self._inside.acquire(self.timeout):
            raise self._too_long()
        try:
            if _FAIR:
                self._await_turn(self._draw(), deadline)
            else:
                self._await_file(deadline)
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
        os.close(self._file)

    def _draw(self) -> int:
        """The next number whose byte nobody holds: two cannot lock one. Who meets nobody leaves the file as it is."""
        first = number = self._next()
        while True:
            try:
                self._byte(fcntl.F_WRLCK, _BASE + number, 1)
                break
            except OSError as error:
                if error.errno not in _BUSY:
                    raise
                number += 1
        if (number != first or not number) and number >= self._next():
            with contextlib.suppress(OSError):  # a full disk: who comes next draws the number after ours all the same
                os.pwrite(self._file, _NUMBER.pack(number + 1), 0)
        return number

    def _next(self) -> int:
        """The number in the file, never mapped: who touches a mapped file that was truncated dies by SIGBUS."""
        found = os.pread(self._file, _NUMBER.size, 0)
        return int(_NUMBER.unpack(found.ljust(_NUMBER.size, b"\0"))[0]) % _WRAP

    def _await_file(self, deadline: float) -> None:
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
        go_on_waiting()
        time.sleep(pause)
        return min(pause * 1.5, 0.001)

    def _byte(self, kind: int, start: int, length: int) -> None:
        fcntl.fcntl(self._file, _SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))

    def _too_long(self) -> Locked:
        return Locked(f"waited {self.timeout:.0f} s for another writer", hint=f"see which process holds {self.path}")
