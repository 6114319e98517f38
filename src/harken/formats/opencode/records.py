"""What OpenCode keeps of a session: messages, each with its parts; and the lines that its rows are kept as.

A line is a row: `{"TABLE":{COLUMN:VALUE,…}}`. The lines of a message stand together, a *block*: its row, those of its
parts, and the events that the program logged from its first mention on. A message that the program has removed is left
in these events alone, and its block begins with the first of them. Behind all blocks come the session's own row and
those of other tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from harken.formats.kit.jsonl import Record, is_blank, is_overlong, lines, parse, refusal

MESSAGE, PART, EVENT = b'{"message":', b'{"part":', b'{"event":'
UPDATED = b'"type":"message.updated'
"""How the event begins that tells a message as it stands."""
EVENT_HEAD = 512
"""Bytes of an event in which its type stands: behind three columns of which each is short."""
SESSION = "session"
BESIDE = {
    "todo": "session_id",
    "session_message": "session_id",
    "session_input": "session_id",
    "session_context_epoch": "session_id",
    "kilo_board": "root_session_id",
    "kilo_board_message": "board_root_session_id",
}
"""Other tables with rows of a session, and the column that names it. What shares a session has a secret, and stays."""
TABLES = frozenset({SESSION, *BESIDE})
HEAD = 64 * 1024


def text(value: Any) -> str:
    """The text, or nothing where it is none."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int:
    """The whole number, or zero where it is none."""
    return value if type(value) is int else int(value) if type(value) is float and abs(value) < 1e18 else 0


