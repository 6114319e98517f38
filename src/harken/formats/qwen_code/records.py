"""The records of a file: what a line is, what it does to the conversation, who stands in the user's place; and whether
a file is Qwen Code's.

A line is a record when it is one JSON object, as `kit/jsonl.py` says. Two objects on one line are two records: the
program reads them so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from harken.events.base import clean
from harken.formats.claude_code.records import by_text
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import Record, is_overlong, lines, parse, read_head, take_apart

USER, ASSISTANT, TOOL_RESULT, SYSTEM = "user", "assistant", "tool_result", "system"
TYPES = frozenset({USER, ASSISTANT, TOOL_RESULT, SYSTEM})
COMPRESSION = "chat_compression"
TELEMETRY = "ui_telemetry"
TITLE = "custom_title"
COMMAND = "slash_command"
BOOTSTRAP = "agent_bootstrap"
REALTIME = "realtime_message"
"""What was said aloud to another model; it is never sent to this one."""
AT_COMMAND = "at_command"

BESIDE = frozenset(
    {
        "session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot",
        "managed_session_header_v1", "managed_session_event_v1", "managed_session_commit_v1",
    }
)  # fmt: skip
"""Subtypes of `system` records that are no links of the chain."""

INJECTED = {
    "notification": "task_notification",
    "cron": "cron",
    "goal_runtime": "goal",
}
"""Subtypes of `user` records that nobody typed."""
NOTICES = frozenset({"system_reminder", "startup"})
"""Kinds of prompts in which Qwen Code tells its model about itself."""
HUMAN = ""
FILES = "file"
"""The origin of a file's content that came along with a prompt which names it."""

_FILES_BEGIN = "--- Content from referenced files ---"
_FILES_END = "--- End of content ---"
_HOOK_BEGIN = "<qwen:user-prompt-submit-context>"
_OPENINGS = (
    ("compact_summary", "<state_snapshot>"),
    ("hook", _HOOK_BEGIN),
    ("startup", "This is the Qwen Code."),
)
_FIRST_OPINION = 4096


def text(record: Any, key: str) -> str:
    """The text under a key; empty where there is none."""
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


def inner(record: Any, key: str) -> Record:
    """The object under a key; empty where there is none."""
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, dict) else {}


def parts_of(record: Record) -> list[Any] | None:
    """The parts of a record's message; None where it has no message that could be read."""
    message = record.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    return parts if isinstance(parts, list) else None


def history_of(record: Record) -> list[Any] | None:
    """What a compaction put in the place of everything before it; None where the record is none."""
    if record.get("type") != SYSTEM or record.get("subtype") != COMPRESSION:
        return None
    history = inner(record, "systemPayload").get("compressedHistory")
    return history if isinstance(history, list) else None


def is_linked(record: Record) -> bool:
    """Whether the program takes the record into the tree; it passes over any other."""
    parent = record.get("parentUuid", 0)
    return (
        (parent is None or isinstance(parent, str))
        and bool(text(record, "uuid"))
        and bool(text(record, "sessionId"))
        and text(record, "type") in TYPES
        and not (record["type"] == SYSTEM and text(record, "subtype") in BESIDE)
    )


# -- who stands in the user's place ------------------------------------------------------------------------------------


def place_of(record: Record) -> str | None:
    """What kind of text the fields of a `user` record say it is, `HUMAN` for a person's; None where they leave it to
    the text."""
    subtype = text(record, "subtype")
    if subtype in INJECTED:
        return INJECTED[subtype]
    if record.get("isSidechain") is True:
        return "agent"  # nobody types to a sub-agent: its prompts come from the agent that started it
    if text(record, "provenance") == SYSTEM:
        return next((kind for part in parts_of(record) or () if (kind := kind_of(text(part, "text")))), "injected")
    return None


def kind_of(said: str) -> str:
    """What a text is by how it begins: Qwen Code's own, or what Claude Code puts there, in a conversation that began
    in that program."""
    head = said[:_FIRST_OPINION].lstrip()
    for kind, opening in _OPENINGS:
        if head.startswith(opening):
            return kind
    return by_text(said)


class PartsOfOneKind(NamedTuple):
    """Neighbouring parts of a user's message that are of one kind."""

    kind: str
    parts: list[Any]


def stretches(parts: list[Any], fixed: str | None) -> list[PartsOfOneKind]:
    """The parts of a user's message by kind: a reminder may stand before what was typed, files and what a hook said
    behind it. With `fixed` the whole is of that kind."""
    if fixed is not None:
        return [PartsOfOneKind(fixed, parts)] if parts else []
    found: list[PartsOfOneKind] = []
    in_files = False
    for part in parts:
        said = part.get("text") if isinstance(part, dict) else None
        stripped = said[:_FIRST_OPINION].strip() if isinstance(said, str) else ""
        if stripped == _FILES_BEGIN:
            in_files = True
        if in_files:
            kind = FILES
        elif isinstance(said, str):
            kind = kind_of(said)
        else:
            kind = found[-1].kind if found else HUMAN
        if stripped == _FILES_END:
            in_files = False
        if found and found[-1].kind == kind:
            found[-1].parts.append(part)
        else:
            found.append(PartsOfOneKind(kind, [part]))
    return found


def typed_text(record: Record) -> str:
    """What a person typed, of a record that is a person's."""
    for kind, parts in stretches(parts_of(record) or [], place_of(record)):
        if kind == HUMAN:
            return "\n".join(clean(said) for part in parts if (said := text(part, "text")))
    return ""


# -- the lines of a file -----------------------------------------------------------------------------------------------


class PlacedRecord(NamedTuple):
    """A record and its place; `line` is where its line begins."""

    record: Record
    start: int
    end: int
    line: int
    line_end: int


def iter_records(data: bytes) -> Iterator[PlacedRecord]:
    """Every record of the file, in its order; what is none is passed over."""
    for start, end in lines(data):
        if is_overlong(end - start):
            continue
        if (record := parse(data[start:end])) is not None:
            yield PlacedRecord(record, start, end, start, end)
            continue
        for value, first, last in take_apart(data, start, end)[0]:
            yield PlacedRecord(value, first, last, start, end)


# -- whether a file is Qwen Code's: a tree by `uuid` and `parentUuid` like Claude Code's, but Gemini's parts -----------

SURE = 95
CLAIMED_BY = ("parts", "systemPayload", "provenance")
"""A record without any of these keys is no reason to claim a file."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, and by which record."""
    # Two objects on the first line are seldom, and read with more pains.
    heads = list(read_head(head)) or [found.record for found in iter_records(head)]
    for number, record in enumerate(heads, 1):
        kind = text(record, "type")
        linked = "parentUuid" in record and text(record, "uuid") and text(record, "sessionId")
        if not linked or kind not in TYPES:
            continue
        if isinstance(inner(record, "message").get("parts"), list):
            return Claim(
                score=SURE, reason=f"record {number} is a `{kind}` record with `parentUuid` and Gemini's parts"
            )
        if kind == SYSTEM and ("systemPayload" in record or text(record, "provenance") == SYSTEM):
            return Claim(score=SURE, reason=f"record {number} is a `system` record with a payload, which is a link")
        if text(record, "provenance"):
            return Claim(score=90, reason=f"record {number} is a `{kind}` record that tells its provenance")
    return NO_CLAIM
