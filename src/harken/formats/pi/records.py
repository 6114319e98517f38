"""The lines of a session, read leniently: a header and entries, of every version and of both programs.

A line is a record only when it is exactly one JSON object, as `kit/jsonl.py` says; the programs pass over any other. Of
two objects on one line both are read as events, but such a line neither cuts nor belongs to the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from harken.clock import parse_instant
from harken.events import Image
from harken.events.base import clean, join_parts, named
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import Record, is_blank, is_overlong, lines, parse, read_head
from harken.text import text_of as text_of  # for whoever takes values from here

SESSION = "session"
MESSAGE = "message"
COMPACTION = "compaction"
RESET = "reset"
"""OpenClaw begins anew in the same file."""
LEAF = "leaf"
"""OpenClaw goes to another entry of the tree."""
BRANCH_SUMMARY = "branch_summary"
CUSTOM = "custom"
CUSTOM_MESSAGE = "custom_message"
EDIT = "context_edit"
USAGE = "usage"
INFO = "session_info"
MODEL = "model_change"
LEVEL = "thinking_level_change"

KNOWN = frozenset(
    {
        *(SESSION, MESSAGE, COMPACTION, RESET, LEAF, BRANCH_SUMMARY, CUSTOM, CUSTOM_MESSAGE, EDIT, USAGE, INFO),
        *(MODEL, LEVEL, "label"),
    }
)

USER, ASSISTANT, RESULT, SHELL, SYSTEM = "user", "assistant", "toolResult", "bashExecution", "system"
EXTENSION = frozenset({"custom", "hookMessage"})
"""Messages of an extension; the second is what version 2 called them."""
SUMMARIES = {"compactionSummary": "compact_summary", "branchSummary": "branch_summary"}
ROLES = frozenset({USER, ASSISTANT, RESULT, SHELL, SYSTEM, *EXTENSION, *SUMMARIES})

SPOKEN = ("text", "thinking")
"""Blocks of an answer whose words stand under the name of their type."""
FAILED = ("error", "aborted")
"""How an answer stopped that is not sent to the model again."""
_MIRRORS = ("delivery-mirror", "gateway-injected")
"""Models of what OpenClaw says by itself to a person: the model never sees it."""


class PiLine(NamedTuple):
    """One line of a file: `data[start:end]`, the newline included."""

    start: int
    end: int
    record: Record | None
    """None where it is not exactly one JSON object, or empty."""
    blank: bool = False


def iter_lines(data: bytes) -> Iterator[PiLine]:
    """Every line; the last one may lack its newline."""
    for begin, end in lines(data):
        if is_overlong(end - begin):
            yield PiLine(begin, end, None)
            continue
        line = data[begin:end]
        record = parse(line)
        yield PiLine(begin, end, record, record is None and is_blank(line))


def kind_of(record: Record) -> str:
    """What an entry is: its type, and of a message its role behind a colon."""
    kind = record.get("type")
    return kind if isinstance(kind, str) else ""


def message_of(record: Record) -> Record | None:
    """The message in an entry; None where there is none."""
    message = record.get("message")
    return message if isinstance(message, dict) else None


def why_unknown(record: Record) -> str:
    """Why nobody knows what the record is; empty where it is known."""
    kind = kind_of(record)
    if kind not in KNOWN:
        return f"unknown record {kind[:80]!r}"
    if kind != MESSAGE:
        return ""
    message = message_of(record)
    if message is None:
        return "a message without a message"
    role = text_of(message.get("role"))
    return "" if role in ROLES else f"unknown role {role[:80]!r}"


def id_of(record: Record) -> str:
    """The entry's own id; empty where it has none."""
    return text_of(record.get("id"))


def version_of(header: Record) -> int:
    """The version that a header names; the first one named none."""
    version = header.get("version")
    return version if isinstance(version, int) else 1


def time_of(record: Record) -> int | None:
    """When an entry was written; where it does not say so, its message may, in milliseconds."""
    if isinstance(stamp := record.get("timestamp"), str):
        return parse_instant(stamp)
    message = record.get("message")
    moment = message.get("timestamp") if isinstance(message, dict) else None
    if isinstance(moment, int | float) and not isinstance(moment, bool) and 0 < moment < 1 << 53:
        return int(moment) * 1000
    return None


# -- what a message holds ----------------------------------------------------------------------------------------------


def blocks_of(content: object) -> list[Any]:
    """The parts of a message's content; a bare text is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def said_and_shown(content: object) -> tuple[str, tuple[Image, ...]]:
    """The words of a message's content, and the pictures with their places among them."""
    if isinstance(content, str):
        return clean(content), ()
    return join_parts(part for block in blocks_of(content) if (part := _part(block)) is not None)


def _part(block: Any) -> str | Image | None:
    if not isinstance(block, dict):
        return None
    if block.get("type") == "image":
        # The second is what the first versions wrote.
        data, media = text_of(block.get("data")), text_of(block.get("mimeType")) or text_of(block.get("media_type"))
        return Image(media_type=clean(media), data=clean(data)) if data else None
    text = block.get("text")
    return clean(text) if isinstance(text, str) else None


def unread_in(content: object) -> list[Any]:
    """What in a content is neither words nor a picture."""
    if content is None or isinstance(content, str):
        return []
    return [one for one in content if _part(one) is None] if isinstance(content, list) else [content]


def words_of(content: object) -> str:
    """The words of a message's content alone."""
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in blocks_of(content) if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


_SPAWNED = "[Subagent Context] You are running as a subagent"
"""What OpenClaw puts before the task of a sub-agent; the time may stand before it."""


def is_spawned(content: object) -> bool:
    """Whether a user's message is another agent's: how OpenClaw tells a sub-agent what to do."""
    return _SPAWNED in words_of(content)[:200]


def is_mirror(message: Record) -> bool:
    """Whether an answer is none: OpenClaw notes what it told a person, in words of its own or of a tool's call."""
    if message.get("provider") == "openclaw" and message.get("model") in _MIRRORS:
        return True
    return isinstance(message.get("openclawDeliveryMirror"), dict)


def is_sent(message: Record) -> bool:
    """Whether an answer is sent to the model again: the programs leave out one that broke off."""
    return message.get("stopReason") not in FAILED and not is_mirror(message)


# -- whose file it is --------------------------------------------------------------------------------------------------

CLAIMED_BY = ("parentId", "modelId", "stopReason")
"""A file whose beginning has none of these keys is none of theirs."""
SURE = 95


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is: by the header that every file begins with, and by the entries behind it."""
    records = read_head(head)
    header = next(records, None)
    if header is None or header.get("type") != SESSION or not text_of(header.get("id")):
        return NO_CLAIM
    if not isinstance(header.get("timestamp"), str) or not isinstance(header.get("cwd"), str):
        return NO_CLAIM
    versioned = isinstance(header.get("version"), int)
    for record in records:
        if text_of(record.get("type")) not in KNOWN or not named(text_of(record.get("timestamp"))):
            continue
        if "parentId" in record or not versioned:
            return Claim(score=SURE, reason=f"begins with a session's header, and a `{record['type']}` follows")
    return NO_CLAIM  # a header alone might be anybody's, and a session without an entry is none yet


def is_of_openclaw(head: bytes) -> bool:
    """Whether entries are of OpenClaw's: what it notes for itself, and what it says by itself."""
    for record in read_head(head):
        if text_of(record.get("customType")).startswith("openclaw") or record.get("type") in (RESET, LEAF):
            return True
        message = message_of(record)
        if message is not None and (message.get("provider") == "openclaw" or is_mirror(message)):
            return True
    return False
