"""The lines that nearly all of a file are made of, looked at without building what they hold.

A typed decoder passes over arguments, results and the words of the model, which nobody has to see for a count. What is
not exactly of the usual shape is None here, and goes the long way (`parse`, then `MessageTeller`), which decides.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harken.events.base import Count
from harken.formats.kit.jsonl import Record

from .messages import ATTACHED, GUARD
from .records import LOOKED_AT, MODEL, USER

_SHORT = 16
_LISTED = b'{"$set":{"messages":['
_ANSWERS = b'[{"functionResponse":'


class QuickTokens(msgspec.Struct):
    """What a request used, in the order in which `Told` has it."""

    input: Count
    cached: Count
    output: Count
    thoughts: Count
    tool: Count
    total: Count


class QuickCall(msgspec.Struct):
    """A call; what it was asked and what it answered is passed over."""

    id: str
    name: str
    args: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    agentId: str = ""


class QuickMessage(msgspec.Struct, rename={"rewind": "$rewindTo"}):
    """A message, its content as it stands."""

    id: str
    type: str
    timestamp: str
    content: msgspec.Raw
    thoughts: list[Any] = []
    tokens: QuickTokens | None = None
    model: str = ""
    toolCalls: list[QuickCall] = []
    displayContent: msgspec.Raw = msgspec.Raw(b"")
    rewind: msgspec.Raw | None = None


class _Response(msgspec.Struct):
    id: str
    name: str


class _ResultPart(msgspec.Struct):
    functionResponse: _Response


class _TextPart(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class _HeardPart(msgspec.Struct, forbid_unknown_fields=True):
    text: str | None = None
    inlineData: dict[str, msgspec.Raw] | None = None


class _Errand(msgspec.Struct):
    prompt: str = ""


class _ListedMessages(msgspec.Struct):
    messages: list[msgspec.Raw]
    lastUpdated: str = ""


class _Change(msgspec.Struct, rename={"change": "$set"}, forbid_unknown_fields=True):
    change: _ListedMessages


_message = msgspec.json.Decoder(QuickMessage).decode
_results = msgspec.json.Decoder(list[_ResultPart]).decode
_texts = msgspec.json.Decoder(tuple[_TextPart]).decode
_heard = msgspec.json.Decoder(list[_HeardPart]).decode
_errand = msgspec.json.Decoder(_Errand).decode
_change = msgspec.json.Decoder(_Change).decode
_text = msgspec.json.Decoder(str).decode
_record = msgspec.json.Decoder(dict[str, Any]).decode


def message(line: bytes) -> QuickMessage | None:
    """The message that a line is, where it is one of the usual shape."""
    if not line.startswith(b'{"id":"'):
        return None
    try:
        found = _message(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.rewind is None and found.type in (USER, MODEL) else None


def words(found: QuickMessage) -> str | None:
    """What the model says in one piece; None where the content is anything else."""
    raw = bytes(found.content)
    try:
        return _text(raw) if raw.startswith(b'"') else _texts(raw)[0].text
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def typed_words(found: QuickMessage) -> str | None:
    """What a person typed, with or without pictures and files that come along; None where the content has anything
    else in it."""
    raw = bytes(found.content)
    try:
        if raw.startswith(b'"') and not len(found.displayContent):
            return _text(raw)
        parts = _heard(raw)
        shown = _heard(found.displayContent) if len(found.displayContent) else []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if any((part.text is None) is (part.inlineData is None) for part in parts) or shown != parts[: len(shown)]:
        return None
    texts = [part.text for part in parts]
    typed = len(shown) if len(shown) < len(parts) else 0
    if not typed and ATTACHED in texts:
        typed = texts.index(ATTACHED)
    if not parts or texts[0] == GUARD:
        return None
    return "\n".join(text for text in texts[: typed or None] if text is not None)


def errand(call: QuickCall) -> str | None:
    """What a sub-agent is sent for; None where that is not told in the usual way."""
    try:
        return _errand(call.args).prompt
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def results(found: QuickMessage) -> list[tuple[str, str]] | None:
    """The ids and tools of answers, where the content is nothing else."""
    if not bytes(found.content).startswith(_ANSWERS):
        return None
    try:
        parts = _results(found.content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return [(part.functionResponse.id, part.functionResponse.name) for part in parts]


def listed(line: bytes) -> Record | None:
    """A change of all messages, with no more of them than tell whether a compaction made it."""
    if not line.startswith(_LISTED):
        return None
    try:
        change = _change(line).change
        first = [_record(raw) for raw in change.messages[:LOOKED_AT]]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not all(isinstance(one.get("id"), str) for one in first):
        return None
    return {"$set": {"messages": first, "lastUpdated": change.lastUpdated}}


def is_answered(call: QuickCall) -> bool:
    """Whether a result stands beside the call."""
    return len(call.result) > _SHORT or bytes(call.result).translate(None, b" \t\r\n") not in (b"null", b'""', b"[]")
