"""`opencode-v1`: what `opencode export` prints and `opencode import` takes, one JSON document.

`{"info": {…the session…}, "messages": [{"info": {…}, "parts": […]}, …]}`. As slices of it the messages are closed
deltas, each from its beginning to that of the next; what is left without them is a document again, the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import orjson

from harken.events import Event, Output
from harken.formats.base import Format, Written
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import HEAD, NotJson, Record, encode, parse, parse_document

from .context import as_read, standing
from .read import NOTICES, is_sent, message_events
from .records import SESSION, RowMessage, blocks, exported_message, shared_name, text
from .write import write_rows

KEYS = ("sessionID",)
OPEN, CLOSE = b'{"messages":[', b"]}"


class ExportDocument(msgspec.Struct, frozen=True):
    """An export, its messages verbatim."""

    info: msgspec.Raw = msgspec.Raw(b"{}")
    messages: list[msgspec.Raw] = []


_decode = msgspec.json.Decoder(ExportDocument).decode


def claim(head: bytes, path: str) -> Claim:
    """Nobody else keeps messages with `info` and `parts` beside a session with a slug."""
    begun = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not begun.startswith(b"{") or b'"info"' not in begun:
        return NO_CLAIM
    if b'"ses_' in head and (b'"messages"' in head and b'"parts"' in head):
        return Claim(score=90, reason="an export of OpenCode's, with `info`, `messages` and `parts`")
    return NO_CLAIM


def document_of(data: bytes) -> ExportDocument | None:
    """The export that the bytes are; None where they are none."""
    try:
        found = _decode(data)
        parse_document(bytes(found.info))
    except (msgspec.MsgspecError, NotJson, UnicodeDecodeError, RecursionError):
        return None
    return found


def places(data: bytes, found: ExportDocument) -> list[int]:
    """Where each message begins; none where they are not where they should be."""
    at, begun = data.find(b'"messages"'), []
    for message in found.messages:
        raw = bytes(message)
        if (at := data.find(raw, max(at, 0))) < 0:
            return []
        begun.append(at)
        at += len(raw)
    return begun


def join(deltas: Iterable[bytes]) -> bytes:
    """Closed messages, put before those of the last document; without one, the smallest document that holds them."""
    held = list(deltas)
    if len(held) < 2 and (not held or isinstance(_message(_bare(held[0]), 0), Output) or _is_document(held[0])):
        return held[0] if held else b""
    tail = held.pop() if _is_document(held[-1]) else b""
    closed = b"".join(_listed(delta) for delta in held)
    if not tail:
        return OPEN + _bare(closed) + CLOSE
    found = document_of(tail)
    begun = places(tail, found) if found is not None else []
    if not begun:  # it has none of its own
        info = bytes(found.info) if found is not None else b"{}"
        return b'{"info":' + info + b',"messages":[' + _bare(closed) + CLOSE
    return tail[: begun[0]] + closed + tail[begun[0] :]


def _bare(delta: bytes) -> bytes:
    return delta.rstrip(b", \t\r\n")


def _is_document(data: bytes) -> bool:
    return not data.rstrip(b" \t\r\n").endswith(b",")


def _listed(delta: bytes) -> bytes:
    """The messages of a delta as they stand in a list, with a comma behind each."""
    if not _is_document(delta):
        return delta
    found = document_of(delta)
    return b"".join(bytes(message) + b"," for message in found.messages) if found is not None else b""


def messages_of(data: bytes) -> list[RowMessage | Output]:
    """The messages of a document, or the one of a closed delta; in the place of one that cannot be read, what it is."""
    if not _is_document(data):
        return [_message(_bare(data), 0)]
    found = document_of(data)
    if found is None:
        blank = not data.strip()
        return (
            [] if blank else [Output(raw=data[:HEAD], why="the document is no export of OpenCode's", message_id="@0")]
        )
    return [_message(bytes(raw), place) for place, raw in enumerate(found.messages)]


def _message(raw: bytes, place: int) -> RowMessage | Output:
    try:
        message = exported_message(parse_document(raw))
    except NotJson:
        message = None
    if message is None:
        return Output(raw=raw[:HEAD], why="no message of OpenCode's", message_id=f"@{place}")
    return message


def read(data: bytes) -> Iterator[Event]:
    """Every event of the export."""
    spawned = bool(text(session_info(data).get("parentID")))
    for message in messages_of(data):
        yield from told(message, spawned=spawned)


def told(message: RowMessage | Output, *, spawned: bool = False) -> list[Event]:
    """What a message says."""
    if isinstance(message, Output):
        return [message]
    if message.role not in ("user", "assistant"):
        return [Output(why="a message of neither the user nor the assistant", message_id=message.id)]
    return message_events(message, spawned=spawned) or [Output(message_id=message.id)]


def shared_names(data: bytes) -> Callable[[str], str]:
    """What the rows of the messages are called in other sessions."""
    known = {message.id: shared_name(message) for message in messages_of(data) if isinstance(message, RowMessage)}
    return lambda name: known.get(name, "")


def session_info(data: bytes) -> Record:
    """What the document says of the session; empty where it says nothing."""
    found = document_of(data) if _is_document(data) else None
    return (parse(bytes(found.info)) or {}) if found is not None else {}


def _stand(data: bytes) -> list[RowMessage]:
    there = [message for message in messages_of(data) if isinstance(message, RowMessage)]
    revert = session_info(data).get("revert")
    return standing(there, revert if isinstance(revert, dict) else None)


def context(data: bytes) -> bytes:
    """The document with the messages that stand."""
    found = document_of(data) if _is_document(data) else None
    if found is None or not found.messages:
        return data
    stand = {message.id: len(message.parts) for message in _stand(data)}
    kept = []
    for raw in found.messages:
        message = _message(bytes(raw), 0)
        if not isinstance(message, RowMessage) or message.id not in stand:
            continue
        whole = stand[message.id] == len(message.parts)
        kept.append(bytes(raw) if whole else _shortened(bytes(raw), stand[message.id]))
    if len(kept) == len(found.messages) and all(map(bytes.__eq__, kept, map(bytes, found.messages))):
        return data
    return b'{"info":' + bytes(found.info) + b',"messages":[' + b",".join(kept) + CLOSE


def _shortened(raw: bytes, parts: int) -> bytes:
    """A message without the parts behind the place that somebody went back to."""
    value = orjson.loads(raw)
    return encode(value | {"parts": [part for part in value["parts"] if isinstance(part, dict)][:parts]})


def read_conversation(data: bytes) -> Iterator[Event]:
    """What the program would send, in the order the model reads it."""
    spawned = bool(text(session_info(data).get("parentID")))
    for message in as_read(_stand(data)):
        if is_sent(message):
            yield from message_events(message, spawned=spawned, as_sent=True)


# -- from rows ---------------------------------------------------------------------------------------------------------

_PLAIN = {
    "id": "id", "slug": "slug", "project_id": "projectID", "workspace_id": "workspaceID", "directory": "directory",
    "path": "path", "parent_id": "parentID", "title": "title", "agent": "agent", "version": "version", "cost": "cost",
}  # fmt: skip
_JSON = ("model", "metadata", "permission", "revert")


def export_rows(data: bytes) -> Written:
    """The rows of a session as the document that the program imports."""
    row: Record = {}
    messages = []
    for block in blocks(data):
        if block.table == SESSION:
            row |= block.row or {}
        elif block.message is not None and not block.removed:
            messages.append(_exported(block.message))
    return Written(data=_pretty({"info": info_of(row), "messages": messages}))


def info_of(row: Record) -> Record:
    """What an export says of a session, by its row."""
    info: Record = {name: row[column] for column, name in _PLAIN.items() if row.get(column) is not None}
    summary = {name: row.get(f"summary_{name}") for name in ("additions", "deletions", "files")}
    if any(value is not None for value in summary.values()):
        info["summary"] = {name: value or 0 for name, value in summary.items()}
        if diffs := _json(row.get("summary_diffs")):
            info["summary"]["diffs"] = diffs
    if "tokens_input" in row:
        input, output, reasoning = (row.get(f"tokens_{name}") or 0 for name in ("input", "output", "reasoning"))
        cache = {name: row.get(f"tokens_cache_{name}") or 0 for name in ("read", "write")}
        info["tokens"] = {"input": input, "output": output, "reasoning": reasoning, "cache": cache}
    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}
    info |= {name: value for name in _JSON if (value := _json(row.get(name))) is not None}
    times = {name: row.get(f"time_{name}") for name in ("created", "updated", "compacting", "archived")}
    return info | {"time": {name: value for name, value in times.items() if value is not None}}


def _json(value: Any) -> Any:
    try:
        return orjson.loads(value) if isinstance(value, str) else None
    except orjson.JSONDecodeError:
        return None


def _exported(message: RowMessage) -> Record:
    own = {"id": message.id, "sessionID": message.session}
    parts = [
        part.data | {"id": part.id, "sessionID": message.session, "messageID": message.id} for part in message.parts
    ]
    return {"info": message.info | own, "parts": parts}


def _pretty(value: Record) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
    except (orjson.JSONEncodeError, RecursionError):
        return encode(value) + b"\n"


def write(events: Sequence[Event]) -> Written:
    """The events as a document; ids follow from what they say."""
    rows = write_rows(events)
    if not rows.data:
        return rows
    return Written(data=export_rows(rows.data).data, losses=rows.losses)


FORMAT = Format(
    name="opencode-v1",
    media_type="application/json",
    description="What `opencode export` prints: `{info, messages: [{info, parts}]}`; a call and its result are a part.",
    join=join,
    context=context,
    claim=claim,
    reader=read,
    conversation_reader=read_conversation,
    writer=write,
    runtime="opencode",
    shared_by=("kilo", "opencode-export"),
    notices=NOTICES,
    shared_names=shared_names,
    dates_names=True,
    names_as="opencode-rows-v1",
    places=lambda data: len(messages_of(data)),
)
