"""Whether a file is a rollout of Codex: by the envelope of every line, or by the first line of the first versions."""

from __future__ import annotations

from pathlib import PurePath

from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import read_head
from harken.formats.kit.openai import CALLS, ITEMS, OUTPUTS, Record

from .known import EVENTS
from .records import COMPACTED, EVENT, ITEM, SESSION_META, STATE, TURN_CONTEXT, WRAPPED

SURE = 95
_OTHERS = ("uuid", "sessionId", "session_id", "message_id", "event_type", "parentId", "projectHash")
"""Fields of other runtimes' records that no line of Codex has."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, and by which record."""
    named = PurePath(path.replace("\\", "/")).name.startswith("rollout-")
    found = NO_CLAIM
    for number, record in enumerate(read_head(head), 1):
        if any(name in record for name in _OTHERS):
            return NO_CLAIM
        score, reason = _wrapped(record) if isinstance(record.get("payload"), dict) else _bare(record, named)
        if score > found.score:
            found = Claim(score=score, reason=f"record {number} {reason}")
        if score >= SURE:
            break
    return found


def _wrapped(record: Record) -> tuple[int, str]:
    kind, payload = record.get("type"), record["payload"]
    if kind not in WRAPPED or not isinstance(record.get("timestamp"), str):
        return 0, ""
    if kind == SESSION_META:
        return (SURE, "is a `session_meta` with an id") if isinstance(payload.get("id"), str) else (0, "")
    inner = payload.get("type")
    if (kind == ITEM and inner in ITEMS) or (kind == EVENT and inner in EVENTS):
        return 90, f"is a `{kind}` of type `{inner}`"
    told = {TURN_CONTEXT: "cwd", COMPACTED: "message"}
    if kind in told:
        return (90, f"is a `{kind}`") if told[kind] in payload or "replacement_history" in payload else (0, "")
    return 60, f"is a `{kind}`"


def _bare(record: Record, named: bool) -> tuple[int, str]:
    """The first versions: a line about the session, then items without an envelope."""
    kind = record.get("type")
    if record.get("record_type") == STATE and len(record) == 1:
        return 80, "marks a state, as the first versions of Codex did"
    if kind is None and isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str):
        about = "instructions" in record or "git" in record
        return (85, "begins a session of the first versions of Codex") if about else (0, "")
    if named and kind in CALLS | OUTPUTS and isinstance(record.get("call_id"), str):
        # Items alone may be anybody's.
        return 55, f"is a bare `{kind}`, and the file is named like a rollout"
    return 0, ""
