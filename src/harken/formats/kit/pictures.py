"""When a picture is sound: whether a provider would take it, as far as its container tells.

One that is refused would make the provider refuse the whole conversation. We look as far as the container goes: the
checksums of a PNG, the segments of a JPEG, the lengths of a GIF and a WebP.
"""

from __future__ import annotations

import binascii
import re
import zlib

_SCAN, _END = 0xDA, 0xD9
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_PNG = b"\x89PNG\r\n\x1a\n"


def is_picture(text: str) -> bool:
    """Whether the base64 text is a picture that providers take."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    if data.startswith(_PNG):
        return _is_whole_png(data)
    if data.startswith(b"\xff\xd8"):
        return _is_whole_jpeg(data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return data.endswith(b"\x3b")
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP" and int.from_bytes(data[4:8], "little") + 8 <= len(data)


def _is_whole_jpeg(data: bytes) -> bool:
    """Whether its segments follow each other to the end, with a frame a common decoder knows and its tables."""
    at, seen = 2, set[int]()
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        seen.add(marker)
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == _SCAN:
            # The picture itself: up to the next marker that is neither stuffing nor a restart.
            found = _MARKER.search(data, at)
            if found is None:
                return False
            at = found.start()
            if data[at + 1] == _END:
                return bool(seen & {0xC0, 0xC1, 0xC2}) and 0xC4 in seen
    return False


def _is_whole_png(data: bytes) -> bool:
    at = len(_PNG)
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        end = at + 12 + size
        if end > len(data) or zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return True
        at = end
    return False
