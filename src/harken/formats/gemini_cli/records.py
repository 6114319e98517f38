"""The lines of a Gemini CLI session, read leniently; and whether a file is one.

The program looks at a line in this order: `$rewindTo`, a message (it has a text as `id`), `$set`, a header (`sessionId`
and `projectHash`). What is none of them it passes over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from harken.clock import parse_instant
from harken.events.base import named
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import Record, is_blank, is_overlong, lines, parse, read_head
from harken.text import text_of as text_of  # for whoever takes values from here

HEADER, MESSAGE, LIST, CHANGE, REWIND, UNKNOWN = "header", "message", "list", "change", "rewind", "unknown"
"""Kinds of lines: `list` is a `$set` with `messages`, `change` any other `$set`."""
USER, MODEL = "user", "gemini"
NOTES = ("info", "warning", "error")
"""Types of messages that are for the screen alone."""
TYPES = frozenset({USER, MODEL, *NOTES})
ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""What stands behind a summary, in the model's place; the program writes it."""
LOOKED_AT = 4
"""Messages of a list that are looked at for a summary."""
FRESH = 1_000_000
"""Microseconds: what a list made anew is not older than the list by more."""


class GeminiLine(NamedTuple):
    """One line of a file: `data[start:end]`, the newline included."""

    start: int
    end: int
    record: Record | None
    """None where it is not exactly one JSON object, or empty."""
    blank: bool = False


TOUCHED = re.compile(rb'\{"\$set":\{"lastUpdated":"([0-9TZ:.+-]{10,40})"\}\}\n')
"""The line that stands behind nearly every message. It tells nothing but a time."""
_LONGEST_TOUCHED = 80


def iter_lines(data: bytes, start: int = 0, *, telling: bool = False) -> Iterator[GeminiLine]:
    """Every line from `start` on; the last one may lack its newline. With `telling`, only those that tell something."""
    for begin, end in lines(data, start):
        if is_overlong(end - begin):
            yield GeminiLine(begin, end, None)
            continue
        line = data[begin:end]
        if telling and end - begin < _LONGEST_TOUCHED and TOUCHED.fullmatch(line):
            continue
        record = parse(line)
        yield GeminiLine(begin, end, record, record is None and is_blank(line))


def agent_of(data: bytes) -> str:
    """The sub-agent whose file begins like this; empty for a session's own file. Only the header tells."""
    headers = (line.record for line in iter_lines(data) if line.record is not None and kind_of(line.record) == HEADER)
    header = next(headers, {})
    return named(text_of(header.get("sessionId"))) if header.get("kind") == "subagent" else ""


def kind_of(record: Record) -> str:
    """What the program takes the record for."""
    if isinstance(record.get("$rewindTo"), str):
        return REWIND
    if isinstance(record.get("id"), str):
        return MESSAGE
    if isinstance(change := record.get("$set"), dict):
        return LIST if isinstance(change.get("messages"), list) else CHANGE
    if isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str):
        return HEADER
    return UNKNOWN


def messages_in(listed: Any) -> list[Record]:
    """The messages of a list, as the program takes them."""
    found = listed if isinstance(listed, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("id"), str)]


def words_of(content: object) -> str:
    """The words of a content, whatever shape it has."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(part if isinstance(part, str) else _part_words(part) for part in parts)


def _part_words(part: object) -> str:
    return text_of(part.get("text")) if isinstance(part, dict) and not part.get("thought") else ""


def summary_in(messages: list[Record], time: int | None = None) -> int:
    """The place of the summary in a list that a compaction made; -1 where there is none. It is a user's message behind
    which the program's own thanks stand, near the beginning; with a time, both were made just then."""
    for place in range(min(len(messages), LOOKED_AT) - 1):
        asked, thanked = messages[place], messages[place + 1]
        if (
            asked.get("type") != USER
            or thanked.get("type") != MODEL
            or words_of(thanked.get("content")) != ACKNOWLEDGED
        ):
            continue
        if time is None or all(_is_fresh(one, time) for one in (asked, thanked)):
            return place
    return -1


def _is_fresh(message: Record, time: int) -> bool:
    made = parse_instant(message.get("timestamp"))
    return made is not None and time - FRESH <= made <= time + FRESH


_UNLIKE_OTHERS = 32
"""Characters of an id that no other message has: the program's are UUIDs."""


def shared_names(data: bytes) -> Callable[[str], str]:
    """From a message's name to what its copies are called too: the ids stay when the program copies a session. Short
    ones are another hand's, and may be those of other messages elsewhere."""
    return lambda name: "" if name.startswith("@") or len(name) < _UNLIKE_OTHERS else name


# -- whose file it is --------------------------------------------------------------------------------------------------

CLAIMED_BY = ("projectHash",)
"""A file in which none of these keys is, is not Gemini CLI's."""
_OTHERS = ("uuid", "parentUuid", "payload", "cwd", "history")
"""Keys that no header of Gemini CLI has."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, and by which record. A header with the messages in it is a document, unless the name says
    otherwise."""
    for number, record in enumerate(read_head(head, 10), 1):
        if kind_of(record) != HEADER or any(key in record for key in _OTHERS):
            continue
        if "messages" in record and not path.endswith(".jsonl"):
            continue
        timed = isinstance(record.get("startTime"), str) or isinstance(record.get("lastUpdated"), str)
        reason = f"record {number} is a header with `sessionId` and `projectHash`"
        return Claim(score=95 if timed else 85 if number == 1 else 70, reason=reason)
    return NO_CLAIM
