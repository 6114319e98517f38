"""Artifacts that are compressed before a store sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

from harken import ids

from .blobs import FRAME_SIZE, Frame, open_frame, seal_frame


class PackedFrame(msgspec.Struct, frozen=True, array_like=True):
    """Artifacts that were compressed together before any store saw them: an import has other processes do that."""

    hash: bytes
    size: int
    data: bytes
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, contents: Sequence[bytes]) -> PackedFrame:
        """A frame of these contents, together no more than `FRAME_SIZE`."""
        frame = seal_frame(b"".join(contents))
        return cls(*frame, tuple(ids.artifact_ids(contents)), tuple(map(len, contents)))

    def contents(self) -> Iterator[bytes]:
        """What it was made from."""
        whole = open_frame(Frame(self.hash, self.size, self.data), name="a frame")
        ends = accumulate(self.sizes)
        return (whole[end - size : end] for size, end in zip(self.sizes, ends, strict=True))


def even_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of exactly one frame, but for the last; nothing at all gives one empty piece."""
    held = bytearray()
    given = False
    for part in parts:
        view = memoryview(part)
        while len(view):
            taken = view[: FRAME_SIZE - len(held)]
            held += taken
            view = view[len(taken) :]
            if len(held) == FRAME_SIZE:
                yield bytes(held)
                held.clear()
                given = True
    if held or not given:
        yield bytes(held)
