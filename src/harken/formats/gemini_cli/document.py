"""`gemini-json-v1`: the sessions of Gemini CLI before version 0.40, one JSON document each, rewritten as a whole:

    {"sessionId", "projectHash", "startTime", "lastUpdated", "messages": [MESSAGE, …], "kind"?, "summary"?}

A message is what a line of today's files is, calls and their results in one. All but the last are closed. The tail of a
chain is what stands around the closed ones: `{"gemini_envelope": [[TEXT, COUNT], …]}`, the bytes before, between and
behind them, each byte a character, and how often in a row. Without a tail, messages are put into the smallest document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from harken.events import Event, Output
from harken.events.base import clean, named
from harken.formats.base import Format
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import NotJson, Record, encode, parse_beginning, parse_document

from .messages import NOTICES, Told, message_events, time_of
from .records import MODEL, TYPES, shared_names, text_of

ENVELOPE = b'{"gemini_envelope":'
KEYS = ("projectHash",)
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]', re.DOTALL)
_SPACE = b" \t\r\n"
QWEN = "qwen"
"""What Qwen Code, which grew out of the program, called the model in its documents."""
_NO_DOCUMENT = "not a session of Gemini CLI"
_HEADER = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories", "summary")


# -- where the messages are --------------------------------------------------------------------------------------------


def whole(data: bytes) -> Record | None:
    """The document, where it is one."""
    try:
        found = parse_document(data)
    except NotJson:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("messages"), list) else None


def places(data: bytes) -> list[tuple[int, int]]:
    """Where the messages of a document stand in it."""
    found: list[tuple[int, int]] = []
    depth, key, start, inside = 0, b"", 0, False
    for token in _TOKEN.finditer(data):
        sign = token[0]
        if sign in (b"[", b"{"):
            depth += 1
            if depth == 2 and key == b'"messages"' and sign == b"[":
                inside, start, found = True, token.end(), []
        elif sign in (b"]", b"}"):
            depth -= 1
            if inside and depth == 1:
                inside = False
                _add(found, data, start, token.start())
        elif sign == b",":
            if inside and depth == 2:
                _add(found, data, start, token.start())
                start = token.end()
        elif depth == 1:
            key = sign
    return found


def _add(found: list[tuple[int, int]], data: bytes, start: int, end: int) -> None:
    part = data[start:end]
    begin = start + len(part) - len(part.lstrip(_SPACE))
    if part.strip(_SPACE):
        found.append((begin, begin + len(part.strip(_SPACE))))


def _slices(data: bytes) -> list[bytes]:
    return [data[start:end] for start, end in places(data)]


# -- as a chain --------------------------------------------------------------------------------------------------------


def tail_of(data: bytes, found: list[tuple[int, int]]) -> bytes:
    """What stands around the closed messages, and the last one."""
    if len(found) < 2:
        return data
    ends, starts = [0, *(end for _, end in found[:-1])], [*(start for start, _ in found[:-1]), len(data)]
    gaps = [data[end:start].decode("latin-1") for end, start in zip(ends, starts, strict=True)]
    return encode({"gemini_envelope": [[gap, len(list(alike))] for gap, alike in groupby(gaps)]})


def _gaps(tail: bytes) -> list[bytes] | None:
    """What a tail holds; None where it is none."""
    if not tail.startswith(ENVELOPE):
        return None
    try:
        found = msgspec.json.decode(tail, type=dict[str, list[tuple[str, int]]])["gemini_envelope"]
        if sum(max(count, 0) for _, count in found) > len(tail) + (1 << 24):
            return None
        return [gap.encode("latin-1") for gap, count in found for _ in range(count)]
    except (msgspec.MsgspecError, KeyError, UnicodeEncodeError):
        return None


def join(deltas: Iterable[bytes]) -> bytes:
    """The document of a chain's deltas; where there is no tail, the smallest that holds the messages."""
    parts = list(deltas)
    gaps = _gaps(parts[-1]) if parts else None
    if gaps is not None and len(gaps) == len(parts):
        return b"".join(piece for pair in zip(gaps, [*parts[:-1], b""], strict=True) for piece in pair)
    if len(parts) == 1 and not _is_message(parts[0]):
        return parts[0]  # a document, or a file that never was one
    messages = [message for part in parts for message in messages_of(part) or ()]
    return b'{"messages":[' + b",".join(messages) + b"]}" if parts else b""


def _is_message(delta: bytes) -> bool:
    """Whether it is one message, and so no file. Each has an id: what has none may be any file."""
    try:
        found = parse_document(delta)
    except NotJson:
        return False
    if not isinstance(found, dict) or "sessionId" in found or "id" not in found:
        return False
    return text_of(found.get("type")) in (*TYPES, "model", QWEN)


def messages_of(delta: bytes) -> list[bytes] | None:
    """The messages in a delta: a closed one, those in a tail, those of a document; None where there are none."""
    gaps = _gaps(delta)
    if gaps:
        # What is not closed stands behind the last closed message; before it is made a list again.
        rest = gaps[-1].lstrip(_SPACE)
        return _slices(b'{"messages":[' + rest.removeprefix(b","))
    if whole(delta) is not None:
        return _slices(delta)
    try:
        parse_document(delta)
    except NotJson:
        return None
    return [delta]


