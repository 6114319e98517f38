"""Frames: compressed runs of bytes, each with a hash of its own, of which an artifact is a slice.

A frame is a plain zstd frame that states its content size and carries zstd's own checksum. A frame that nearly repeats
another is compressed with the other's content as a raw prefix; that other has none itself, so reading stays two steps.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import zstandard

from harken import ids
from harken.errors import Corrupt

FRAME_SIZE = 1 << 20
"""The content a full frame has; a part of a large artifact has exactly this."""

LIMIT = 4 << 20
"""No frame has more content than this, so reading one takes bounded memory whatever it claims."""

BULK, PACKED = 3, 6
"""Levels of compression: an import wants speed, packing happens once and wants room."""

COPY = 16
"""The level for a frame that leans on another: copies are rare, and most of their bytes are never looked at twice."""
_PAGE = 4800  # content that text compresses into a page of 4 KiB at any level
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
    """Coders are reused (making one costs as much as using it) but belong to one thread."""

    def __init__(self) -> None:
        self.decoder = zstandard.ZstdDecompressor()
        self.encoders: dict[int, zstandard.ZstdCompressor] = {}

    def encoder(self, level: int) -> zstandard.ZstdCompressor:
        if level not in self.encoders:
            self.encoders[level] = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)
        return self.encoders[level]


_coders = _Coders()


def seal_frame(content: bytes, *, level: int = BULK, prefix: bytes | None = None) -> Frame:
    """Compress content into a frame, alone or against a prefix."""
    if prefix is None:
        data = _coders.encoder(level).compress(content)
    else:
        # Long-distance matching finds the copied stretch wherever it lies in the prefix.
        parameters = zstandard.ZstdCompressionParameters.from_level(
            max(level, COPY), window_log=_WINDOW, enable_ldm=True, write_checksum=True, write_content_size=True
        )
        data = zstandard.ZstdCompressor(dict_data=_raw(prefix), compression_params=parameters).compress(content)
    return Frame(ids.frame_hash(data), len(content), data)


def open_frame(frame: Frame, *, name: str, prefix: bytes | None = None) -> bytes:
    """The content of a frame, its hash checked first; `Corrupt` says which frame and what is wrong with it."""
    if ids.frame_hash(frame.data) != frame.hash:
        raise Corrupt(
            f"{name} is not what was written: its hash differs", hint="`harken fsck --read-data` says what is lost"
        )
    try:
        claimed = zstandard.frame_content_size(frame.data)
        if claimed != frame.size or not 0 <= claimed <= LIMIT:
            raise Corrupt(f"{name} claims {claimed} bytes where {frame.size} were written")
        decoder = _coders.decoder if prefix is None else zstandard.ZstdDecompressor(dict_data=_raw(prefix))
        return decoder.decompress(frame.data)
    except zstandard.ZstdError as error:
        raise Corrupt(f"{name} does not decompress: {error}") from None


def _raw(content: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
