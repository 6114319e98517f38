"""The rules that a session document is held against: the one list of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from .findings import DocumentFinding, FindingLevel

Mends = Literal["yes", "some", "no"]


class DocumentRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a document is asked."""

    id: str
    level: FindingLevel
    """What it is when it is broken."""
    asks: str
    """A sentence."""
    mends: Mends = "no"
    """Whether `repair` mends it: always, in the cases that it knows, or never."""


_TABLE: tuple[tuple[str, FindingLevel, Mends, str], ...] = (
    # what it is
    ("invalid-json", "error", "some", "The file is JSON"),
    ("not-a-session", "error", "no", "It is a session document of STD-001 or STD-008"),
    ("duplicate-key", "warning", "no", "A key stands once in its object; of two, readers see the last alone"),
    ("old-generation", "note", "no", "The document is of the newest generation; older ones are read as that"),
    # fields
    ("missing-field", "error", "some", "Every required field is there"),
    ("missing-advised", "warning", "no", "`user_prompt`, `agent` and `completed_at` are there"),
    ("not-in-generation", "warning", "no", "A required field that an older generation did not have is there"),
    ("wrong-type", "error", "some", "A field holds what its type says"),
    ("unknown-value", "error", "some", "A field with a closed list of values has one of them"),
    ("open-value", "note", "no", "A field with an open list of values has one that the standard names"),
    ("empty-field", "error", "no", "An id, and the title of the session, is not empty"),
    ("payload-field", "warning", "no", "The payload of a message has the fields that programs agreed on"),
    ("finding-place", "error", "no", "A review's finding names a `file` or a `location`"),
    ("verification", "error", "no", "A review's verification says how tests and type check went"),
    # names
    ("file-name", "warning", "some", "`session_id` is the name of the file without `.json`"),
    ("file-suffix", "warning", "some", "The name of a multi-agent document ends in `-multi.json`, no other does"),
    ("session-id-form", "note", "some", "`session_id` is a date, a number and a few words: `2026-01-31-001-mend-it`"),
)  # fmt: skip


def _rules() -> dict[str, DocumentRule]:
    return {rule: DocumentRule(id=rule, level=level, mends=mends, asks=asks) for rule, level, mends, asks in _TABLE}


RULES = _rules()
"""Every rule by its id."""


def found(rule: str, path: str, message: str, *, mends: bool | None = None) -> DocumentFinding:
    """A finding of a rule. `mends` says whether this one can be repaired, for a rule that is mended in some cases."""
    known = RULES[rule]
    repairable = known.mends == "yes" if mends is None else mends
    return DocumentFinding(rule=rule, level=known.level, path=path, message=message, repairable=repairable)
