"""How much a delta holds, without reading it into events."""

from __future__ import annotations

import msgspec

from harken.events.base import figure
from harken.formats.base import CHARACTERS_PER_TOKEN, Counts, count
from harken.formats.kit.jsonl import is_overlong, lines

from .read import read
from .records import CONVERSATION, UsageFields


class _Weight(msgspec.Struct, gc=False):
    """A message's content as it is written, and what the API counted."""

    id: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")
    usage: UsageFields | None = None


class _WeighedLine(msgspec.Struct, gc=False):
    type: str | None = None
    message: _Weight | None = None
    requestId: str | None = None


_weigh = msgspec.json.Decoder(_WeighedLine).decode


def measure(data: bytes) -> Counts:
    """Messages, and tokens: what the API counted for what the model wrote, a quarter of the rest's characters.

    A checkpoint asks this of every delta, so content is measured as it is written and not taken apart. What the typed
    decoder cannot take, and pictures, whose bytes say nothing of their tokens, are left to the reader."""
    if b'"base64"' in data:
        return count(read(data))
    named: dict[str, int] = {}
    unnamed = written = heard = 0
    for start, end in lines(data):
        if is_overlong(end - start):
            continue
        try:
            line = _weigh(data[start:end])
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return count(read(data))
        body = line.message
        if body is None or line.type not in CONVERSATION:
            continue
        size = memoryview(body.content).nbytes
        if line.type == "user":
            heard += size
            unnamed += 1
            continue
        written += size
        key = f"{body.id} {line.requestId or ''}" if body.id else f"@{start}"
        named[key] = max(named.get(key, 0), (body.usage.output_tokens or 0) if body.usage else 0)
    counted = sum(named.values())
    guessed = heard if counted else heard + written
    return Counts(
        messages=len(named) + unnamed,
        tokens=figure(counted + guessed // CHARACTERS_PER_TOKEN),
        approximate=guessed > 0,
    )
