"""Finding and opening files that somebody else writes, without being caught by a pipe, a loop, a link to nowhere or a
compressed file that unpacks to more than there is room for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import zstandard

from harken import ids
from harken.context.chains import FileStamp, recall
from harken.errors import BadRequest, HarkenError
from harken.store import SessionRow

from .base import Environment, Runtime, note_failure

CHUNK = 1 << 20
"""How much is read at once."""
UNPACKED = 64 << 20
RATIO = 200
UNPACKED_LIMIT = 2 << 30
"""A compressed file may unpack to 200 times its size, or to 64 MiB where that is more, and never to more than 2 GiB."""
PIECE = 1 << 10
"""How much is unpacked at once: zstd turns this much into 32 MiB at most."""
SQLITE = b"SQLite format 3\0"
"""How every database begins."""
WAL_HEADER = 32
"""Bytes with which a write-ahead log begins; two numbers in them are new whenever it is begun anew."""
FOLDERS = 1024
"""Of how many folders it is remembered what lies in them: files come folder by folder."""
COPIES = 5
"""How often a database that is being written is copied anew before it is given up for now."""
"""Microseconds. A file touched since may be written again within the same tick of its clock."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A place that could not be looked at, and why."""

    path: str
    why: str


# -- finding ---------------------------------------------------------------------------------------------------------


def walk(
    root: Path, suffixes: Sequence[str] = (".jsonl", ".jsonl.zst"), passed: list[str] | None = None
) -> Iterator[Path | Unreadable]:
    """The files at or below `root` whose names end like this, in a steady order; a file named outright may be called
    anything. A folder is entered once, whatever links to it. The others are added to `passed`, without those in a
    folder that is called like a session's file beside it: they are the session's own."""
    try:
        info = root.stat()
    except OSError as problem:
        yield Unreadable(path=str(root), why=problem.strerror or str(problem))
        return
    if not stat.S_ISDIR(info.st_mode):
        yield root
        return
    endings = tuple(suffixes)
    entered = {(info.st_dev, info.st_ino)}
    folders = [(str(root), passed)]
    while folders:
        folder, others = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as problem:
            yield Unreadable(path=folder, why=problem.strerror or str(problem))
            continue
        below = []
        stems = set()
        for entry in entries:
            try:
                if entry.is_dir():
                    info = entry.stat()
                    if (info.st_dev, info.st_ino) not in entered:
                        entered.add((info.st_dev, info.st_ino))
                        below.append(entry)
                elif entry.name.endswith(endings):
                    stems.add(entry.name.split(".", 1)[0])
                    yield Path(entry.path)
                elif others is not None:
                    others.append(entry.path)
            except OSError as problem:
                yield Unreadable(path=entry.path, why=problem.strerror or str(problem))
        folders += [(entry.path, None if entry.name in stems else others) for entry in reversed(below)]


def as_paths(given: Sequence[str | os.PathLike[str]] | str | bytes | os.PathLike[str]) -> list[Path]:
    """The paths a caller means; one by itself is one path, and not the letters of it."""
    one = isinstance(given, (str, bytes, os.PathLike))
    return [Path(os.fsdecode(path)) for path in ((given,) if one else given)]  # type: ignore[arg-type, union-attr]


def starting_points(paths: Sequence[Path], runtimes: Iterable[Runtime], environ: Environment | None) -> list[Path]:
    """The paths given, else where each runtime keeps its sessions, as far as that is there; refuses where none is."""
    if not (found := places(paths, runtimes, environ)):
        raise HarkenError("no runtime has left sessions here", hint="name a file or a folder")
    return found


def places(paths: Sequence[Path], runtimes: Iterable[Runtime], environ: Environment | None) -> list[Path]:
    """The same, and none where no runtime has left anything yet."""
    if paths:
        return [path.absolute() for path in paths]
    if environ is None:
        raise BadRequest(
            "an import needs paths, or the environment that tells where the runtimes keep their sessions",
            hint="pass `paths`, or your environment as `environ`",
        )
    roots = (root for runtime in runtimes for root in _roots(runtime, environ))
    return [root for root in dict.fromkeys(roots) if _is_there(root)]


def sought(paths: Sequence[Path], runtimes: Sequence[Runtime], environ: Environment | None) -> Sequence[Runtime]:
    """The runtimes whose files are looked for: at paths that were named those of all, else of those that have a place
    of their own. The folders of others are not searched for files that lie anywhere."""
    return runtimes if paths or environ is None else [each for each in runtimes if _roots(each, environ)]


