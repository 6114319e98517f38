"""Records: the little of each line that cuts, counts and branches are decided by, and who stands in the user's place.

A line is taken apart once, by a typed decoder that skips over what nobody asks for. What it cannot take (a field of
an unexpected type, a lone surrogate, two objects on one line) goes to the judge in `kit/jsonl.py`, which says
exactly whether the line is one JSON object; the two never disagree about a line that both can read.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from harken.events.base import Count, figure
from harken.formats.kit.anthropic import BLOCKS, HUMAN, kind_of_block
from harken.formats.kit.jsonl import SHORT, parse_slowly, refusal

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
        "api-request-shape", "api-request-blob", "result", "started", "harken-origin",
    }
)  # fmt: skip
"""Records beside the tree: titles, modes, pointers, bookkeeping. Kept, not conversation."""
FAMILIES = ("marble-origami-", "data-flow-", "artifact-")
"""Groups of side records that newer builds keep adding to."""
_KNOWN = SIDE | CONVERSATION | {"system", "attachment", "progress"}


class BlockFacts(msgspec.Struct, gc=False):
    """A content block, as far as calls and results have to be told apart."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


class UsageFields(msgspec.Struct, gc=False):
    """The four figures of a `usage` object."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class Body(msgspec.Struct, gc=False):
    """A record's `message`."""

    id: str | None = None
    model: str | None = None
    content: list[BlockFacts] | str | None = None
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
    inputTokens: Count | None = None
    outputTokens: Count | None = None
    cacheReadInputTokens: Count | None = None
    cacheCreationInputTokens: Count | None = None
    costUSD: float | None = None
    isApiErrorMessage: bool | None = None
    isUnmetered: bool | None = None
    summary: str | None = None
    customTitle: str | None = None
    aiTitle: str | None = None

    def blocks(self) -> list[BlockFacts]:
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


def cost_so_far(record: dict[str, Any]) -> float | None:
    """What a `cost-state` record says the session has cost; None where it does not say."""
    return real(record.get("totalCostUSD"))


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
_FLAGS = frozenset({"isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage", "isUnmetered"})


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
        return figure(value)
    if name == "costUSD":
        return real(value)
    if name in _FLAGS:
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else None


def _fit_block(value: Any) -> Any:
    if isinstance(value, dict):
        return _fit(value, BlockFacts)
    return BlockFacts(type="text") if isinstance(value, str) else BlockFacts()


# -- who stands in the user's place: a person, a tool, or the harness. Nine of ten `user` records are results, and of
# the rest half were typed by nobody. Structured fields are asked first, since newer builds say it outright; then the
# table of what the specification lists and real files hold. What no row knows is a person's.

TOOL_RESULT = "tool_result"


class PromptPattern(msgspec.Struct, frozen=True):
    """Texts that begin like this are of that kind."""

    kind: str
    start: str
    wraps: bool = False
    """Whether the element may stand before what a person wrote; then what follows it decides."""


_P = PromptPattern
PATTERNS = (
    _P("compact_summary", "This session is being continued from a previous conversation"),
    _P("task_notification", "<task-notification>"),
    _P("system_notification", "[SYSTEM NOTIFICATION - NOT USER INPUT]"),
    _P("skill", "Base directory for this skill:"),
    _P("teammate", "<teammate-message"),
    _P("cross_session", "<cross-session-message"),
    _P("local_command_caveat", "<local-command-caveat>"),
    _P("local_command_caveat", "Caveat: The messages below were generated by the user while running local commands"),
    _P("local_command_output", "<local-command-stdout>"),
    _P("local_command_output", "<local-command-stderr>"),
    _P("command", "<command-name>"),
    _P("command", "<command-message>"),
    _P("command", "<command-args>"),
    _P("bash_input", "<bash-input>"),
    _P("bash_output", "<bash-stdout>"),
    _P("bash_output", "<bash-stderr>"),
    _P("memory_input", "<user-memory-input>"),
    _P("continuation", "Continue from where you left off."),
    _P("interruption", "[Request interrupted by user"),
    _P("plan", "Implement the following plan:"),
    _P("image_note", "[Image: source:"),
    _P("image_note", "[Image source:"),
    _P("tick", "<tick>"),
    _P("goal", "<goal>"),
    _P("hook", "<session-start-hook>", wraps=True),
    _P("hook", "<user-prompt-submit-hook>", wraps=True),
    _P("ide", "<ide_opened_file>", wraps=True),
    _P("ide", "<ide_selection>", wraps=True),
    _P("ide", "<ide_diagnostics>", wraps=True),
    _P("system_reminder", "<system-reminder>", wraps=True),
)
_STARTS = tuple(row.start for row in PATTERNS)
"""Texts by how they begin, spaces before them not counted."""

