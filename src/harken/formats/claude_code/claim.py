"""Whether a file is Claude Code's: by what it writes in every record, not by one telling word.

A record of its tree has always had `parentUuid` and `isSidechain`, and a message whose content is Anthropic's.
Relatives borrow half of that: Qwen Code has the same names but Gemini's `parts`, the stream has `session_id`.
"""

from __future__ import annotations

from typing import Any

from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import read_head

from .records import GRAPH
from .types import CONVERSATION, SIDE

Record = dict[str, Any]
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


def _is_others(record: Record) -> bool:
    body = record.get("message")
    return any(name in record for name in _OTHERS) or (isinstance(body, dict) and "parts" in body)


def _judge(record: Record, home: bool) -> tuple[int, str]:
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
