"""How much a delta holds, without reading it into events."""

from __future__ import annotations

import msgspec

from harken.events.places import TOOL_RESULT
from harken.events.tally import SYNTHETIC
from harken.formats.base import CHARACTERS_PER_TOKEN, Counts, count, sum_of_tokens
from harken.formats.kit.jsonl import is_overlong

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
# What takes a reader: pictures, whose bytes say nothing of their tokens; and in records beside the conversation
# prompts that stand in attachments, and the boundary before a summary.
_PICTURE = b'"base64"'
_BESIDE = {"attachment": b'"queued_command"', "system": b'"compact_boundary"'}
_ASKS = frozenset({"text", "image", "document"})


def measure(data: bytes) -> Counts:
    """Messages, and tokens: what the API counted for what the model wrote, a quarter of the rest's characters.

    A checkpoint asks this of every delta, so content is measured as it is written and not taken apart. What the typed
    decoder cannot take is left to the reader, which says the same."""
    if _PICTURE in data:
        return count(read(data))
    named: dict[tuple[str, str] | int, int] = {}
    messages = written = heard = since = 0
    last_counted: int | None = None
    try:
        for place, line in enumerate(map(_weigh, _short_lines(data))):
            body, kind = line.message, line.type
            if kind in _BESIDE and _BESIDE[kind] in data:
                return count(read(data))
            if body is None or kind not in CONVERSATION:
                continue
            if body.model != SYNTHETIC and not line.isApiErrorMessage:
                messages += _said(kind, _kinds(body.content))
            size = memoryview(body.content).nbytes
            since += size
            if kind == "user":
                heard += size
                continue
            written += size
            output = 0
            if (usage := body.usage) is not None:
                output = usage.output_tokens or 0
                if prompt := _prompt(usage):
                    last_counted, since = prompt + output, 0
            key = (body.id, line.requestId or "") if body.id else place
            named[key] = max(named.get(key, 0), output)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return count(read(data))
    counted = sum(named.values())
    guessed = heard if counted else heard + written
    return Counts(
        messages=messages,
        tokens=sum_of_tokens(counted, guessed // CHARACTERS_PER_TOKEN),
        approximate=guessed > 0,
        last_counted=last_counted,
        since=since // CHARACTERS_PER_TOKEN if last_counted is not None else 0,
    )


def _short_lines(data: bytes) -> list[bytes]:
    """The lines without their newlines; not those that are too long to be read."""
    found = data.split(b"\n")
    if not found[-1]:
        found.pop()  # what follows the last newline
    return [line for line in found if not is_overlong(len(line) + 1)] if is_overlong(len(data)) else found


def _prompt(usage: UsageFields) -> int:
    """How much the model had before it, from the cache or not."""
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return (usage.input_tokens or 0) + cached


def _said(kind: str, content: str | list[_BlockKind]) -> int:
    """How many messages a line is: one for a prompt, one for each text of the model's."""
    if isinstance(content, str):
        return 1
    kinds = [block.type for block in content]
    if kind == "assistant":
        return kinds.count("text")
    return int(TOOL_RESULT not in kinds and (not kinds or not _ASKS.isdisjoint(kinds)))