def _roots(runtime: Runtime, environ: Environment) -> list[Path]:
    """Where a runtime keeps its sessions; nowhere, where it cannot say."""
    try:
        return [Path(root) for root in runtime.roots(runtime.home(environ))]
    except Exception as problem:  # noqa: BLE001 (a plug-in may fail in any way, and the others must not)
        note_failure(runtime, f"home() failed: {type(problem).__name__}: {problem}")
        return []


def _is_there(root: Path) -> bool:
    """Whether there is a folder or a file to look at; that it cannot be looked at is told when it is tried."""
    try:
        mode = root.stat().st_mode
        return stat.S_ISDIR(mode) or stat.S_ISREG(mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def session_files(
    points: Iterable[Path], runtimes: Iterable[Runtime], passed: list[str] | None = None
) -> Iterator[Path | Unreadable]:
    """Every session file at or below the starting points, those of a folder before those of the folders in it; what
    is not looked at because of its name is added to `passed`."""
    readers = [runtime.read for runtime in runtimes]
    suffixes = tuple(sorted({suffix for reader in readers for suffix in reader.suffixes}))

    @functools.lru_cache(FOLDERS)
    def holds_pieces(folder: Path) -> bool:
        return any(one.holds_pieces(folder) for one in readers if not one.piece_folders.isdisjoint(folder.parts))

    for point in points:
        for found in walk(point, suffixes, passed):
            if found == point or isinstance(found, Unreadable) or not holds_pieces(found.parent):
                yield found


def whole_stamp(path: Path, runtimes: Iterable[Runtime]) -> FileStamp:
    """The stamp of a file with those that hold more of the same session."""
    found = [stamp_of(path), *(stamp_of(piece) for runtime in runtimes for piece in runtime.read.pieces(path))]
    return FileStamp(sum(one.size for one in found), max(one.modified for one in found), found[0].inode)


class SourceUnreadable(HarkenError):
    """A source that cannot be read: gone since it was found, or not allowed. It says nothing of the store."""


def _unreadable(path: Path | str, problem: OSError) -> SourceUnreadable:
    return SourceUnreadable(f"{path}: {problem.strerror}", hint="look at the path and the permissions")


def known_source(path: Path, known: Container[str]) -> str:
    """What the file is called as a source: whoever keeps it live has noted where it really lies."""
    file = str(path)
    return file if file in known or (real := os.path.realpath(path)) not in known else real


def stamp_of(path: Path | str) -> FileStamp:
    """One `stat`; a `HarkenError` for what is not a regular file, since a pipe would hold us for ever."""
    try:
        return _stamp(os.stat(path), path)  # noqa: PTH116  a Path is five times as slow
    except OSError as problem:
        raise _unreadable(path, problem) from None


def bytes_to_read(path: Path, known: FileStamp | None) -> int:
    """How many bytes of a file have to be read; none where its stamp is still the one that is `known`."""
    try:
        stamp = stamp_of(path)
    except HarkenError:
        return 0
    return 0 if stamp == known else stamp.size


def _stamp(info: os.stat_result, path: Path | str) -> FileStamp:
    if not stat.S_ISREG(info.st_mode):
        raise HarkenError(f"{path}: not a regular file", hint="give a file or a folder of sessions")
    return FileStamp(info.st_size, info.st_mtime_ns, info.st_ino)


# -- reading ---------------------------------------------------------------------------------------------------------


class Unfit(HarkenError):
    """What the file holds cannot be taken in; as long as it does not change, trying again gives the same answer."""


class OpenFile:
    """A file's content as it was when it was opened: a writer may be adding to it. Compressed content is unpacked."""

    def __init__(self, path: Path, *, unpack: bool = True) -> None:
        self.path = path
        try:
            # Without O_NONBLOCK, opening a FIFO that took the file's place since the stat would never return.
            self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as problem:
            raise _unreadable(path, problem) from None
        try:
            self.stamp = _stamp(os.fstat(self._handle), path)
        except HarkenError:
            self.close()
            raise
        self.packed = unpack and path.name.endswith(".zst")

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def stamp_now(self) -> FileStamp:
        """What `stat` says of the open file now."""
        return _stamp(os.fstat(self._handle), self.path)

    def chunks(self, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """The content from `start` on, `size` bytes of it or all."""
        found = self._unpacked() if self.packed else self._plain(start, size)
        skip, left = (start if self.packed else 0), size
        for chunk in found:
            if skip >= len(chunk):
                skip -= len(chunk)
                continue
            part = chunk[skip:] if left is None else chunk[skip : skip + left]
            skip = 0
            if part:
                yield part
            if left is not None:
                left -= len(part)
                if not left:
                    return

    def read(self, start: int, size: int) -> bytes:
        """So many bytes; fewer only at the end."""
        return b"".join(self.chunks(start, size))

    def _plain(self, start: int, size: int | None) -> Iterator[bytes]:
        end = self.stamp.size if size is None else min(self.stamp.size, start + size)
        while start < end:
            try:
                chunk = os.pread(self._handle, min(CHUNK, end - start), start)
            except OSError as problem:
                raise _unreadable(self.path, problem) from None
            if not chunk:
                return
            yield chunk
            start += len(chunk)

    def _unpacked(self) -> Iterator[bytes]:
        """All frames of a zstd file; one that was cut short is an error, since its end would silently be missing."""
        limit = min(UNPACKED_LIMIT, max(UNPACKED, RATIO * self.stamp.size))
        size, frame = 0, None
        try:
            for chunk in self._plain(0, None):
                for at in range(0, len(chunk), PIECE):
                    piece = chunk[at : at + PIECE]
                    while piece:
                        frame = frame or zstandard.ZstdDecompressor().decompressobj()
                        content = frame.decompress(piece)
                        piece = frame.unused_data if frame.eof else b""
                        frame = None if frame.eof else frame
                        size += len(content)
                        if size > limit:
                            raise Unfit(
                                f"{self.path}: unpacks to more than {limit >> 20} MiB",
                                hint="unpack it yourself and import the result, if you trust it",
                            )
                        yield content
        except zstandard.ZstdError as problem:
            raise Unfit(f"{self.path}: not a zstd file ({problem})") from None
        if frame is not None:
            raise Unfit(f"{self.path}: the zstd file is cut short")


# -- databases -------------------------------------------------------------------------------------------------------


def database_stamp(path: Path) -> FileStamp:
    """The stamp of an SQLite file with the log that goes with it."""
    main = stamp_of(path)
    try:
        log = stamp_of(f"{path}-wal")
    except HarkenError:
        return main
    return FileStamp(main.size + log.size, max(main.modified, log.modified), main.inode)


def kept_versions(file: str, rows: Iterable[SessionRow], runtimes: Mapping[str, Runtime]) -> dict[str, str]:
    """What was kept of the sessions of a database, by their names; nothing where the file is none, or one of a runtime
    that is not asked. What is known of agents inside a file says nothing of the file."""
    versions: dict[str, str] = {}
    for row in rows:
        if row.runtime in runtimes and runtimes[row.runtime].source == "database":
            inside = {source: known for source, known in recall(row).items() if ids.file_around(source) == file}
            versions |= {ids.name_within(file, source): known.scan for source, known in inside.items() if known.digest}
    return versions


@contextlib.contextmanager
def open_snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """An SQLite file as it stands at one instant, read only. Whoever writes it is not kept waiting and finds nothing
    changed: a copy is read, since reading the file itself would take its locks, or leave files beside it."""
    with tempfile.TemporaryDirectory(prefix="harken-") as folder:
        copy = _copy_database(path, Path(folder, "copy.db"))
        connection = sqlite3.connect(copy)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            yield connection
        except sqlite3.Error as problem:
            raise HarkenError(
                f"{path}: cannot be read as a database ({problem})",
                hint="close the program that writes it, then try again",
            ) from None
        finally:
            connection.close()


def _copy_database(path: Path, copy: Path) -> Path:
    for _ in range(COPIES):
        before, log = database_stamp(path), _log_of(path)
        for ending in ("", "-wal"):
            try:
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
            except FileNotFoundError as problem:
                if not ending:
                    raise _unreadable(path, problem) from None
                Path(f"{copy}{ending}").unlink(missing_ok=True)
            except OSError as problem:
                raise _unreadable(path, problem) from None
        # A journal beside it is a transaction under way, or one that was cut off and is not ours to undo.
        if Path(f"{path}-journal").exists():
            continue
        # A write-ahead log is added to, and begun anew only once all of it is in the file. As long as it is the same
        # one, it holds whatever was moved into the file while that was copied, and a transaction that was copied in
        # part has no end in it and is passed over.
        if before == database_stamp(path) or (log and log == _log_of(path)):
            return copy
    raise HarkenError(f"{path}: is being written all the time", hint="import it again when it rests")


def _log_of(path: Path) -> bytes:
    """The beginning of the write-ahead log, by which one is told from the next; empty where there is none."""
    try:
        with Path(f"{path}-wal").open("rb") as log:
            head = log.read(WAL_HEADER)
    except OSError:
        return b""
    return head if len(head) == WAL_HEADER else b""
