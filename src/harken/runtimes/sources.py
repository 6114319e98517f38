"""Reading a source while somebody writes it.

A file is read from its beginning to its end, through one open file. On the way everything is hashed: what was kept
before is compared with what is there now, and what is handed out is what was hashed. Memory stays bounded: a file is
handed out in parts that end at closed cuts, and an overlong line is only counted (`Elided`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken import clock, ids
from harken.context.chains import FileStamp, SourceMemory
from harken.errors import HarkenError
from harken.formats import Delta
from harken.formats.facts import FileFacts, Scan
from harken.formats.kit.claims import HEAD, best
from harken.formats.kit.jsonl import MAX_LINE
from harken.store import Content, PackedFrame

from . import claim_of, get, names
from .base import Runtime
from .databases import Same
from .elided import Elided, Gap
from .files import SQLITE, OpenFile, Unfit

PART = 4 << 20
"""How much of a file is scanned at once; more only where no cut falls."""
LINE_LIMIT = MAX_LINE + 1
"""A longer line, its newline among it, is kept as bytes and never looked at."""
UNCUT_LIMIT = 128 << 20
"""How much of a file may stand between two cuts, overlong lines aside."""


class SourceChanged(HarkenError):
    """The file was written to while it was read, and not at its end."""


class PrefixChanged(HarkenError):
    """The file does not begin with what was kept of it."""


class Part(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A stretch of a file that was read and scanned, from one closed cut to the next."""

    offset: int
    segments: tuple[tuple[int, bytes], ...]
    """The bytes that are held, each with its place behind `offset`."""
    gaps: tuple[Gap, ...] = ()
    frames: tuple[PackedFrame, ...] = ()
    """The first deltas, compressed; their bytes are not in the segments then."""
    facts: FileFacts
    last: bool
    size: int
    """How long the content is up to here."""
    digest: str
    """The hash of all that."""
    closed_digest: str
    """The hash of the content up to the last closed cut."""
    stamp: FileStamp
    key: str = ""
    """Which session of a database it is."""

    @property
    def length(self) -> int:
        """How many bytes it brings, packed or not."""
        return sum(len(data) for _, data in self.segments) + sum(frame.size for frame in self.frames)

    def bytes_of(self, start: int, end: int, path: Path) -> bytes | Iterable[bytes]:
        """The bytes from one offset of the content to another; in pieces where overlong lines are among them, which
        are read again and must be what they were."""
        first, last = start - self.offset, end - self.offset
        if not self.gaps:
            at, data = self.segments[0]
            return data[first - at : last - at]
        if not any(gap.start < last and first < gap.start + gap.size for gap in self.gaps):
            return b"".join(data[max(0, first - at) : max(0, last - at)] for at, data in self.segments)
        return self._pieces(first, last, path)

    def contents(self, path: Path) -> Iterator[tuple[Delta, Content | None]]:
        """Each delta with its bytes; those of a packed frame come with the first delta in it."""
        packed: list[Content | None] = []
        for frame in self.frames:
            packed += [frame, *[None] * (len(frame.names) - 1)]
        yield from zip(self.facts.deltas, packed, strict=False)
        for delta in self.facts.deltas[len(packed) :]:
            yield delta, self.bytes_of(delta.start, delta.end, path) if delta.content is None else delta.content

    def _pieces(self, first: int, last: int, path: Path) -> Iterator[bytes]:
        stops: list[tuple[int, bytes | Gap]] = [*self.segments, *((gap.start, gap) for gap in self.gaps)]
        for at, item in sorted(stops, key=lambda stop: stop[0]):
            if not isinstance(item, Gap):
                if piece := item[max(0, first - at) : max(0, last - at)]:
                    yield piece
            elif first <= at < last:
                hasher = ids.ContentHasher()
                with OpenFile(path) as file:
                    for chunk in file.chunks(self.offset + at, item.size):
                        hasher.update(chunk)
                        yield chunk
                if hasher.hexdigest() != item.digest:
                    raise SourceChanged(f"{path}: was written to while it was read", hint="import it again")


