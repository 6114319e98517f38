"""How much a delta holds, without reading it into events."""

from __future__ import annotations

import msgspec

from harken.events.tally import SYNTHETIC, TOOL_RESULT
from harken.formats.base import CHARACTERS_PER_TOKEN, Counts, count, sum_of_tokens
from harken.formats.kit.jsonl import is_overlong, lines

from .read import read
from .records import CONVERSATION, UsageFields


class _Weight(msgspec.Struct, gc=False):
    """A message's content as it is written, and what the API counted."""

    id: str | None = None
    model: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")
    usage: UsageFields | None = None


class _WeighedLine(msgspec.Struct, gc=False):
    type: str | None = None
    message: _Weight | None = None
    requestId: str | None = None
    isApiErrorMessage: bool | None = None


class _BlockKind(msgspec.Struct, gc=False):
    type: str = ""


_weigh = msgspec.json.Decoder(_WeighedLine).decode
_kinds = msgspec.json.Decoder(str | list[_BlockKind]).decode
_SELDOM = (b'"base64"', b'"queued_command"', b'"compact_boundary"')
"""What takes a reader: pictures, whose bytes say nothing of their tokens; prompts that stand in attachments; what a
summary is depends on the record before it."""
_ASKS = frozenset({"text", "image", "document"})


def measure(data: bytes) -> Counts:
    """Messages, and tokens: what the API counted for what the model wrote, a quarter of the rest's characters.

    A checkpoint asks this of every delta, so content is measured as it is written and not taken apart. What the typed
    decoder cannot take is left to the reader, which says the same."""
    if any(mark in data for mark in _SELDOM):
        return count(read(data))
    named: dict[str, int] = {}
    messages = written = heard = since = 0
    last_counted: int | None = None
    for start, end in lines(data):
        if is_overlong(end - start):
            continue
        try:
            line = _weigh(data[start:end])
            messages += _said(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return count(read(data))
        body = line.message
        if body is None or line.type not in CONVERSATION:
            continue
        size = memoryview(body.content).nbytes
        since += size
        if line.type == "user":
            heard += size
            continue
        written += size
        if body.usage is not None and (prompt := _prompt(body.usage)):
            last_counted, since = prompt + (body.usage.output_tokens or 0), 0
        key = f"{body.id} {line.requestId or ''}" if body.id else f"@{start}"
        named[key] = max(named.get(key, 0), (body.usage.output_tokens or 0) if body.usage else 0)
    counted = sum(named.values())
    guessed = heard if counted else heard + written
    return Counts(
        messages=messages,
        tokens=sum_of_tokens(counted, guessed // CHARACTERS_PER_TOKEN),
        approximate=guessed > 0,
        last_counted=last_counted,
        since=since // CHARACTERS_PER_TOKEN if last_counted is not None else 0,
    )


def _prompt(usage: UsageFields) -> int:
    """How much the model had before it, from the cache or not."""
    return sum(
        count or 0 for count in (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    )


def _said(line: _WeighedLine) -> int:
    """How many messages a line is: one for a prompt, one for each text of the model's."""
    body = line.message
    if body is None or line.type not in CONVERSATION or body.model == SYNTHETIC or line.isApiErrorMessage:
        return 0
    content = _kinds(body.content)
    if isinstance(content, str):
        return 1
    kinds = [block.type for block in content]
    if line.type == "assistant":
        return kinds.count("text")
    return int(TOOL_RESULT not in kinds and (not kinds or not _ASKS.isdisjoint(kinds)))
