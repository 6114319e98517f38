"""Lines and records: the little of each line that cuts, counts and branches are decided by.

A line is taken apart once, by a typed decoder that skips over what nobody asks for. What it cannot take (a field of
an unexpected type, a lone surrogate, two objects on one line) goes to the judge in `kit/jsonl.py`, which says
exactly whether the line is one JSON object; the two never disagree about a line that both can read.

Whether a file is Claude Code's is told by what it writes in every record, not by one telling word: a record of its tree
has always had `parentUuid` and `isSidechain`, and a message whose content is Anthropic's. Relatives borrow half of
that: Qwen Code has the same names but Gemini's `parts`, the stream has `session_id`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harken.formats.kit.anthropic import BLOCKS
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import SHORT, parse_slowly, read_head, refusal

GRAPH = frozenset({"user", "assistant", "system", "attachment", "progress"})
"""The types that stand in the tree of `uuid` and `parentUuid`."""
CONVERSATION = frozenset({"user", "assistant"})
SIDE = frozenset(
    {
        "summary", "custom-title", "ai-title", "tag", "agent-name", "agent-color", "agent-setting", "mode",
        "permission-mode", "repl-mode", "last-prompt", "file-history-snapshot", "queue-operation", "pr-link",
        "frame-link", "worktree-state", "bridge-session", "relocated", "attribution-snapshot", "speculation-accept",
        "content-replacement", "continued-in", "derived-from", "tools-used", "atis-latch", "isolation-latch",
        "ended-by-model", "history-suppression", "dev-mods", "session-owner", "cost-state", "api-request",
        "api-request-shape", "api-request-blob", "result", "started",
    }
)  # fmt: skip
"""Records beside the tree: titles, modes, pointers, bookkeeping. Kept, not conversation."""
FAMILIES = ("marble-origami-", "data-flow-", "artifact-")
"""Groups of side records that newer builds keep adding to."""
_KNOWN = SIDE | CONVERSATION | {"system", "attachment", "progress"}


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


class ToolUseResult(msgspec.Struct, gc=False):
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


class ClaudeRecord(msgspec.Struct, gc=False):
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
    toolUseResult: ToolUseResult | str | list[msgspec.Raw] | None = None
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


def known_type(name: object) -> bool:
    """Whether records of this type have been seen before."""
    return isinstance(name, str) and (name in _KNOWN or name.startswith(FAMILIES))


def is_known(line: ClaudeRecord) -> bool:
    """Whether the reader makes sense of the whole record; the same answer that `read` gives, without reading."""
    if line.type not in CONVERSATION:
        return known_type(line.type)
    content = line.message.content if line.message is not None else None
    if content is None:
        return False
    return isinstance(content, str) or all(block.type in BLOCKS for block in content)


_decode = msgspec.json.Decoder(ClaudeRecord).decode


def real(value: object) -> float | None:
    """An amount (of money, of time) as a file tells it; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if 0 <= amount < float("inf") else None


def take(line: bytes) -> ClaudeRecord | None:
    """The record, if the line is exactly one JSON object within the limits; else None."""
    if len(line) > SHORT and refusal(line):
        return None
    try:
        return _decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        value = parse_slowly(line)
        return None if value is None else soften(value)


def soften(value: dict[str, Any]) -> ClaudeRecord:
    """The record with every field that has an unexpected type left out."""
    line: ClaudeRecord = _fit(value, ClaudeRecord)
    return line


_NESTED: dict[tuple[type, str], type] = {
    (ClaudeRecord, "message"): Body,
    (ClaudeRecord, "toolUseResult"): ToolUseResult,
    (ClaudeRecord, "data"): Progress,
    (ClaudeRecord, "attachment"): Attached,
    (ClaudeRecord, "compactMetadata"): Compacted,
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


SURE = 95
_OTHERS = ("provenance", "systemPayload", "usageMetadata", "projectHash")
"""Fields of relatives that Claude Code never writes."""
_HOME = "/.claude/projects/"


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, and by which record."""
    home = _HOME in path.replace("\\", "/")
    found = NO_CLAIM
    for number, record in enumerate(read_head(head), 1):
        if _is_others(record):
            return NO_CLAIM
        score, reason = _judge(record, home)
        if score > found.score:
            found = Claim(score=score, reason=f"record {number} {reason}")
        if score >= SURE:
            break
    return found


def _is_others(record: dict[str, Any]) -> bool:
    body = record.get("message")
    return any(name in record for name in _OTHERS) or (isinstance(body, dict) and "parts" in body)


def _judge(record: dict[str, Any], home: bool) -> tuple[int, str]:
    body = record.get("message")
    role = body.get("role") if isinstance(body, dict) else None
    # The assistant's message is written before the type; a cut may lie between.
    kind = record.get("type", role)
    speaks = kind not in CONVERSATION or role == kind
    if kind in GRAPH and "parentUuid" in record and isinstance(record.get("isSidechain"), bool) and speaks:
        return SURE, f"is a `{kind}` record with `parentUuid` and `isSidechain`"
    content = body.get("content") if isinstance(body, dict) else None
    linked = "parentUuid" in record or isinstance(record.get("sessionId"), str)
    if kind in CONVERSATION and isinstance(record.get("uuid"), str) and linked and isinstance(content, str | list):
        return 75, f"is a `{kind}` record with a uuid and Anthropic's message"
    named = any(isinstance(record.get(name), str) for name in ("sessionId", "leafUuid", "messageId"))
    if kind in SIDE and named:
        return 70, f"is a `{kind}` record, which no other runtime writes"
    if home and isinstance(kind, str) and isinstance(record.get("sessionId"), str):
        return 55, "names a session and lies where Claude Code keeps them"
    return 0, ""