class SourceStream:
    """The content from `offset` on, as far as it has been read; from the beginning on everything is hashed."""

    def __init__(self, file: OpenFile, offset: int, kept: int, digest: str) -> None:
        """`digest` is the hash of the first `kept` bytes as they were kept, if any were; `offset` is no more."""
        self._file = file
        self._chunks = file.chunks()
        self._confirmed = file.stamp
        self._hasher, self._hashed = ids.ContentHasher(), 0
        """Over all that was read, and how far it has come: what is held waits until a cut falls."""
        self._closed = ids.ContentHasher()
        """Over what lies before `offset`."""
        self._kept, self._digest = kept, digest
        self.offset = offset
        self.position = 0
        self.ended = False
        self._segments: list[tuple[int, bytes | bytearray]] = [(0, b"")]
        """What is held, each with its place behind `offset`; bytes as long as they came in one piece."""
        self._gaps: list[Gap] = []
        self._line = 0
        """Where the line that is being read begins, behind `offset`."""
        self._long: ids.ContentHasher | None = None
        self._long_size = 0
        self._cut = (offset, self._closed)
        """Where the last cut fell, and the hash of what lies before it."""

    @property
    def held(self) -> int:
        """How many bytes are in memory."""
        return sum(len(data) for _, data in self._segments)

    def fill(self, size: int) -> None:
        """Read on until so many bytes are held or the end has come, and past what was kept in any case."""
        while not self.ended and (self.held < size or self.position < self._kept):
            chunk = next(self._chunks, b"")
            self.ended = not chunk
            if self.position < self._kept:
                self._compare(chunk)
                self._hashed += len(chunk)
            elif self._long is not None or self._gaps:
                self._catch_up()
                self._hasher.update(chunk)
                self._hashed += len(chunk)
            before = max(0, min(len(chunk), self.offset - self.position))
            self.position += len(chunk)
            if len(chunk) > before:
                self._hold(chunk[before:] if before else chunk)
        if self.position < self._kept:
            raise PrefixChanged(f"{self._file.path}: is shorter than what was kept of it")
        if self.ended and self._long is not None:
            self._close_gap(ended=False)

    def _compare(self, chunk: bytes) -> None:
        at = 0
        for stop in (self.offset, self._kept):
            if self.position + at <= stop <= self.position + len(chunk):
                end = stop - self.position
                self._hasher.update(chunk[at:end])
                at = end
                if stop == self.offset:
                    self._closed = self._hasher.copy()
                if stop == self._kept and self._hasher.hexdigest() != self._digest:
                    raise PrefixChanged(f"{self._file.path}: does not begin with what was kept of it")
        self._hasher.update(chunk[at:])

    def _catch_up(self) -> None:
        """Hash what waits for it; only while all that is held is one segment does anything wait."""
        if self._hashed < self.position:
            self._hasher.update(memoryview(self._segments[0][1])[self._hashed - self.offset :])
            self._hashed = self.position

    def _hold(self, chunk: bytes) -> None:
        if self._long is not None:
            end = chunk.find(b"\n") + 1
            self._long.update(chunk[:end] if end else chunk)
            self._long_size += end or len(chunk)
            if not end:
                return
            self._close_gap(ended=True)
            chunk = chunk[end:]
        at, data = self._segments[-1]
        if not data:
            data = chunk
        else:
            data = data if isinstance(data, bytearray) else bytearray(data)
            data += chunk
        self._segments[-1] = (at, data)
        if (newline := chunk.rfind(b"\n")) >= 0:
            self._line = at + len(data) - len(chunk) + newline + 1
        elif at + len(data) - self._line > LINE_LIMIT:
            self._catch_up()
            self._long = ids.ContentHasher()
            self._long.update(data[self._line - at :])
            self._long_size = at + len(data) - self._line
            self._segments[-1] = (at, data[: self._line - at])

    def _close_gap(self, *, ended: bool) -> None:
        assert self._long is not None
        self._gaps.append(Gap(self._line, self._long_size, self._long.hexdigest(), ended))
        self._line += self._long_size
        self._segments.append((self._line, b""))
        self._long = None

    def content(self) -> tuple[tuple[tuple[int, bytes], ...], tuple[Gap, ...]]:
        """What is held, and the lines between."""
        whole = [(at, bytes(data)) for at, data in self._segments]  # no second copy: it is held like this now
        self._segments = [*whole]
        return tuple(whole), tuple(self._gaps)

    def close(self, offset: int) -> tuple[str, str]:
        """A cut falls here, behind `offset`: the hash of all that was read, and of what lies before the cut."""
        end, hasher = offset - self.offset, self._closed.copy()
        if any(gap.start < end for gap in self._gaps):
            for chunk in self._file.chunks(self.offset, end):
                hasher.update(chunk)
        else:
            hasher.update(memoryview(self._segments[0][1])[:end])
            if self._hashed <= offset <= self.position:  # so that every byte is hashed once
                self._hasher, self._hashed = hasher.copy(), offset
        self._catch_up()
        self._cut = (offset, hasher)
        return self._hasher.hexdigest(), hasher.hexdigest()

    def drop(self) -> None:
        """Forget what lies before the last cut."""
        offset, self._closed = self._cut
        by = offset - self.offset
        held = ((at - by, data) for at, data in self._segments if at + len(data) >= by)
        self._segments = [(max(0, at), data[max(0, -at) :]) for at, data in held]
        self._gaps = [msgspec.structs.replace(gap, start=gap.start - by) for gap in self._gaps if gap.start >= by]
        self._line -= by
        self.offset = offset

    def confirm(self, now: int) -> None:
        """Make sure that what was read is one version of the file: whatever changed it since it was opened, or may
        have within a tick of its clock, it has only added to it."""
        stamp = self._file.stamp_now()
        if stamp == self._confirmed and not (self.ended and stamp.is_recent(now)):
            return
        self._catch_up()
        again = ids.ContentHasher()
        for chunk in self._file.chunks(0, self.position):
            again.update(chunk)
        if again.hexdigest() != self._hasher.hexdigest():
            raise SourceChanged(f"{self._file.path}: was rewritten while it was read", hint="import it again")
        self._confirmed = stamp


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """Where reading goes on: what is known of the content up to the last closed cut, and of what was kept."""

    offset: int = 0
    scan: str = ""
    size: int = 0
    digest: str = ""
    versions: dict[str, str] = {}
    """Of a database: what is known of its sessions, by their names."""

    @classmethod
    def after(cls, known: SourceMemory | None) -> Resumption | None:
        """Behind what is known of a source; None where all of it has to be read."""
        if known is None or not known.digest:
            return None
        return cls(offset=known.offset, scan=known.scan, size=known.size, digest=known.digest)


