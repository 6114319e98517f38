"""Slices: the values of one type that a session holds, in memory or in a file of lines.

A LOG slice only ever grows and is not rolled back; a STATE slice is put back by `Session.restore`.
"""

from __future__ import annotations

import enum
import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from harken.errors import BadRequest, HarkenError
from harken.files import sync_folder
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

    Each addition is one write at the end of the file. A line that was torn by a crash is closed before the next one,
    and passed over by readers."""

    def __init__(self, path: Path, type: type[T]) -> None:
        self.path = path
        self._decode = msgspec.json.Decoder(type, dec_hook=_decoded).decode
        self._told = False
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o600)
        except OSError as problem:
            raise _failed(path, problem) from problem
        self._torn = not self._ends_with_a_line()

    def _ends_with_a_line(self) -> bool:
        size = os.fstat(self._fd).st_size
        return not size or os.pread(self._fd, 1, size - 1) == b"\n"

    def all(self) -> tuple[T, ...]:
        """Every value that can be read, in the order of the file."""
        return tuple(self._values(self._read()))

    def _read(self) -> bytes:
        parts, place = [], 0
        try:
            while part := os.pread(self._fd, 1 << 20, place):
                parts.append(part)
                place += len(part)
        except OSError as problem:
            raise _failed(self.path, problem) from problem
        return b"".join(parts)

    def _values(self, data: bytes) -> Iterator[T]:
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                yield self._decode(line)
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as problem:
                self._tell(number, problem)

    def _tell(self, number: int, problem: Exception) -> None:
        if not self._told:
            self._told = True
            _log.warning("%s: line %d cannot be read and is passed over: %s", self.path, number, problem)

    def extend(self, items: Iterable[T]) -> None:
        """Add values at the end, in one write."""
        lines = b"".join(plain_json(item) + b"\n" for item in items)
        if lines:
            self._write(b"\n" + lines if self._torn else lines)
            self._torn = False

    def _write(self, lines: bytes) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                rest = memoryview(lines)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError as problem:
            self._torn = True
            raise _failed(self.path, problem) from problem

    def replace(self, items: Iterable[T]) -> None:
        """Let these be all: a new file in the place of the old one, whole or not at all."""
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            fd = os.open(new, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            before, self._fd = self._fd, fd
            self.extend(items)
            os.fsync(fd)
            new.rename(self.path)
            os.close(before)
            sync_folder(self.path.parent)
        except OSError as problem:
            raise _failed(self.path, problem) from problem

    def close(self) -> None:
        """Put it on disk and let go of the file; harmless when done twice."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


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
