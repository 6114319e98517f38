"""Pictures in a rollout: data URLs, and which of them Codex would send.

Codex decodes every picture before it sends it; one that is damaged (a redacted transcript has many) it replaces by a
sentence, a large one it scales. We look as far as the container goes: the checksums of a PNG, the segments of a JPEG,
the lengths and ends of the others.
"""

from __future__ import annotations

import binascii
import re
import zlib

from harken.events import Image

_SCAN, _END = 0xDA, 0xD9
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_PNG = b"\x89PNG\r\n\x1a\n"


def why_not_sent(url: str) -> str:
    """Why Codex would leave the picture out; empty where it would not."""
    if url[:8].lower().startswith(("http://", "https://")):
        return "remote image URLs are not supported"
    if url[:5].lower() != "data:":
        return ""
    head, _, body = url.partition(",")
    try:
        data = binascii.a2b_base64(body, strict_mode=True) if head.lower().endswith(";base64") else b""
    except (binascii.Error, ValueError):
        data = b""
    return "" if _is_picture(data) else "it could not be processed"


def picture_part(url: str) -> dict[str, str]:
    """The picture as a part of a message, or what Codex would put in its place."""
    if why := why_not_sent(url):
        return {"type": "input_text", "text": f"image content omitted because {why}"}
    return {"type": "input_image", "image_url": url}


def _is_picture(data: bytes) -> bool:
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


def image_of(url: str) -> Image:
    """The picture a URL holds or names."""
    head, comma, body = url.partition(",")
    if comma and head[:5].lower() == "data:" and head.lower().endswith(";base64"):
        return Image(media_type=head[5:-7].partition(";")[0], data=body)
    return Image(url=url)


def url_of(image: Image) -> str:
    """The picture as a URL."""
    return f"data:{image.media_type or 'image/png'};base64,{image.data}" if image.data else image.url
