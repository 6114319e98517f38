"""Whether bytes are a rollout: by what the first lines are, not by what the file is called."""

from __future__ import annotations

from itertools import islice

from .records import ITEMS, WRAPPED, Record, iter_lines

LOOK = 64 * 1024
_ENOUGH = 20


def detect(head: bytes) -> bool:
    """Whether the first lines are those of a rollout, of any version."""
    for line in islice(iter_lines(head[:LOOK]), _ENOUGH):
        if line.record is not None and (verdict := _verdict(line.record)) is not None:
            return verdict
    # A session_meta line may be longer than what we were shown.
    return head.startswith(b'{"timestamp":') and b'"type":"session_meta"' in head[:200]


def _verdict(record: Record) -> bool | None:
    name = record.get("type")
    if not isinstance(name, str | None):
        return None
    if isinstance(record.get("payload"), dict):
        return name in WRAPPED
    if "uuid" in record or "sessionId" in record or "message_id" in record or "event_type" in record:
        return False
    if record.get("record_type") == "state":
        return True
    if name is None and isinstance(record.get("id"), str) and "timestamp" in record:
        return "instructions" in record or "git" in record
    return True if name in ITEMS and "call_id" in record else None
