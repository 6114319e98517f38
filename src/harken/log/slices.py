"""Slices: the values of one type that a session holds, in memory or in a file of lines.

A LOG slice only ever grows and is not rolled back; a STATE slice is put back by `Session.restore`.
"""

from __future__ import annotations

import enum
import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import write
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from harken.errors import BadRequest, Closed, HarkenError
from harken.files import sync_folder
from harken.formats.transcript.entry import TranscriptEntry
from harken.formats.transcript.events import plain_json

T = TypeVar("T")
_log = logging.getLogger("harken.slices")


class SlicePolicy(enum.Enum):
    """What becomes of a slice when the session is put back."""

    STATE = "state"
    LOG = "log"


class Slice(Protocol[T]):
    """The values of one type."""

    def all(self) -> tuple[T, ...]: ...
    def extend(self, items: Iterable[T]) -> None: ...
    def replace(self, items: Iterable[T]) -> None: ...
    def close(self) -> None: ...


class SliceFactory(Protocol):
    """Makes the slice of a type."""

    def create(self, type: type[T]) -> Slice[T]: ...


class MemorySlice(Generic[T]):
    """A slice that ends with the process."""

    def __init__(self) -> None:
        self._items: list[T] = []

    def all(self) -> tuple[T, ...]:
        """Every value, as they came."""
        return tuple(self._items)

    def extend(self, items: Iterable[T]) -> None:
        """Add values at the end."""
        self._items.extend(items)

    def replace(self, items: Iterable[T]) -> None:
        """Let these be all."""
        self._items = list(items)

    def close(self) -> None:
        """Nothing to let go of."""


class MemorySliceFactory:
    """Slices in memory."""

    def create(self, type: type[T]) -> MemorySlice[T]:
        """An empty slice."""
        return MemorySlice()


class JsonlSlice(Generic[T]):
    """A slice in a file, a line for each value; nothing of it is held in memory.

    Each addition is one write at the end of the file, whole or not at all. Others may write the same file, or put
    another in its place; a line that a crash tore is closed before the next one, and passed over by readers."""

    def __init__(self, path: Path, type: type[T]) -> None:
        self.path = path
        self._decode = msgspec.json.Decoder(type, dec_hook=_decoded).decode
        self._told = self._closed = False
        self._fd = self._open()

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
        except OSError as problem:
            raise _failed(self.path, problem) from problem

    def all(self) -> tuple[T, ...]:
        """Every value that can be read, in the order of the file; also when it is closed."""
        return tuple(self._values(self._read()))

    def _read(self) -> bytes:
        try:
            fd = os.open(self.path, os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return b""
        except OSError as problem:
            raise _failed(self.path, problem) from problem
        with os.fdopen(fd, "rb") as file:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH)  # nobody is in the middle of a write
                return file.read()
            except OSError as problem:
                raise _failed(self.path, problem) from problem

    def _values(self, data: bytes) -> Iterator[T]:
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                yield self._decode(line)
            except _UNREADABLE as problem:
                self._tell(number, problem)

    def _tell(self, number: int, problem: Exception) -> None:
        if not self._told:
            self._told = True
            _log.warning("%s: line %d cannot be read and is passed over: %s", self.path, number, problem)

    def extend(self, items: Iterable[T]) -> None:
        """Add values at the end, in one write."""
        if lines := self._lines(items):
            with self._locked() as fd:
                _append(fd, lines)

    def _lines(self, items: Iterable[T]) -> bytes:
        """Values as lines; one that could not be read again is refused."""
        lines = [_encoded(item) for item in items]
        for line in lines:
            try:
                self._decode(line)
            except _UNREADABLE as problem:
                hint = "dispatch values of a dataclass whose fields JSON knows, or keep the slice in memory"
                raise BadRequest(f"{line[:80]!r} could not be read again: {problem}", hint=hint) from problem
        return b"".join(line + b"\n" for line in lines)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file that stands at the path now, which nobody else writes meanwhile."""
        if self._closed:
            raise Closed(f"{self.path} is closed", hint="dispatch before the session is closed")
        try:
            while True:
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                if _is_at(self._fd, self.path):
                    break
                os.close(self._fd)
                self._fd = self._open()
            fd = self._fd
            try:
                yield fd
            finally:
                fcntl.flock(fd, fcntl.LOCK_UN)
        except OSError as problem:
            raise _failed(self.path, problem) from problem

    def replace(self, items: Iterable[T]) -> None:
        """Let these be all: a new file in the place of the old one, whole or not at all."""
        lines = self._lines(items)
        new = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}.tmp")
        with self._locked() as before:
            fd = os.open(new, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            try:
                _append(fd, lines)
                os.fsync(fd)
                new.rename(self.path)
            except BaseException:
                os.close(fd)
                new.unlink(missing_ok=True)
                raise
            self._fd = fd
            sync_folder(self.path.parent)
        os.close(before)

    def close(self) -> None:
        """Put it on disk and let go of the file; harmless when done twice."""
        if self._closed:
            return
        self._closed = True
        try:
            os.fsync(self._fd)
        except OSError as problem:
            raise _failed(self.path, problem) from problem
        finally:
            os.close(self._fd)


_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


def _encoded(item: Any) -> bytes:
    """A value as the decoder of its type reads it."""
    try:
        return plain_json(item) if isinstance(item, TranscriptEntry) else msgspec.json.encode(item)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return plain_json(item)


def _append(fd: int, lines: bytes) -> None:
    """Write whole lines at the end; what a failed write left behind is taken back."""
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        lines = b"\n" + lines
    rest = memoryview(lines)
    try:
        while rest:
            rest = rest[write(fd, rest) :]
    except BaseException:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


class JsonlSliceFactory:
    """Slices in files `<module>:<QualName>.jsonl` of a folder, which only their owner may read."""

    def __init__(self, base_dir: str | os.PathLike[str]) -> None:
        self.base_dir = Path(base_dir)

    def create(self, type: type[T]) -> JsonlSlice[T]:
        """The slice of a type, with what its file holds."""
        name = f"{type.__module__}:{type.__qualname__}.jsonl"
        if "/" in name or "\0" in name:
            raise BadRequest(f"{name!r:.80} is no name of a file", hint="dispatch values of a class with a plain name")
        return JsonlSlice(self.base_dir / name, type)


@dataclass(frozen=True)
class SliceFactoryConfig:
    """Where slices are kept, by policy."""

    state_factory: SliceFactory = field(default_factory=MemorySliceFactory)
    log_factory: SliceFactory = field(default_factory=MemorySliceFactory)


def _decoded(type: type, value: Any) -> Any:
    """A value of a type that JSON does not know: made from its text, where the type can be."""
    return type(value)


def _failed(path: Path, problem: OSError) -> HarkenError:
    return HarkenError(
        f"{path}: {problem.strerror or problem}", hint="look at the folder, the disk and the permissions"
    )
