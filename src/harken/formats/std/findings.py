"""What a check says of a document, and what a repair has changed in it."""

from __future__ import annotations

from typing import Literal

import msgspec

OLD = "x_harken_old_"
"""What the field begins with that keeps a value which another one has replaced."""
FindingLevel = Literal["error", "warning", "note"]


class DocumentFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a document that is not as the standard has it. Valid means that no finding is an error."""

    rule: str
    """Which rule it breaks: `missing-field`, `trigger-is-task` …"""
    level: FindingLevel
    path: str
    """Where: `sub_sessions[0].tool_calls[3].started_at`; empty for the document as a whole."""
    message: str
    """A plain sentence."""
    repairable: bool = False
    """Whether `repair` mends it."""
    line: int | None = None
    column: int | None = None
    """Where in the text, for a file that is no JSON; both from 1."""


class DocumentChange(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a repair has changed."""

    rule: str
    """The rule that was broken."""
    path: str
    """Where, in the repaired document."""
    message: str
    """What was there, what is there now, and why: a plain sentence."""
    derived: bool = False
    """Whether the new value does not stand in the document in other words, but was made up from the rest of it."""


def at(path: str, key: str | int) -> str:
    """The path of a field or an item below another path."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier():
        import json  # few keys are odd

        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key