def read_parts(file: OpenFile, scan: Scan, since: Resumption, now: clock.Clock = clock.now) -> Iterator[Part]:
    """What there is of a file that grows, behind the last closed cut. `PrefixChanged` where it does not begin with
    what was kept, `SourceChanged` where it is rewritten meanwhile."""
    stream = SourceStream(file, since.offset, since.size, since.digest)
    state, size = since.scan.encode(), PART
    while True:
        stream.fill(size)
        segments, gaps = stream.content()
        length = max([at + len(data) for at, data in segments] + [gap.start + gap.size for gap in gaps])
        data: Any = Elided(segments, gaps, length) if gaps else segments[0][1]
        facts = scan(data, state)
        if not stream.ended and facts.offset == stream.offset:
            if stream.held > UNCUT_LIMIT:
                raise Unfit(f"{file.path}: {UNCUT_LIMIT >> 20} MiB without a record to cut at")
            size = 2 * stream.held
            continue
        stream.confirm(now())
        whole, closed = stream.close(facts.offset)
        yield Part(
            offset=stream.offset,
            segments=segments,
            gaps=gaps,
            facts=facts,
            last=stream.ended,
            size=stream.position,
            digest=whole,
            closed_digest=closed,
            stamp=file.stamp,
        )
        if stream.ended:
            return
        stream.drop()
        state, size = facts.state, PART


