"""Reading many files at once: processes that read and scan, for one that keeps what they found.

Every worker is a process of its own, which is told a path at a time over a pipe and answers with what `read_source`
says. Results are asked for in the order in which the paths were given, so an import with workers keeps the same things
in the same order as one without. A worker that dies is a failure of the file it was reading, and another takes its
place; workers end when their pipe does.
"""

from __future__ import annotations

import contextlib
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

import msgspec

from harken.errors import HarkenError
from harken.ids import is_text
from harken.store import PackedFrame
from harken.store.blobs import FRAME_SIZE

from . import PluginProblem, failures, note_problem
from .base import Runtime
from .databases import Same
from .files import Unfit, Unreadable
from .sources import Claimed, NotClaimed, Part, Reading, Refused, Restarted, Resumption, SourceChanged, read_source

AHEAD = 4
"""How many messages of a file may wait for whoever keeps them: all of a file that is one part."""
FILES_AHEAD = 6
"""How many files are handed to workers ahead of the one that is being kept, for each process."""
LONG_REST = 64 << 10
"""A frame of as many bytes is worth having: what it lacks to a full one costs little room."""
PIPE = 1 << 20
"""How many bytes a pipe holds: a part is handed over in few pieces."""
_LENGTH = struct.Struct("<Q")
_START = "import sys; sys.path[:] = {path!r}; from harken.runtimes.workers import main; main({names!r})"


class ReadTask(msgspec.Struct, frozen=True, tag=True):
    """A file that is to be read."""

    path: str
    since: Resumption | None


class ReadFailed(msgspec.Struct, frozen=True, tag=True):
    """It could not be read."""

    message: str
    hint: str | None
    changed: bool = False
    """Whether it was rewritten meanwhile."""
    unfit: bool = False
    """Whether it cannot be taken in as it is."""
    problems: tuple[PluginProblem, ...] = ()
    """The plug-ins that failed over it, or before."""


class ReadEnded(msgspec.Struct, frozen=True, tag=True):
    """That was all of it."""

    problems: tuple[PluginProblem, ...] = ()
    """The plug-ins that failed over it, or before."""


WorkerMessage = Claimed | NotClaimed | Restarted | Refused | Same | Part | ReadFailed | ReadEnded
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(WorkerMessage).decode
_decode_task = msgspec.msgpack.Decoder(ReadTask).decode


def _send(stream: IO[bytes], message: WorkerMessage | ReadTask) -> None:
    data = _encode(message)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None where the other end is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    data = stream.read(size)
    return data if len(data) == size else None


# -- in a worker -----------------------------------------------------------------------------------------------------


def _runtimes(names: Sequence[str]) -> list[Runtime]:
    from harken import runtimes

    return [runtimes.get(name) for name in names]


def packed(part: Part) -> Part:
    """The part with its closed deltas compressed, as far as they fill frames: whoever keeps it then has less to do,
    and less is handed over. What is left is a frame too if it is long, and else fills one together with others."""
    if part.gaps or part.facts.side_chains:
        return part
    frames, some, size = list[PackedFrame](), list[bytes](), 0
    whole = part.segments[0][1]
    for delta in part.facts.deltas:
        if not delta.closed or delta.content is not None or delta.end - delta.start > FRAME_SIZE:
            break
        if size + delta.end - delta.start > FRAME_SIZE:
            frames.append(PackedFrame.of(some))
            some, size = [], 0
        some.append(whole[delta.start - part.offset : delta.end - part.offset])
        size += len(some[-1])
    if size >= LONG_REST:
        frames.append(PackedFrame.of(some))
    if not frames:
        return part
    rest = part.facts.deltas[sum(len(frame.names) for frame in frames) :]
    start = min([delta.start - part.offset for delta in rest], default=len(whole))
    return msgspec.structs.replace(part, frames=tuple(frames), segments=((start, whole[start:]),))


def main(names: Sequence[str]) -> None:
    """Read files until nobody asks any more."""
    known = _runtimes(names)
    with contextlib.suppress(BrokenPipeError):
        while (data := _receive(sys.stdin.buffer)) is not None:
            task = _decode_task(data)
            try:
                for said in read_source(Path(task.path), known, task.since):
                    _send(sys.stdout.buffer, packed(said) if isinstance(said, Part) else said)
                _send(sys.stdout.buffer, ReadEnded(failures()))
            except BrokenPipeError:
                return
            except HarkenError as problem:
                changed, unfit = isinstance(problem, SourceChanged), isinstance(problem, Unfit)
                _send(sys.stdout.buffer, ReadFailed(str(problem), problem.hint, changed, unfit, failures()))
            except (Exception, SystemExit) as problem:  # noqa: BLE001  whatever is wrong with one file, others are read
                message = f"{task.path}: could not be taken in ({type(problem).__name__}: {problem})"
                _send(sys.stdout.buffer, ReadFailed(message, None, problems=failures()))


# -- in whoever asks -------------------------------------------------------------------------------------------------


