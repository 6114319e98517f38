"""Cold rollouts: Codex compresses them with zstd; what is kept and compared are the lines."""

from __future__ import annotations

import zstandard

from harken.errors import BadRecord

MAGIC = b"\x28\xb5\x2f\xfd"
LIMIT = 1 << 30
"""No rollout is longer than this; a frame that claims or yields more is not one."""
_PIECE = 1 << 20


def is_packed(head: bytes) -> bool:
    """Whether the bytes are compressed."""
    return head.startswith(MAGIC)


def unpack(data: bytes, *, limit: int = LIMIT) -> bytes:
    """The lines of a compressed rollout; bytes that are not compressed come back as they are."""
    if not is_packed(data):
        return data
    parts: list[bytes] = []
    size = 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(_PIECE):
                parts.append(piece)
                size += len(piece)
                if size > limit:
                    raise BadRecord(f"the compressed rollout is longer than {limit} bytes")
    except zstandard.ZstdError as problem:
        raise BadRecord(f"not a whole zstd file: {problem}") from None
    return b"".join(parts)