# -- one source, of whatever kind ------------------------------------------------------------------------------------


class Claimed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Whose the file is; the parts follow."""

    runtime: str


class NotClaimed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Nobody's file, and why."""

    why: str
    hint: str
    stamp: FileStamp
    program: str = ""  # the one that wrote it, where it is a session that cannot be read yet


_OF_RUNTIMES = "`harken doctor` lists the runtimes whose sessions can be imported"
_OF_DOCUMENTS = "if it is a session document, `harken std validate` says what is wrong with it"


class Restarted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The file does not begin with what was kept of it: the parts that follow are those of all of it."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One session of a database cannot be taken in; the others go on."""

    key: str
    why: str
    hint: str


Reading = Iterator[Claimed | NotClaimed | Restarted | Refused | Same | Part]


def may_claim(runtime: Runtime, head: bytes) -> bool:
    """Whether a file that begins like this can be the runtime's; to look for a key costs less than to parse."""
    if runtime.source == "database":
        return head.startswith(SQLITE)
    # A key may be written with escapes, or in UTF-16, which nobody does and anybody may.
    return (
        not runtime.keys
        or b"\\u00" in head
        or b"\0" in head[:4]
        or any(f'"{key}"'.encode() in head for key in runtime.keys)
    )


def _not_claimed(file: OpenFile, head: bytes, asked: set[str]) -> NotClaimed:
    """Why none of those that were asked claims the file: it may be the session of another."""
    others = (other for other in map(get, names()) if other.name not in asked and may_claim(other, head))
    if (found := best((other, claim_of(other, head, file.path)) for other in others)) is None:
        from . import unread  # most files are somebody's

        if (program := unread.recognise(head, file.path)) is not None:
            return NotClaimed(why=program.why, hint=unread.HINT, stamp=file.stamp, program=program.name)
        hint = _OF_DOCUMENTS if file.path.name.endswith(".json") else _OF_RUNTIMES
        return NotClaimed(why="not a session of any runtime that can be imported", hint=hint, stamp=file.stamp)
    why = f"a session of {found[0].label}, which was not asked for"
    return NotClaimed(why=why, hint=f"ask for {found[0].name}, or for no runtime by name", stamp=file.stamp)


def read_source(
    path: Path, runtimes: Sequence[Runtime], since: Resumption | None = None, now: clock.Clock = clock.now
) -> Reading:
    """What there is to say of a file: whose it is, then its parts."""
    with OpenFile(path) as file:
        head = file.read(0, HEAD)
        found = best((runtime, claim_of(runtime, head, path)) for runtime in runtimes if may_claim(runtime, head))
        if len(head) == HEAD and (found is None or found[0].source == "document"):
            from .documents import claimed_by_all

            found = claimed_by_all(file, head, runtimes) or found
        if found is None:
            yield _not_claimed(file, head, {runtime.name for runtime in runtimes})
            return
        runtime = found[0]
        yield Claimed(runtime=runtime.name)
        scan = runtime.read.scan
        if runtime.source != "file":
            from . import documents  # most sources are files that grow

            yield from documents.read_parts(file, runtime, now, since.versions if since is not None else {})
        else:
            try:
                yield from read_parts(file, scan, since or Resumption(), now)
            except PrefixChanged:
                yield Restarted()
                yield from read_parts(file, scan, Resumption(), now)