# -- as events ---------------------------------------------------------------------------------------------------------


def message_of(data: bytes, agent: bool = False) -> Iterator[Event]:
    """What one message says."""
    try:
        message: Any = parse_document(data)
    except NotJson:
        message = None
    message = _of_today(message) if isinstance(message, dict) else message
    if not isinstance(message, dict) or text_of(message.get("type")) not in TYPES:
        name = clean(text_of(message.get("id"))) if isinstance(message, dict) else ""
        yield Output(raw=data, why="not a message", message_id=name)
        return
    name, time = clean(text_of(message.get("id"))), time_of(message)
    for index, event in enumerate(message_events(message, Told(), agent=agent)):
        yield event.replace(message_id=name, time=time, index=index)


def _of_today(message: Record) -> Record:
    """A message as the program writes it today: Qwen Code called the model otherwise, and so do some tools that copy
    sessions."""
    if message.get("type") == "model" and "parts" in message:
        rest = {key: value for key, value in message.items() if key != "parts"}
        return {**rest, "type": MODEL, "content": message["parts"]}
    return {**message, "type": MODEL} if message.get("type") == QWEN else message


def _numbered(messages: Iterable[bytes], agent: bool = False) -> Iterator[Event]:
    """The events of messages; one without a name is called after its place among them."""
    for number, message in enumerate(messages):
        for event in message_of(message, agent):
            yield event if event.message_id else event.replace(message_id=f"@{number}")


def read(data: bytes) -> Iterator[Event]:
    """Every event of a document."""
    document = whole(data)
    if document is None:
        if data.strip(_SPACE):
            yield Output(raw=data, why=_NO_DOCUMENT, message_id="@0")
        return
    yield from _numbered(_slices(data), document.get("kind") == "subagent")


def read_delta(delta: bytes) -> Iterator[Event]:
    """What a delta adds."""
    if whole(delta) is not None or not delta.strip(_SPACE):
        yield from read(delta)
        return
    found = messages_of(delta)
    if found is None:
        yield Output(raw=delta, why=_NO_DOCUMENT, message_id="@0")
    yield from _numbered(found or ())


# -- whose file it is, and what today's program makes of it ------------------------------------------------------------


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is. The keys of a document may stand in any order, and behind what is looked at."""
    if head.lstrip(_SPACE + b"\xef\xbb\xbf")[:1] != b"{" or path.endswith(".jsonl") or b'"messages"' not in head:
        return NO_CLAIM
    document = parse_beginning(head)
    listed = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return NO_CLAIM
    if isinstance(document.get("sessionId"), str) and isinstance(document.get("projectHash"), str):
        return Claim(score=95, reason="it has `sessionId`, `projectHash` and `messages`")
    kinds = [one.get("type") for one in listed if isinstance(one, dict) and isinstance(one.get("id"), str)]
    if "gemini" in kinds and all(text_of(kind) in TYPES for kind in kinds[:-1]):
        return Claim(score=70, reason="its messages are those of a user and of `gemini`")
    return NO_CLAIM


def is_of_qwen(head: bytes, path: str) -> bool:
    """Whether a document is one of Qwen Code's: the model has its name, or it lies in its folder."""
    document = parse_beginning(head)
    listed = document.get("messages") if isinstance(document, dict) else None
    kinds = {text_of(one.get("type")) for one in listed or () if isinstance(one, dict)}
    return QWEN in kinds or (MODEL not in kinds and "/.qwen/" in path)


def to_lines(data: bytes) -> bytes:
    """The document as today's program keeps it when it goes on with it: a header, and each message on a line."""
    document = whole(data) or {}
    header = {key: document[key] for key in _HEADER if document.get(key) is not None}
    header = {"sessionId": "", "projectHash": ""} | header
    messages = [_of_today(message) for message in document.get("messages", ()) if isinstance(message, dict)]
    return b"".join(encode(record) + b"\n" for record in (header, *_told_apart(messages)))


def _told_apart(messages: list[Record]) -> Iterator[Record]:
    """Messages with a name each: a line with the name of an earlier one would take its place."""
    seen: set[str] = set()
    for number, message in enumerate(messages, 1):
        name = text_of(message.get("id")) or f"m{number:06d}"
        if name in seen:
            name = f"{name}-{number}"
        seen.add(name)
        yield {**message, "id": name}


def about(data: bytes) -> tuple[str, str, bool]:
    """The session that a document names, what it is called, and whether it is a sub-agent's."""
    document = whole(data) or {}
    title = " ".join(clean(text_of(document.get("summary"))).split())
    return named(text_of(document.get("sessionId"))), title[:200], document.get("kind") == "subagent"


FORMAT = Format(
    name="gemini-json-v1",
    media_type="application/json",
    description="Gemini CLI session before 0.40: one JSON document with the `messages` of the user and of `gemini`.",
    join=join,
    claim=claim,
    reader=read,
    delta_reader=read_delta,
    places=lambda delta: len(messages_of(delta) or ()),
    runtime="gemini-cli",
    notices=NOTICES,
    shared_names=shared_names,
    names_as="gemini-cli-v1",
)
