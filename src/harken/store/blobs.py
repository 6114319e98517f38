"""Artifacts in SQLite, the reading half: frames, where bytes lie in them, and that they are what their name says.

A frame is a plain zstd frame that states its content size and carries zstd's own checksum. A frame that nearly repeats
another is compressed with the other's content as a raw prefix; that other has none itself, so reading stays two steps.
An artifact is a slice of a frame, or several whole frames. Its hash is checked whenever its bytes are given out.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import zstandard

from harken import ids
from harken.errors import Corrupt, HarkenError, NotFound

from . import sql
from .db import FSCK, Row, all_checked, checked
from .values import ArtifactInfo

if TYPE_CHECKING:
    from .db import Database

FRAME_SIZE = 1 << 20
"""The content a full frame has; a part of a large artifact has exactly this."""

LIMIT = 4 << 20
"""No frame has more content than this, so reading one takes bounded memory whatever it claims."""

BULK, PACKED, COPY = 3, 6, 16
"""Levels of compression: an import wants speed, packing happens once and wants room, and copies, which lean on another
frame, are rare, and most of their bytes are never looked at twice."""
_PAGE = 6000  # content that compresses into a page of 4 KiB at any level, but for one recorded turn of a hundred
_WINDOW = 23  # a prefix and a frame, both at their largest, lie inside one window


def live_level(size: int) -> int:
    """The level for a checkpoint, which is packed again later: what fits into a page anyway is hardly compressed."""
    return -3 if size <= _PAGE else 1


class Frame(NamedTuple):
    """A frame as it lies in the store."""

    hash: bytes
    size: int
    data: bytes


class _Coders(threading.local):
    """Coders are reused (making one costs as much as using it) but belong to one thread: two that use one at the same
    time end in a segmentation fault."""

    def __init__(self) -> None:
        self.decoder = zstandard.ZstdDecompressor()
        self.encoders: dict[int, zstandard.ZstdCompressor] = {}

    def encoder(self, level: int) -> zstandard.ZstdCompressor:
        if level not in self.encoders:
            self.encoders[level] = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)
        return self.encoders[level]


_coders = _Coders()


def compress(content: bytes, level: int = BULK) -> bytes:
    """The content as a zstd frame."""
    return _coders.encoder(level).compress(content)


def seal_frame(content: bytes, *, level: int = BULK, prefix: bytes | None = None) -> Frame:
    """Compress content into a frame, alone or against a prefix."""
    if prefix is None:
        data = compress(content, level)
    else:
        # Long-distance matching finds the copied stretch wherever it lies in the prefix.
        parameters = zstandard.ZstdCompressionParameters.from_level(
            max(level, COPY), window_log=_WINDOW, enable_ldm=True, write_checksum=True, write_content_size=True
        )
        data = zstandard.ZstdCompressor(dict_data=_raw(prefix), compression_params=parameters).compress(content)
    return Frame(ids.frame_hash(data), len(content), data)


def open_frame(frame: Frame, *, name: str, prefix: bytes | None = None, most: int = LIMIT) -> bytes:
    """The content of a frame, or its first bytes, its hash checked; `Corrupt` says which frame and what is wrong."""
    if ids.frame_hash(frame.data) != frame.hash:
        raise Corrupt(f"{name} is not what was written: its hash differs", hint=_READ_DATA)
    try:
        claimed = zstandard.frame_content_size(frame.data)
        if claimed != frame.size or not 0 <= claimed <= LIMIT:
            raise Corrupt(f"{name} claims {claimed} bytes where {frame.size} were written", hint=FSCK)
        decoder = _coders.decoder if prefix is None else zstandard.ZstdDecompressor(dict_data=_raw(prefix))
        if most < frame.size:  # as much quicker as they are fewer
            return decoder.stream_reader(frame.data).read(max(most, 0))
        return decoder.decompress(frame.data)
    except zstandard.ZstdError as error:
        raise Corrupt(f"{name} does not decompress: {error}", hint=FSCK) from None


def _raw(content: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


_READ_DATA = "`harken fsck --read-data` says what is lost"
_UNREADABLE = (TypeError, AttributeError, ValueError, OverflowError, KeyError, IndexError, msgspec.MsgspecError)


@contextmanager
def readable() -> Iterator[None]:
    """A block that makes values of checked rows; where they hold what cannot be, that is said."""
    try:
        yield
    except _UNREADABLE as error:
        raise Corrupt(f"a row cannot be read: {error!r}", hint=FSCK) from error


FrameRow = tuple[bytes, int, int | None, bytes]  # hash, size, prefix and data
_NOWHERE = (None, None, None)
_TOGETHER = 128  # artifacts that are looked up in one query
_FRAMES_AHEAD, _FRAMES_KEPT, _WORTH_KEEPING = 32, 4, 64 << 10


class SqliteBlobs:
    """What a store in SQLite answers about artifacts."""

    db: Database
    _places: dict[str, tuple[Any, Any, Any]]
    """Where a walk saw artifacts lie; a hint, since they may have moved since."""

    def __init__(self) -> None:
        self._places = {}
        self._frames: OrderedDict[int, tuple[bytes, bytes]] = OrderedDict()

    def get(self, artifact: str) -> bytes:
        """The bytes of that full name, checked against it."""
        return b"".join(self.iter_parts(artifact))

    def get_many(self, artifacts: Sequence[str], *, large: Callable[[str], bytes] | None = None) -> Iterator[bytes]:
        """The bytes of many, in the order asked, in few queries; neighbours in one frame cost one decompression."""
        if (writer := self._writer()) is not None:
            writer.add_sealed()
        for at in range(0, len(artifacts), _TOGETHER):
            some = artifacts[at : at + _TOGETHER]
            places = self._places_of(some)
            frames = _Frames(self, [place[0] for place in places])
            for frame, neighbours in groupby(zip(some, places, strict=True), lambda pair: pair[1][0]):
                yield from self._neighbours(frames, frame, list(neighbours), large or self.get)

    def _neighbours(
        self,
        frames: _Frames,
        frame: Any,
        wanted: list[tuple[str, tuple[Any, Any, Any]]],
        otherwise: Callable[[str], bytes],
    ) -> Iterator[bytes]:
        """The bytes of artifacts that lie, or lay, in one frame."""
        names = [name for name, _ in wanted]
        try:
            content = frames.content(frame, max(start + size for _, (_, start, size) in wanted))
            found = [content[start : start + size] for _, (_, start, size) in wanted]
            sound = ids.artifact_ids(found) == names
        except (TypeError, ValueError):  # no place at all
            found, sound = [b""] * len(names), False
        if sound:
            yield from found
            return
        for name, data in zip(names, found, strict=True):
            if ids.artifact_id(data) == name:
                yield data
            else:  # large, evicted, not written yet, or moved since we looked
                self._places.pop(name, None)
                yield otherwise(name)

    def _places_of(self, artifacts: Sequence[str]) -> list[tuple[Any, Any, Any]]:
        """Frame, start and size of each, as far as they are known; nobody has checked them, but what is read there
        will be."""
        places = [self._places.get(name, _NOWHERE) for name in artifacts]
        rest = [name for name, place in zip(artifacts, places, strict=True) if place is _NOWHERE]
        rest = [name for name in rest if ids.is_hex(name) and len(name) == 64]
        if not rest:
            return places
        found = {row[1].hex(): row[2:5] for row in self.artifact_rows(rest)}
        return [found.get(name, place) for name, place in zip(artifacts, places, strict=True)]

    def artifact_rows(self, artifacts: Sequence[str]) -> list[Row]:
        """The rows of those artifacts that there are, and perhaps of others whose names begin alike."""
        marks = ",".join("?" * len(artifacts))
        starts = [bytes.fromhex(name[:16]) for name in artifacts]
        return all_checked("artifacts", self.db.all(f"{sql.ARTIFACTS} WHERE substr(id, 1, 8) IN ({marks})", starts))

    def iter_parts(self, artifact: str) -> Iterator[bytes]:
        """The bytes of one artifact in parts of bounded size; `Corrupt` at the end if they were not its bytes."""
        hasher = ids.ArtifactHasher()
        for piece in self._pieces(artifact):
            hasher.update(piece)
            yield piece
        if (name := hasher.hexdigest()) != artifact and not self._is_blanked(artifact, name):
            raise _not_its_bytes(artifact)

    def _is_blanked(self, artifact: str, name: str) -> bool:
        """Whether what has this name is the artifact, but for what was forgotten of it."""
        from .erasing import tombstones  # of few anything is

        return any(stone.hash == name for stone in tombstones(self, [artifact]).values())

    def has(self, artifact: str) -> bool:
        """Whether its bytes are here."""
        with contextlib.suppress(NotFound):
            if self._pending(artifact) is not None:
                return True
            number, _, frame, *_ = self._locate(artifact)
            return frame is not None or self.db.one(sql.PARTS, (number,)) is not None
        return False

    def info(self, artifact: str) -> ArtifactInfo:
        """What is known of it without reading it."""
        found = self.infos([artifact])
        if not found:
            raise NotFound(f"no artifact {ids.artifact_ref(artifact)}", hint="`harken fsck` says what is lost")
        return found[artifact]

    def infos(self, artifacts: Sequence[str]) -> dict[str, ArtifactInfo]:
        """`info` of many, by their names; those that are not here are left out."""
        self._see_own_writes()
        asked = {name for name in artifacts if ids.is_hex(name) and len(name) == 64}
        names, found = list(asked), {}
        for at in range(0, len(names), _TOGETHER):
            for _, id, frame, _, size, policy, expires in self.artifact_rows(names[at : at + _TOGETHER]):
                name = id.hex()
                if name in asked:
                    evicted = frame is None and not self.has(name)
                    policy = policy or "default"
                    found[name] = ArtifactInfo(id=name, size=size, policy=policy, expires=expires, evicted=evicted)
        return found

    def artifacts(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Full names that begin with these hex digits."""
        self._see_own_writes()
        if prefix and not ids.is_hex(prefix):
            return []
        found = sorted(checked("artifacts", row)[1].hex() for row in self.db.all(sql.ARTIFACTS_BETWEEN, span(prefix)))
        return [name for name in found if name.startswith(prefix)][:limit]

    def find_artifact(self, artifact: str) -> Row | None:
        """The row number, name, frame, start, size, policy and expiry of an artifact."""
        try:
            id = bytes.fromhex(artifact)
        except ValueError:
            return None
        row = self.db.one(sql.ARTIFACT, (id[:8], id))
        return checked("artifacts", row) if row is not None else None

    def _locate(self, artifact: str) -> Row:
        found = self.find_artifact(artifact)
        if found is None:
            raise NotFound(f"no artifact {ids.artifact_ref(artifact)}", hint="`harken fsck` says what is lost")
        return found

    def _pieces(self, artifact: str) -> Iterator[bytes]:
        """The bytes as they lie: one slice, or the parts of something large. Looks again if they were moved."""
        if (pending := self._pending(artifact)) is not None:
            yield pending
            return
        place: Row = self._locate(artifact)
        while place[2] is not None:
            before = place
            _, _, frame, start, size, *_ = place
            try:
                data = self.frame(frame)[start : start + size]
                # A slot may have been filled anew since we looked where the artifact is.
                if (name := ids.artifact_id(data)) == artifact or self._is_blanked(artifact, name):
                    yield data
                    return
                problem: HarkenError = _not_its_bytes(artifact)
            except Corrupt as error:
                problem = error
            if (place := self._locate(artifact)) == before:
                raise problem
        yield from self._parts(artifact, place[0])

    def _parts(self, artifact: str, number: int) -> Iterator[bytes]:
        parts = [checked("parts", row) for row in self.db.all(sql.PARTS, (number,))]
        if not parts:
            from .erasing import gone

            raise gone(self, artifact)
        for _, _, frame, size in parts:
            content = self.frame(frame)
            if len(content) != size:
                raise _not_its_bytes(artifact)
            yield content

    def _writer(self) -> Any:
        """The writer of the transaction that this thread is inside of."""
        return self.db.local.writer

    def _pending(self, artifact: str) -> bytes | None:
        """Bytes this thread has put in a transaction that is still open."""
        writer = self._writer()
        return writer.pending(artifact) if writer is not None else None

    def _see_own_writes(self) -> None:
        """Let this thread's open transaction write down what it has only noted, before we look."""
        writer = self._writer()
        if writer is not None:
            writer.note_rows()

    def frame(self, number: int, *, alone: bool = False) -> bytes:
        """The content of a frame (a negative number is a slot of `loose`), its hash checked.

        The last few large ones are kept: a frame never changes, and of a slot it is asked whether it has."""
        kept = self.kept(number)
        if kept is not None:
            return kept
        return self.open_row(number, self._frame_row(number), alone=alone)

    def kept(self, number: int) -> bytes | None:
        """The content of a frame that was read before."""
        kept = self._frames.get(number)
        if kept is not None and (number > 0 or self.db.one(sql.LOOSE_HASH, (-number,)) == (kept[0],)):
            return kept[1]
        return None

    def open_row(self, number: int, row: FrameRow, *, alone: bool = False, most: int = LIMIT) -> bytes:
        """The content of a frame whose row has been read, or its first bytes."""
        hash, size, prefix, data = row
        if alone and prefix is not None:
            raise Corrupt(f"frame {number} leans on another, though others lean on it", hint=FSCK)
        before = self.frame(prefix, alone=True) if prefix is not None else None
        content = open_frame(Frame(hash, size, data), name=f"frame {number}", prefix=before, most=most)
        # What a transaction reads may be its own, and taken back; then its number is given out again.
        if most >= size >= _WORTH_KEEPING and not self.db.holding:
            self._frames[number] = (hash, content)
            if len(self._frames) > _FRAMES_KEPT:
                with contextlib.suppress(KeyError):  # another thread was faster
                    self._frames.popitem(last=False)
        return content

    def _frame_row(self, number: int) -> FrameRow:
        row = self.db.one(sql.FRAME if number > 0 else sql.LOOSE_FRAME, (abs(number),))
        if row is None:
            raise Corrupt(f"frame {number} is missing", hint=FSCK)
        return _frame_of(row, number > 0)

    def frame_rows(self, numbers: Sequence[int]) -> dict[int, FrameRow]:
        """The rows of many frames, those that are there."""
        found: dict[int, FrameRow] = {}
        for statement, sign in ((sql.FRAMES_AT, 1), (sql.LOOSE_FRAMES_AT, -1)):
            asked = sorted({number * sign for number in numbers if number * sign > 0})
            rows = self.db.all(statement, (msgspec.json.encode(asked).decode(),)) if asked else []
            found |= {row[0] * sign: _frame_of(row, sign > 0) for row in rows}
        return found