def inside(value: Any, *keys: str) -> Any:
    """What stands behind the keys, one in the other; None where there is nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


class MessagePart(NamedTuple):
    """A part of a message, without its ids."""

    id: str
    data: Record

    @property
    def type(self) -> str:
        return text(self.data.get("type"))


class RowMessage(msgspec.Struct, kw_only=True):
    """A message and its parts, as the rows, an event or an export tell it."""

    id: str
    session: str
    info: Record
    """What is said of it, without its ids."""
    parts: list[MessagePart]
    created: int = 0
    """Milliseconds, by which messages are in order."""

    @property
    def role(self) -> str:
        return text(self.info.get("role"))

    @property
    def compaction(self) -> Record | None:
        """The part that asks for a summary, where there is one."""
        return next((part.data for part in self.parts if part.type == "compaction"), None)


def shared_name(message: RowMessage) -> str:
    """What a message and its copies in other sessions are called."""
    return f"{message.role}@{message.created}" if message.created else ""


class UnreadRow(NamedTuple):
    """A line that cannot be read, or that says nothing of the conversation."""

    start: int
    raw: bytes
    why: str


class RowBlock(msgspec.Struct, kw_only=True):
    """The lines of one message, or a line of another kind."""

    start: int
    end: int
    key: tuple[int, str] | None = None
    """What orders the message among others; None where the block is none of a message."""
    removed: bool = False
    """Whether only events tell of the message."""
    message: RowMessage | None = None
    table: str = ""
    row: Record | None = None
    """The row of another table."""
    kept: list[tuple[int, int]] = []
    """Where the lines of the message and of its parts stand."""
    unread: list[UnreadRow] = []
    events: list[bytes] = []
    """Of a removed message: what was logged."""


def blocks(data: bytes) -> Iterator[RowBlock]:
    """The blocks in the bytes, in their order; whatever the bytes, every line is in one."""
    block: RowBlock | None = None
    for start, end in lines(data):
        if block is not None and block.message is not None and _is_repeated(data, start, end):
            block.end = end
            continue
        begun = _begun(data, start, end, block)
        if begun is None and block is not None:
            block.end = end
            continue
        if block is not None:
            yield _settled(block)
        block = begun
    if block is not None:
        yield _settled(block)


def _is_repeated(data: bytes, start: int, end: int) -> bool:
    """Whether a line is of the log and begins no message: most of all lines are, and need not be looked at."""
    return data.startswith(EVENT, start, end) and data.find(UPDATED, start, min(end, start + EVENT_HEAD)) < 0


def _begun(data: bytes, start: int, end: int, block: RowBlock | None) -> RowBlock | None:
    """The block that begins with a line; None where the line belongs to the one before."""
    if data.startswith(EVENT, start, end) and not is_overlong(end - start):
        return _event(data[start:end], start, end, block)
    if data.startswith(PART, start, end) and block is not None and block.message is not None:
        row = _row(data[start:end])
        if row is not None and row[0] == "part" and row[1].get("message_id") == block.message.id:
            if isinstance(found := row[1].get("data"), dict):
                block.message.parts.append(MessagePart(text(row[1].get("id")), found))
                block.kept.append((start, end))
            else:
                block.unread.append(UnreadRow(start, data[start:end], "the data of the part is no JSON object"))
            return None
    return _row_block(data, start, end)


def _event(line: bytes, start: int, end: int, block: RowBlock | None) -> RowBlock | None:
    """A logged event belongs to the message before it, unless it is the first to tell of a later one that is gone."""
    key = told(line)
    if block is None or block.key is None:
        if block is None or not block.removed:
            return RowBlock(start=start, end=end, key=key, removed=True, events=[line])
        block.key = key
    elif key is not None and key > block.key and key[1] != block.key[1]:
        return RowBlock(start=start, end=end, key=key, removed=True, events=[line])
    if block.removed:
        block.events.append(line)
    return None


def told(line: bytes) -> tuple[int, str] | None:
    """The message that an event tells as it stands, by what orders it."""
    if UPDATED not in line[:EVENT_HEAD]:
        return None
    try:
        info = _decode_told(line).event.data.info
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return (info.time.created, info.id) if info.id else None


class _Time(msgspec.Struct):
    created: int


class _Info(msgspec.Struct):
    id: str
    time: _Time


class _Data(msgspec.Struct):
    info: _Info


class _Event(msgspec.Struct):
    data: _Data


class _Line(msgspec.Struct):
    event: _Event


_decode_told = msgspec.json.Decoder(_Line).decode


def _row(line: bytes) -> tuple[str, Record] | None:
    """The table and the columns of a row; None where the line is none."""
    record = parse(line)
    if record is None or len(record) != 1:
        return None
    [(table, row)] = record.items()
    return (table, row) if isinstance(row, dict) else None


def _row_block(data: bytes, start: int, end: int) -> RowBlock:
    block = RowBlock(start=start, end=end, kept=[], unread=[])
    line = data[start : min(end, start + HEAD)] if is_overlong(end - start) else data[start:end]
    found = None if is_overlong(end - start) else _row(line)
    if found is None:
        if not is_blank(line):
            why = f"a line of {end - start} bytes" if is_overlong(end - start) else refusal(line)
            block.unread.append(UnreadRow(start, line, why or "the line is no row"))
        return block
    block.table, row = found
    if block.table == "message" and isinstance(row.get("data"), dict):
        name, created = text(row.get("id")), number(row.get("time_created"))
        block.message = RowMessage(
            id=name, session=text(row.get("session_id")), info=row["data"], parts=[], created=created
        )
        block.key = (created, name)
        block.kept.append((start, end))
    elif block.table in ("message", "part"):
        why = "a part of no message" if block.table == "part" else "the data of the message is no JSON object"
        block.unread.append(UnreadRow(start, line, why))
    else:
        block.row = row
        block.kept.append((start, end))
    return block


def _settled(block: RowBlock) -> RowBlock:
    """A block that has ended: what events tell of a removed message is put together."""
    if block.removed and block.key is not None:
        block.message = _told_message(block.events, block.key)
    block.events = []
    return block


def _told_message(events: list[bytes], key: tuple[int, str]) -> RowMessage | None:
    """A message as events tell it: of each of its parts the last state."""
    info: Record = {}
    parts: dict[str, Record] = {}
    for line in events:
        row = _row(line)
        data = inside(row[1], "data") if row is not None else None
        said, part = inside(data, "info"), inside(data, "part")
        if isinstance(said, dict) and said.get("id") == key[1]:
            info = said
        elif isinstance(part, dict) and part.get("messageID") == key[1]:
            parts[text(part.get("id"))] = part
    found = [MessagePart(name, _without(parts[name], "id", "sessionID", "messageID")) for name in sorted(parts)]
    return RowMessage(
        id=key[1],
        session=text(info.get("sessionID")),
        info=_without(info, "id", "sessionID"),
        parts=found,
        created=key[0],
    )


def _without(record: Record, *names: str) -> Record:
    return {key: value for key, value in record.items() if key not in names}


def exported_message(value: Any) -> RowMessage | None:
    """A message as an export has it: `{"info", "parts"}`; None where it is none."""
    info, parts = inside(value, "info"), inside(value, "parts")
    if not isinstance(info, dict) or not isinstance(parts, list):
        return None
    found = [
        MessagePart(text(part.get("id")), _without(part, "id", "sessionID", "messageID"))
        for part in parts
        if isinstance(part, dict)
    ]
    return RowMessage(
        id=text(info.get("id")),
        session=text(info.get("sessionID")),
        info=_without(info, "id", "sessionID"),
        parts=found,
        created=number(inside(info, "time", "created")),
    )
