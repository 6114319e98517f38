"""Whether a file is a session document, and of which standard, by its beginning or by all of it.

Every import asks this of every file with such keys, so it loads nothing that reads documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.std.encodings import as_utf_8

if TYPE_CHECKING:
    from harken.formats.std.document import Kind

CLAIMED_BY = ("task_title", "tool_calls", "steps", "phases")
"""A file without any of these keys is no session document."""
_USUAL = frozenset({"task_title", "user_prompt", "created_at", "status", "agent", "summary", "collaboration"})
_TOKENS = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|```\w*+[ \t]*+\r?\n|//[^\n]*+\n)*+")
"""What may stand before the object: a byte order mark, a fence of Markdown, comments."""
_MULTI_NAME = "-multi.json"


def claim_of(kind: Kind) -> Callable[[bytes, str], Claim]:
    """The claim of one of the two standards."""

    def claim(head: bytes, path: str = "") -> Claim:
        if kind != claimed_kind(head, path):
            return NO_CLAIM
        return Claim(score=90, reason="its keys are those of a session document")

    return claim


def claimed_kind(head: bytes, path: str = "") -> Kind | None:
    """Of which standard a file is that begins like this, or is this; None where it is no session document."""
    head = as_utf_8(head)
    if not any(f'"{key}"'.encode() in head for key in CLAIMED_BY):
        return None
    keys = top_keys(head)
    return _kind(keys, path) if _is_document(keys, head) else None


def _is_document(keys: frozenset[str], head: bytes) -> bool:
    """Whether an object with these keys is a session document of any generation. One of the older that was repaired
    has calls, too, and still not the fields that its generation did not have."""
    if "steps" in keys and {"session_id", "created_at"} <= keys and b'"step_name"' in head:
        return True
    if "phases" in keys and {"title", "task_title"} & keys and _has_early_phases(head):
        return True
    if "tool_calls" in keys or "phases" in keys:
        return len(keys & _USUAL) >= (2 if "session_id" in keys else 3) and bool({"session_id", "task_title"} & keys)
    if not {"session_id", "task_title"} <= keys:
        return False
    # Its calls come behind what was looked at, or all that was done is in sub-sessions.
    return not _is_whole(head) or bool(keys & {"collaboration", "sub_sessions"})


def _has_early_phases(head: bytes) -> bool:
    return b'"phase"' in head and (b'"tool_calls"' in head or b'"context_references"' in head)


def _kind(keys: frozenset[str], path: str) -> Kind:
    """Of which standard a document is, whatever its mode: one that is being recorded is `single` until it has a second
    agent, and must stay the same session. What was not looked at may say, and then its name does."""
    if keys & {"collaboration", "sub_sessions"}:
        return "std-008"
    return "std-008" if path.endswith(_MULTI_NAME) and "tool_calls" not in keys else "std-001"


def _is_whole(head: bytes) -> bool:
    return head.rstrip().endswith(b"}")


def top_keys(head: bytes) -> frozenset[str]:
    """The keys of the object that a file begins with, as far as they are in its beginning; none where that is no
    object."""
    body = head[before.end() :] if (before := _BEFORE.match(head)) else head
    if not body.startswith(b"{"):
        return frozenset()
    if _is_whole(body):
        try:
            return frozenset(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # no JSON, or the beginning of more: token by token then
    found = set()
    depth = 0
    for token in _TOKENS.finditer(body):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if not depth:
                break
        elif depth == 1 and token[2]:
            found.add(token[1].decode("utf-8", "replace"))
    return frozenset(found)