class _Pending:
    """A file that was handed to a worker, and what it has said so far."""

    def __init__(self, task: ReadTask) -> None:
        self.task = task
        self.said: queue.Queue[WorkerMessage] = queue.Queue(AHEAD)
        self.dropped = threading.Event()
        self._begun = threading.Lock()

    def begin(self) -> bool:
        """Whether nobody has begun to read it: who asks has now."""
        return self._begun.acquire(blocking=False)

    def put(self, message: WorkerMessage) -> None:
        """Hand a message over, unless nobody wants it any more."""
        while not self.dropped.is_set():
            with contextlib.suppress(queue.Full):
                self.said.put(message, timeout=0.2)
                return


class WorkerPool:
    """Workers, and the files they have been given."""

    def __init__(self, names: Sequence[str], workers: int) -> None:
        self._names = list(names)
        self._tasks: queue.Queue[_Pending | None] = queue.Queue()
        self._pending: dict[str, _Pending] = {}
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        self._closed.set()
        for pending in self._pending.values():
            pending.dropped.set()
        for _ in self._threads:
            self._tasks.put(None)
        for process in list(self._processes):
            process.kill()
        for thread in self._threads:
            thread.join()

    def reading_ahead(
        self, paths: Iterable[Path | Unreadable], todo: Sequence[Path], since: Callable[[Path], Resumption | None]
    ) -> Iterator[Path | Unreadable]:
        """The paths, while the workers read those in `todo` that come next."""
        given: set[Path] = set()
        coming = iter(todo)
        for path in paths:
            for ahead in islice(coming, FILES_AHEAD * (len(self._threads) + 1) - len(given)):
                given.add(ahead)
                self.submit(ahead, since(ahead))
            yield path
            if isinstance(path, Path):
                given.discard(path)
                self.drop(path)

    def submit(self, path: Path, since: Resumption | None) -> None:
        """Have a file read; `read` gives what was found. One whose name is no UTF-8 cannot be told to a worker."""
        if not is_text(str(path)):
            return
        pending = _Pending(ReadTask(str(path), since))
        self._pending[str(path)] = pending
        self._tasks.put(pending)

    def drop(self, path: Path) -> None:
        """Nobody wants what was found in the file."""
        if (pending := self._pending.pop(str(path), None)) is not None:
            pending.dropped.set()

    def take(self, path: Path) -> bool:
        """Whether no worker has begun to read the file, nor will: whoever asks reads it, rather than wait."""
        pending = self._pending.get(str(path))
        if pending is not None and not pending.begin():
            return False
        self.drop(path)  # who asks for it once more would wait for a worker that never begins
        return True

    def read(self, path: Path, since: Resumption | None) -> Reading | None:
        """What a worker says of the file; None where it was not given to one, or as something else."""
        pending = self._pending.get(str(path))
        if pending is None or pending.task.since != since:
            self.drop(path)
            return None
        return self._answer_of(path, pending)

    def _answer_of(self, path: Path, pending: _Pending) -> Reading:
        begun = False
        try:
            while not isinstance(said := self._next(pending), ReadEnded):
                if said is None and not begun:
                    yield from read_source(path, _runtimes(self._names), pending.task.since)
                    return
                if said is None:
                    raise HarkenError(f"{path}: no process is left to read it", hint="import it again with --jobs 1")
                if isinstance(said, ReadFailed):
                    kind = SourceChanged if said.changed else Unfit if said.unfit else HarkenError
                    raise kind(said.message, hint=said.hint)
                begun = True
                yield said
        finally:
            self.drop(path)

    def _next(self, pending: _Pending) -> WorkerMessage | None:
        """What is said next; None where nobody is left to say anything."""
        while True:
            with contextlib.suppress(queue.Empty):
                return pending.said.get(timeout=0.5)
            if not any(thread.is_alive() for thread in self._threads):
                return None

    def _serve(self) -> None:
        """One worker after the other, until nothing is left to do. Where none can be started, files are read by
        whoever asks for them."""
        while not self._closed.is_set():
            try:
                process = self._start()
            except OSError:
                return
            with self._ending(process):
                while (pending := self._tasks.get()) is not None and not self._closed.is_set():
                    if pending.begin() and not self._ask(process, pending):
                        break
                if pending is None:
                    return

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _START.format(path=sys.path, names=self._names)]
        # A session of its own: Ctrl-C is for whoever keeps what was read, who then ends the workers.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, pipesize=PIPE
        )

    @contextlib.contextmanager
    def _ending(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        self._processes.add(process)
        try:
            yield
        finally:
            self._processes.discard(process)
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # a last word that nobody hears
                    if stream is not None:
                        stream.close()

    @staticmethod
    def _ask(process: subprocess.Popen[bytes], pending: _Pending) -> bool:
        """Have a worker read a file; False where it died over it."""
        assert process.stdin is not None and process.stdout is not None
        data: bytes | None = None
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            _send(process.stdin, pending.task)
            while (data := _receive(process.stdout)) is not None:
                said = _decode(data)
                ended = isinstance(said, (ReadEnded, ReadFailed))
                for problem in said.problems if ended else ():  # noted before anybody is told that it is over
                    note_problem(problem)
                pending.put(said)
                if ended:
                    return True
        process.kill()
        code = process.wait()
        why = (
            "what was read of it makes no sense"
            if data is not None
            else f"the process that read it died ({_how(code)})"
        )
        pending.put(ReadFailed(f"{pending.task.path}: {why}", None))
        return False


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
