"""What becomes of a conversation in every format: the tier from each to each, and what cannot be said there.

The conversation is a fixed one that has a bit of everything. It is written in each format that can be written, and
brought from there into each. `docs/guides/formats.md` shows the table.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator

import msgspec

from harken import formats
from harken.context.translate import translate
from harken.context.walk import Piece
from harken.events import Event, Image, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import Format

NOON = 1_794_744_000_000_000


class PairFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One format into another."""

    source: str
    target: str
    tier: str
    losses: tuple[str, ...] = ()


def everything() -> list[Event]:
    """A conversation with a bit of everything: instructions, a picture, thinking, calls side by side, a failed one."""
    said: list[Event] = [
        System(subtype="instructions", message="Be brief."),
        Prompt(content="What is in the picture?", images=(Image(media_type="image/png", data=_dot()),)),
        Thinking(content="A square, perhaps.", signature="c2lnbmVk"),
        Response(content="I will look.", model="m-1"),
        ToolCall(id="call_1", name="Bash", input=b'{"command":"file a.png"}'),
        ToolCall(id="call_2", name="Bash", input=b'{"command":"cat b"}'),
        ToolResult(id="call_1", name="Bash", output="a.png: PNG image data"),
        ToolResult(id="call_2", name="Bash", output="cat: b: No such file", is_error=True),
        Response(content="A red square.", model="m-1"),
        Prompt(content="Thank you."),
        Response(content="You are welcome.", model="m-1"),
    ]
    return [event.replace(message_id=f"m{at}", time=NOON + at * 1_000_000) for at, event in enumerate(said)]


def _dot() -> str:
    """A picture of one red point."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = chunk(b"IHDR", bytes([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]))
    body = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")).decode()


def pairs() -> Iterator[PairFacts]:
    """Every format that can be written and read, into every format that can be written."""
    known = [formats.get(name) for name in formats.names()]
    for source in known:
        if {"read", "write"} <= source.can:
            data = source.context(source.write(everything()).data)
            for target in known:
                if "write" in target.can:
                    yield _pair(source, target, data)


def _pair(source: Format, target: Format, data: bytes) -> PairFacts:
    made = translate([Piece(name=source.name, format=source, data=data, current=True)], target)
    return PairFacts(
        source=source.name,
        target=target.name,
        tier=made.tier,
        losses=tuple(dict.fromkeys(loss.what for loss in made.losses)),
    )
