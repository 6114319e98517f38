"""The spool: what a run has heard, in a file beside the store until all of it is in the store.

A file `STORE-spool-ID` for its owner alone; one that cannot be read becomes `STORE-unread-ID`. In it stand a header
line, then the runtime's own bytes. What the runtime does not print (prompts, and how it ended) stands between them on
lines of ours, which begin with the mark in the header. Whoever writes a spool, or stores one, holds a lock on it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from harken.errors import BadRecord, HarkenError
from harken.events import Error, Event, Prompt, System
from harken.files import SPOOL, UNREAD, find_beside, name_beside, sync_folder, write_hint, write_whole
from harken.store import Store

from .lines import LineSplitter
from .live import RunFacts
from .process import CHUNK


class SpoolHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: what is known of a run before it says anything."""

    harken_spool: Literal[1] = 1
    mark: str
    """Lines that begin with it are ours."""
    runtime: str
    started: int
    """When the run began; readers that number its lines take it."""
    session: str
    """What the session is called if the runtime never names one."""
    facts: RunFacts


class SpoolNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands on a line of ours, behind the mark."""

    time: int
    prompt: str = ""
    """A prompt that the runtime was given."""
    status: int | None = None
    """How the runtime ended: its exit status, or the number of a signal below zero."""


def note_events(runtime: str, note: SpoolNote) -> list[Event]:
    """What a line of ours says: a prompt, or how the run ended."""
    if note.prompt:
        return [Prompt(content=note.prompt, source="user", time=note.time)]
    if (status := note.status) is None:
        return []
    name = "" if status >= 0 else _signal_name(-status)
    said = f"exit status {status}" if status >= 0 else f"killed by {name}"
    facts = {"exit_status": status if status >= 0 else None, "signal": name or None}
    end = System(subtype="shutdown", message=said, metadata=msgspec.json.encode(facts), time=note.time)
    failed = Error(message=f"{runtime} ended with {said}", time=note.time)
    return [failed, end] if status else [end]


def _signal_name(number: int) -> str:
    """What a signal is called: most real-time signals have no name, and a file may hold any number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class SpoolFile:
    """A spool that is being written. Nothing here ever raises: it is asked for only when the store fails."""

    def __init__(self, store: Store, header: SpoolHeader) -> None:
        place = _place(store)
        # The start comes first in the name: spools are stored in the order of their names, and one run may go on
        # from what another said.
        self.path = place and name_beside(place, SPOOL, f"{header.started:016x}{os.urandom(4).hex()}")
        self.whole = place is not None
        """Whether everything that it was given is in it."""
        self._header = header
        self._handle = -1

    def events(self, note: SpoolNote) -> list[Event]:
        """What a line of ours says."""
        return note_events(self._header.runtime, note)

    def line(self, data: bytes) -> None:
        """Append a line of the runtime's output. The file is made with the first."""
        try:
            if self.whole and self._handle < 0:
                self._begin()
            if self.whole:
                self._write(data)
        except OSError:
            self.whole = False

    def _begin(self) -> None:
        """Make the file. It gets its name last, since one that is not locked, or has no header, is not of a run that
        goes on."""
        assert self.path is not None
        scratch = self.path.with_name(f".{self.path.name}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._handle = os.open(scratch, flags, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write(msgspec.json.encode(self._header))
            scratch.rename(self.path)
        except OSError:
            scratch.unlink(missing_ok=True)
            raise

    def _write(self, line: bytes) -> None:
        left = memoryview(line + b"\n")
        while left:
            left = left[os.write(self._handle, left) :]

    def note(self, note: SpoolNote) -> None:
        """Append a line of ours."""
        self.line(self._header.mark.encode() + b" " + msgspec.json.encode(note))

    def keep(self) -> None:
        """Leave it for whoever writes to the store next."""
        self.sync()
        if self._handle >= 0:
            os.close(self._handle)

    def sync(self) -> None:
        """Put it on the disk."""
        if self._handle >= 0 and self.path is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._handle)
                sync_folder(self.path.parent)

    def discard(self) -> None:
        """Take it away: everything in it is in the store."""
        if self._handle >= 0 and self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            os.close(self._handle)


def new_header(runtime: str, facts: RunFacts, *, started: int, session: str) -> SpoolHeader:
    """The header of a new spool."""
    return SpoolHeader(mark=os.urandom(8).hex(), runtime=runtime, started=started, session=session, facts=facts)


def spools(store: Store) -> list[Path]:
    """The spools beside a store, in the order in which their runs began."""
    return [path for path in find_beside(Path(store.location).absolute(), SPOOL) if _is_spool(path)]


