"""A session that wants to be more than text, wherever it is shown."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import msgspec

from harken.events import KINDS, Event, Image

EVIL = (
    "\"'><script>alert(1)</script></pre></summary></details></style><img src=x onerror=alert(1)>"
    "\n\n# ours\n```\n[a](javascript:b) ![x](http://y) @user\n\x1b]52;c;aGk=\x07\x1b[2J\u202e\n>>> sub-agent x\n"
)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_HEAD = _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
_BODY = _chunk(b"IDAT", zlib.compress(b"\0\x80\x80\x80"))
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + _HEAD + _BODY + _chunk(b"IEND", b"")).decode()
"""A picture of one grey point."""


def evil_events() -> list[Event]:
    """An event of each kind, every text in it hostile."""
    made: list[Event] = []
    for cls in KINDS.values():
        values: dict[str, Any] = {"message_id": f"{EVIL}{cls.kind}", "time": 1_700_000_000_000_000}
        for field in msgspec.structs.fields(cls):
            if field.name in ("substance", "cause", *values):
                continue
            if field.type is str:
                values[field.name] = EVIL
            elif field.type is bytes:
                values[field.name] = msgspec.json.encode({EVIL: EVIL, "long": EVIL * 9})
        made.append(cls(**values))
        if "images" in cls.__struct_fields__:
            pictures = (Image(media_type=EVIL, data=PIXEL), Image(media_type="image/svg+xml", data="PHN2Zz4="))
            made.append(cls(**values | {"images": (*pictures, Image(url=EVIL))}))
    return made