class _Frames:
    """The frames that a stretch of artifacts lies in, read a few at a time as they are needed."""

    def __init__(self, blobs: SqliteBlobs, numbers: Sequence[Any]) -> None:
        self._blobs = blobs
        self._ahead = [number for number in dict.fromkeys(numbers) if isinstance(number, int)]
        self._rows: dict[int, FrameRow] = {}

    def content(self, number: int, most: int) -> bytes:
        """The first bytes of a frame; empty where it is no longer there."""
        return self._blobs.kept(number) or self._read(number, most)

    def _read(self, number: int, most: int) -> bytes:
        if number not in self._rows:
            at = self._ahead.index(number)
            self._rows = self._blobs.frame_rows(self._ahead[at : at + _FRAMES_AHEAD])
        row = self._rows.get(number)
        return self._blobs.open_row(number, row, most=most) if row is not None else b""


def _frame_of(row: Row, packed: bool) -> FrameRow:
    """Hash, size, prefix and data of a row of `frames` or `loose`, checked."""
    *facts, data = row
    _, hash, size, *rest = checked("frames" if packed else "loose", tuple(facts))
    if not isinstance(data, bytes):
        raise Corrupt(f"frame {row[0]} holds no bytes", hint=FSCK)
    return hash, size, rest[0] if packed else None, data


def span(prefix: str) -> tuple[bytes, bytes]:
    """The least and the greatest eight bytes that a name with this beginning can start with."""
    digits = prefix[:16]
    return bytes.fromhex(digits.ljust(16, "0")), bytes.fromhex(digits.ljust(16, "f"))


def _not_its_bytes(artifact: str) -> Corrupt:
    return Corrupt(f"{ids.artifact_ref(artifact)} is not what its name says", hint=_READ_DATA)
