"""`opencode-rows-v1`: a session's rows in the database of OpenCode, verbatim; a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from harken.events import Event, Output
from harken.formats.base import Format, Written
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import Record, encode, parse

from .context import as_read, standing
from .export import export_rows
from .read import NOTICES, is_sent, message_events
from .records import SESSION, TABLES, RowBlock, RowMessage, blocks, shared_name, text
from .write import write_rows

BEGINNINGS = (b'{"message":{"id":"msg_', b'{"event":{"id":"evt_', b'{"session":{"id":"ses_')


def claim(head: bytes, path: str) -> Claim:
    """Rows of this shape are written by nobody else."""
    if head.startswith(BEGINNINGS) and b'"ses_' in head:
        return Claim(score=95, reason="its first line is a row of OpenCode's")
    return NO_CLAIM


def read(data: bytes) -> Iterator[Event]:
    """Every event of the session, removed messages among them."""
    yield from _events(list(blocks(data)))


def read_named(data: bytes) -> tuple[list[Event], Callable[[str], str]]:
    """Every event, and what copies of its records are called."""
    found = list(blocks(data))
    return list(_events(found)), _names(found)


def _events(found: Sequence[RowBlock]) -> Iterator[Event]:
    spawned = is_spawned(session_row(found))
    for block in found:
        yield from block_events(block, spawned=spawned)


def block_events(block: RowBlock, *, spawned: bool = False) -> Iterator[Event]:
    """What a block says. The log of a message that is there repeats it, and says nothing; nor do rows about the
    session."""
    message = block.message
    if message is not None:
        events = message_events(message, spawned=spawned)
        if not events and message.role not in ("user", "assistant"):
            why = "a message of neither the user nor the assistant"
            events = [Output(raw=encode(message.info), why=why, message_id=message.id)]
        yield from events or [Output(message_id=message.id)]
    elif block.table == "session_message":
        why = "a message of a newer kind, which is not read yet"
        yield Output(raw=encode(block.row), why=why, message_id=f"@{block.start}")
    elif block.row is not None and block.table not in TABLES:
        yield Output(raw=encode({block.table: block.row}), message_id=f"@{block.start}")
    for line in block.unread:
        yield Output(raw=line.raw, why=line.why, message_id=f"@{line.start}")


def session_row(found: Iterable[RowBlock]) -> Record:
    """The session's own row; where there are several lines of it, what later ones say stands."""
    row: Record = {}
    for block in found:
        row |= (block.row or {}) if block.table == SESSION else {}
    return row


def is_spawned(session: Record) -> bool:
    """Whether another agent started the session."""
    return bool(text(session.get("parent_id")))


def revert_of(session: Record) -> Record | None:
    """Where somebody went back to, and has said nothing since."""
    return parse(text(session.get("revert")).encode(errors="replace"))


def context(data: bytes) -> bytes:
    """The rows of the messages that stand, then the session's own."""
    found = list(blocks(data))
    there = {
        block.message.id: block for block in found if block.message is not None and not block.removed and block.kept
    }
    kept = bytearray()
    for message in _stand(found):
        first, *parts = there[message.id].kept
        for start, end in (first, *parts[: len(message.parts)]):
            kept += _line(data, start, end)
    for block in found:
        if block.table == SESSION and block.row is not None:
            kept += _line(data, block.start, block.end)
    return bytes(kept)


def _line(data: bytes, start: int, end: int) -> bytes:
    """A line, with the newline that only the last one of a file may lack."""
    line = data[start:end]
    return line if line.endswith(b"\n") else line + b"\n"


def _stand(found: Sequence[RowBlock]) -> list[RowMessage]:
    messages = {block.message.id: block.message for block in found if block.message is not None and not block.removed}
    return standing(list(messages.values()), revert_of(session_row(found)))


def read_conversation(data: bytes) -> Iterator[Event]:
    """What the program would send, in the order the model reads it."""
    found = list(blocks(data))
    spawned = is_spawned(session_row(found))
    for message in as_read(_stand(found)):
        if is_sent(message):
            yield from message_events(message, spawned=spawned, as_sent=True)


def shared_names(data: bytes) -> Callable[[str], str]:
    """A copy of a message has another id and the same time."""
    return _names(blocks(data))


def _names(found: Iterable[RowBlock]) -> Callable[[str], str]:
    known = {block.message.id: shared_name(block.message) for block in found if block.message is not None}
    return lambda name: known.get(name, "")


def record_names(data: bytes) -> Iterator[str]:
    """The names of the messages in a delta, which copies share."""
    for block in blocks(data):
        if block.message is not None and (name := shared_name(block.message)):
            yield name


def write(events: Sequence[Event]) -> Written:
    """The events as rows; ids follow from what they say."""
    return write_rows(events)


FORMAT = Format(
    name="opencode-rows-v1",
    media_type="application/jsonl",
    description="A session of OpenCode or Kilo as the rows of its database: JSON lines `{TABLE: {column: value}}`, "
    "a message's row before those of its parts and its log; `data` is the program's own JSON.",
    context=context,
    claim=claim,
    reader=read,
    conversation_reader=read_conversation,
    writer=write,
    direct={"opencode-v1": export_rows},
    runtime="opencode",
    shared_by=("kilo",),
    notices=NOTICES,
    shared_names=shared_names,
    dates_names=True,
    named_reader=read_named,
)
