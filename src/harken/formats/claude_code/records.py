"""Lines and records: the little of each line that cuts, counts and branches are decided by.

A line is taken apart once, by a typed decoder that skips over what nobody asks for. What it cannot take (a field of
an unexpected type, a lone surrogate, two objects on one line) goes to the judge in `kit/jsonl.py`, which says
exactly whether the line is one JSON object; the two never disagree about a line that both can read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harken.formats.kit.jsonl import SHORT, parse_slowly, refusal

GRAPH = frozenset({"user", "assistant", "system", "attachment", "progress"})
"""The types that stand in the tree of `uuid` and `parentUuid`."""


class Block(msgspec.Struct, gc=False):
    """A content block, as far as calls and results have to be told apart."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


class UsageFields(msgspec.Struct, gc=False):
    """The four figures of a `usage` object."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Body(msgspec.Struct, gc=False):
    """A record's `message`."""

    id: str | None = None
    model: str | None = None
    content: list[Block] | str | None = None
    usage: UsageFields | None = None


class Answer(msgspec.Struct, gc=False):
    """A `toolUseResult` that is an object; only a sub-agent's has an `agentId`."""

    agentId: str | None = None


class Inner(msgspec.Struct, gc=False):
    """The sub-agent's record that a progress record carries."""

    message: Body | None = None
    requestId: str | None = None


class Progress(msgspec.Struct, gc=False):
    """A progress record's `data`."""

    agentId: str | None = None
    message: Inner | str | None = None


class Preserved(msgspec.Struct, gc=False):
    """The messages that a compaction kept word for word."""

    anchorUuid: str | None = None
    uuids: list[str] | None = None


class Segment(msgspec.Struct, gc=False):
    """The same said by its two ends, in builds that did not list them."""

    headUuid: str | None = None
    anchorUuid: str | None = None
    tailUuid: str | None = None


class Compacted(msgspec.Struct, gc=False):
    """A boundary's `compactMetadata`."""

    preservedMessages: Preserved | None = None
    preservedSegment: Segment | None = None


class Attached(msgspec.Struct, gc=False):
    """An attachment's `attachment`."""

    type: str | None = None


class Line(msgspec.Struct, gc=False):
    """What is asked of a record; every other field is skipped unread."""

    type: str | None = None
    parentUuid: str | None = None
    isSidechain: bool | None = None
    sessionId: str | None = None
    agentId: str | None = None
    subtype: str | None = None
    message: Body | None = None
    requestId: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    toolUseResult: Answer | str | list[msgspec.Raw] | None = None
    sourceToolAssistantUUID: str | None = None
    parentToolUseID: str | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    data: Progress | None = None
    attachment: Attached | None = None
    compactMetadata: Compacted | None = None
    leafUuid: str | None = None
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheCreationInputTokens: int | None = None
    costUSD: float | None = None
    isApiErrorMessage: bool | None = None
    summary: str | None = None
    customTitle: str | None = None
    aiTitle: str | None = None

    def blocks(self) -> list[Block]:
        """The content blocks; none where the content is plain text."""
        body = self.message
        return body.content if body is not None and isinstance(body.content, list) else []


_decode = msgspec.json.Decoder(Line).decode


def real(value: object) -> float | None:
    """An amount (of money, of time) as a file tells it; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if 0 <= amount < float("inf") else None


def take(line: bytes) -> Line | None:
    """The record, if the line is exactly one JSON object within the limits; else None."""
    if len(line) > SHORT and refusal(line):
        return None
    try:
        return _decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        value = parse_slowly(line)
        return None if value is None else soften(value)


def soften(value: dict[str, Any]) -> Line:
    """The record with every field that has an unexpected type left out."""
    line: Line = _fit(value, Line)
    return line


_NESTED: dict[tuple[type, str], type] = {
    (Line, "message"): Body,
    (Line, "toolUseResult"): Answer,
    (Line, "data"): Progress,
    (Line, "attachment"): Attached,
    (Line, "compactMetadata"): Compacted,
    (Body, "usage"): UsageFields,
    (Progress, "message"): Inner,
    (Inner, "message"): Body,
    (Compacted, "preservedMessages"): Preserved,
    (Compacted, "preservedSegment"): Segment,
}
_INTEGERS = frozenset(
    {*UsageFields.__struct_fields__, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"}
)
_FLAGS = frozenset({"isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage"})


def _fit(value: dict[str, Any], shape: type[Any]) -> Any:
    made = shape()
    for name in shape.__struct_fields__:
        if (fitted := _fit_field(value.get(name), shape, name)) is not None:
            setattr(made, name, fitted)
    return made


def _fit_field(value: Any, shape: type, name: str) -> Any:
    if (nested := _NESTED.get((shape, name))) is not None:
        return _fit(value, nested) if isinstance(value, dict) else None
    if name == "content":
        if isinstance(value, list):
            return [_fit_block(block) for block in value]
        return value if isinstance(value, str) else None
    if name == "uuids":
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None
    if name in _INTEGERS:
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if name == "costUSD":
        return real(value)
    if name in _FLAGS:
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else None


def _fit_block(value: Any) -> Any:
    if isinstance(value, dict):
        return _fit(value, Block)
    return Block(type="text") if isinstance(value, str) else Block()