def odd_spools(store: Path) -> list[Path]:
    """What has the name of a spool of this store and is no file: a folder, or a link, which nobody follows."""
    return [path for path in find_beside(store.absolute(), SPOOL) if os.path.lexists(path) and not _is_spool(path)]


def _is_spool(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:  # it has just been stored
        return False


def waiting_spools(store: Store) -> list[Path]:
    """The spools beside a store whose runs are over, and which nobody is storing."""
    return [path for path in spools(store) if _waits(path)]


def _waits(path: Path) -> bool:
    try:
        with open_spool(path) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return os.fstat(handle).st_size > 0
    except (BlockingIOError, FileNotFoundError):  # its run goes on, or it has just been stored
        return False
    except OSError:  # another user's: it is there, and more cannot be said
        return True


@contextlib.contextmanager
def copied_spools(store: Store, target: Path) -> Iterator[None]:
    """A block that copies the store. The spools are copied before it: of one that is stored meanwhile both have what it
    holds, and storing it again adds nothing; copied behind it, neither would."""
    copies: list[Path] = []
    try:
        if not target.exists():  # else the block says so, and what lies beside it is another store's
            for path in spools(store):
                copies.append(name_beside(target, SPOOL, _unique(store, path)))
                _copy(path, copies[-1])
        yield
    except BaseException:
        if not target.exists():
            for copy in copies:
                copy.unlink(missing_ok=True)
        raise


def _copy(path: Path, copy: Path) -> None:
    """Copy a spool, in the place of what an earlier copy of the store left there: a spool only grows."""
    try:
        with contextlib.suppress(FileNotFoundError):  # its run has stored it meanwhile
            write_whole(copy, _pieces(path), replace=True)
    except OSError as error:
        raise HarkenError(f"{copy} could not be written: {error.strerror}", hint=write_hint(error)) from error


def _pieces(path: Path) -> Iterator[bytes]:
    """What a file holds now, a little at a time; its run may go on writing for ever."""
    with open_spool(path) as handle:
        left = os.fstat(handle).st_size
        while left > 0 and (piece := os.read(handle, min(left, CHUNK))):
            left -= len(piece)
            yield piece


def set_aside(store: Store, path: Path) -> Path:
    """Give a spool that cannot be read a name that nobody looks for, and nothing has; the answer is the new path."""
    aside = name_beside(Path(store.location).absolute(), UNREAD, _unique(store, path))
    while os.path.lexists(aside):
        aside = aside.with_name(f"{aside.name}-{os.urandom(4).hex()}")
    path.rename(aside)
    return aside


def _unique(store: Store, path: Path) -> str:
    return path.name.removeprefix(name_beside(Path(store.location), SPOOL, "").name)


def _place(store: Store) -> Path | None:
    """The file of the store; None for one that is in no file."""
    path = Path(store.location)
    return path.absolute() if path.is_file() else None


@contextlib.contextmanager
def taken(path: Path) -> Iterator[int | None]:
    """The spool, open for reading and locked; None while its run goes on, or somebody else is storing it."""
    with open_spool(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        # Whoever had it a moment ago may have stored it meanwhile, and taken it away.
        yield handle if os.fstat(handle).st_nlink else None


@contextlib.contextmanager
def open_spool(path: Path) -> Iterator[int]:
    """The spool, open for reading."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield handle
    finally:
        os.close(handle)


def read_spool(handle: int, path: Path) -> tuple[SpoolHeader, Iterator[bytes | SpoolNote]]:
    """The header, and the lines behind it, each the runtime's or ours."""
    lines = _lines(handle)
    try:
        header = msgspec.json.decode(next(lines, b""), type=SpoolHeader)
    except (msgspec.MsgspecError, ValueError) as problem:
        hint = "what it holds are the lines that a program printed"
        raise BadRecord(f"{path} does not begin as a spool does: {problem}", hint=hint) from problem
    return header, _lines_and_notes(lines, header.mark.encode() + b" ")


def _lines(handle: int) -> Iterator[bytes]:
    splitter = LineSplitter()
    while part := os.read(handle, CHUNK):
        yield from splitter.feed(part)
    yield from splitter.end()


def _lines_and_notes(lines: Iterator[bytes], mark: bytes) -> Iterator[bytes | SpoolNote]:
    for line in lines:
        if line.startswith(mark):
            # One that was cut off in a crash says nothing.
            with contextlib.suppress(msgspec.MsgspecError, ValueError):
                yield msgspec.json.decode(line[len(mark) :], type=SpoolNote)
        elif line:
            yield line