ORIGINS = {
    "human": HUMAN,
    "task-notification": "task_notification",
    "channel": "channel",
    "peer": "peer",
    "coordinator": "coordinator",
    "observer": "observer",
    "auto-continuation": "continuation",
}
"""What `origin.kind` says."""

SOURCES = {"typed": HUMAN, "sdk": HUMAN, "system": "system"}
"""What `promptSource` says."""

_TAG = re.compile(r"<([a-z_-]+)>")


def classify(record: dict[str, Any]) -> str | None:
    """Whose a `user` record is as a whole: `HUMAN`, a tool's, or what it is else; None where it says nothing.

    A record with a result in it is a tool's, whatever stands beside the result. Otherwise it is a person's as soon as
    one of its texts is."""
    body = record.get("message")
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(content, str | list):
        return None
    if has_result(content):
        return TOOL_RESULT
    fixed = by_fields(record)
    if isinstance(content, str) or not content:
        return fixed if fixed is not None else by_text(content) if content else HUMAN
    kinds = [kind for block in content if (kind := kind_of_block(block, fixed, by_text)) is not None]
    return HUMAN if HUMAN in kinds else kinds[0] if kinds else None


def texts(content: Any) -> list[str]:
    """The texts of a message's content."""
    if not isinstance(content, list):
        return [content] if isinstance(content, str) else []
    found = [block if isinstance(block, str) else block.get("text") for block in content if _is_text(block)]
    return [text for text in found if isinstance(text, str)]


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")


def has_result(content: Any) -> bool:
    """Whether a tool's result is among the blocks."""
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == TOOL_RESULT for b in content)


def by_fields(record: dict[str, Any]) -> str | None:
    """What the structured fields say; None where they leave it open."""
    if record.get("isCompactSummary") is True:
        return "compact_summary"
    origin = record.get("origin")
    if isinstance(origin, dict) and (kind := ORIGINS.get(str(origin.get("kind")))) is not None:
        return kind
    if (kind := SOURCES.get(str(record.get("promptSource")))) is not None:
        return kind
    if isinstance(record.get("planContent"), str):
        return "plan"
    if record.get("isMeta") is True:
        body = record.get("message")
        kinds = [by_text(text) for text in texts(body.get("content") if isinstance(body, dict) else None)]
        return next((kind for kind in kinds if kind), "skill" if record.get("sourceToolUseID") else "meta")
    if record.get("isVisibleInTranscriptOnly") is True:
        return "transcript_only"
    # Nobody types to a sub-agent: its prompts come from the agent that started it.
    return "agent" if record.get("isSidechain") is True else None


def by_text(text: str) -> str:
    """What a text is by how it begins."""
    text = text.lstrip()
    for row in PATTERNS if text.startswith(_STARTS) else ():
        if text.startswith(row.start):
            if not row.wraps:
                return row.kind
            rest = _behind(text)
            return by_text(rest) if rest else row.kind
    return HUMAN


def _behind(text: str) -> str:
    """What follows the element a text begins with, past others of the same make; empty where it is never closed."""
    while match := _TAG.match(text):
        if not any(row.wraps and text.startswith(row.start) for row in PATTERNS):
            break
        end = text.find(f"</{match[1]}>")
        if end < 0:
            return ""
        text = text[end + len(match[1]) + 3 :].lstrip()
    return text
