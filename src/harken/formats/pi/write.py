"""Events as a session that pi goes on with, and a session's own entries under another name.

Found by trying: an answer without `usage` stops the program, the folder in the header must be there, and thinking of
another model is sent as words that the model said; so it is left out. Ids are made from what is said, so that the same
events give the same file. What was put in the user's place by a program is an extension's message: the model hears it
as a user's, and nobody takes it for a person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harken.clock import format_millis
from harken.events import Event, Image, Response
from harken.events.messages import SHOWN
from harken.formats.base import Written
from harken.formats.kit.anthropic import Block
from harken.formats.kit.anthropic_writing import WHY, Arranger, Said
from harken.formats.kit.jsonl import Record, encode
from harken.ids import artifact_id

from .context import standing
from .records import (
    ASSISTANT,
    CUSTOM_MESSAGE,
    EXTENSION,
    INFO,
    LEAF,
    MESSAGE,
    MODEL,
    RESULT,
    SESSION,
    USER,
    PiLine,
    blocks_of,
    id_of,
    is_mirror,
    iter_lines,
    message_of,
    text_of,
    time_of,
)

VERSION = 3
HERE = "/"
ELSEWHERE = "harken"
"""The provider that answers from elsewhere are said to be of; none of that name can be asked."""
_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
NO_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _NO_COST}
"""Figures that say that nobody counted."""


class _PiArranger(Arranger):
    """Messages as pi has them: pictures in the message itself, and no other files."""

    why = WHY | {"files": "a message holds pictures alone", "thinking": "it would be sent as words that the model said"}

    def picture(self, image: Image) -> Block | None:
        media = image.media_type or "image/png"
        if not media.startswith("image/"):
            self.lost["files"] += 1
            return None
        if not image.data:
            self.lost["pictures without content"] += 1
            return None
        return {"type": "image", "data": image.data, "mimeType": media}


def write(events: Sequence[Event]) -> Written:
    """The conversation as a session of its own; its id follows from what is said."""
    return write_session(events, session_id="", cwd=HERE, time=None)


def write_session(
    events: Sequence[Event], *, session_id: str, cwd: str, time: int | None, model: tuple[str, str] = ("", "")
) -> Written:
    """The events as a given session; `model` is the provider and the model that it is going to go on with."""
    # Another provider's ids do not say which parts make up a message here; what tools answered since does.
    turns = _PiArranger(thinking=False).run([event.replace(api_id="") for event in events])
    writer = _PiWriter(turns.messages, time)
    for said in turns.messages:
        writer.say(said)
    if all(model):
        writer.entry({"type": MODEL}, {"provider": model[0], "modelId": model[1]})
    name = session_id or _uuid(b"".join(writer.lines), writer.begun)
    header = line_of(new_header(name, cwd, writer.begun if time is None else time))
    return Written(data=header + b"".join(writer.lines), losses=turns.losses)


def new_header(session_id: str, cwd: str, time: int) -> Record:
    """The first line of a session."""
    return {"type": SESSION, "version": VERSION, "id": session_id, "timestamp": format_millis(time), "cwd": cwd}


def line_of(record: Record) -> bytes:
    return encode(record) + b"\n"


def _uuid(content: bytes, time: int) -> str:
    """An id of the shape that the program gives its sessions (a UUID of version 7), made from time and content."""
    digits = f"{max(time, 0) // 1000 & (1 << 48) - 1:012x}7" + artifact_id(content)[:19]
    digits = digits[:16] + "89ab"[int(digits[16], 16) % 4] + digits[17:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


class _PiWriter:
    def __init__(self, messages: list[Said], time: int | None) -> None:
        self.lines: list[bytes] = []
        self._ids: set[str] = set()
        self._parent: str | None = None
        first = next((e.time for said in messages for e in said.events if e.time is not None), time or 0)
        self._time = self.begun = first

    def say(self, said: Said) -> None:
        """An entry for every message, and one for each result."""
        self._pass(said.events[:1])
        if said.role == "user":
            self._user(said)
            return
        model = next((e.model for e in said.events if isinstance(e, Response) and e.model), "")
        names = {block["id"]: block["name"] for block in said.blocks if block["type"] == "tool_use"}
        about = {"api": ELSEWHERE, "provider": ELSEWHERE, "model": model or "unknown", "usage": NO_USAGE}
        stop = {"stopReason": "toolUse" if names else "stop"}
        self._message(ASSISTANT, [_block(block) for block in said.blocks], about | stop)
        for call, block, event in said.results:
            self._pass([event] if event is not None else [])
            marks = {"toolCallId": call, "toolName": names.get(call, "")}
            self._message(RESULT, _text_blocks(block["content"]), {"isError": bool(block.get("is_error"))}, marks)

    def _user(self, said: Said) -> None:
        if said.injected:
            about = {"customType": said.injected, "content": said.blocks, "display": said.injected in SHOWN}
            self.entry({"type": CUSTOM_MESSAGE}, about)
        else:
            self._message(USER, said.blocks)

    def _message(
        self, role: str, content: list[Block], about: Record | None = None, marks: Record | None = None
    ) -> None:
        message = {"role": role, **(marks or {}), "content": content, **(about or {})}
        self.entry({"type": MESSAGE}, {"message": message | {"timestamp": self._time // 1000}})

    def entry(self, kind: Record, about: Record) -> None:
        name = entry_id(self._ids, (self._parent or "").encode(), str(len(self.lines)).encode(), encode(about))
        record = {**kind, "id": name, "parentId": self._parent, "timestamp": format_millis(self._time), **about}
        self.lines.append(line_of(record))
        self._parent = name

    def _pass(self, events: Sequence[Event]) -> None:
        """Time never runs backwards here, though it does in the files."""
        for event in events:
            if event.time is not None and event.time > self._time:
                self._time = event.time


def entry_id(taken: set[str], *parts: bytes) -> str:
    """Eight digits made from content, which no other entry has."""
    digest = artifact_id(b"\0".join(parts))
    name = next((digest[at : at + 8] for at in range(56) if digest[at : at + 8] not in taken), digest)
    taken.add(name)
    return name


def _block(block: Block) -> Block:
    if block["type"] == "tool_use":
        return {"type": "toolCall", "id": block["id"], "name": block["name"], "arguments": block["input"]}
    return block


def _text_blocks(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


# -- a session's own entries under another name ------------------------------------------------------------------------


def rewrite(data: bytes, *, session_id: str, cwd: str, time: int | None = None) -> bytes:
    """The conversation as it stands, as another session: a new header, then the entries as they are.

    They hang one from the other, since nothing else is left. What the program needs and an entry lacks is added (an id,
    figures of an answer); entries of older versions become those of the third, as the program itself does it.
    """
    lines = list(iter_lines(data))
    found = standing(lines)
    records = [(number, lines[number].record or {}) for number in (*found.settings, *found.path)]
    kept = [(number, record) for number, record in records if record.get("type") != LEAF and not _is_mirror(record)]
    taken = {id_of(record) for _, record in kept}
    names = {number: id_of(record) or _named(lines[number], data, taken) for number, record in kept}
    first = names.get(found.path[0], "") if found.path else ""
    when = next((at for _, record in records if (at := time_of(record)) is not None), 0)
    written = [line_of(new_header(session_id, cwd, when if time is None else time))]
    parent: str | None = None
    for number, record in kept:
        changed = _mended(record, first if number == found.boundary and found.by_number else "")
        place = {"id": names[number], "parentId": parent}
        if changed is record and all(record.get(key, "") == value for key, value in place.items()):
            line = data[lines[number].start : lines[number].end]
            written.append(line if line.endswith(b"\n") else line + b"\n")
        else:
            written.append(line_of({"type": record.get("type"), **place, **changed, **place}))
        parent = names[number]
    return b"".join(written)


def _is_mirror(record: Record) -> bool:
    message = message_of(record)
    return message is not None and record.get("type") == MESSAGE and is_mirror(message)


def _named(line: PiLine, data: bytes, taken: set[str]) -> str:
    return entry_id(taken, str(line.start).encode(), data[line.start : line.end])


def _mended(record: Record, first_kept: str) -> Record:
    """An entry with what the program needs; the same where it lacks nothing."""
    if first_kept:
        rest = {key: value for key, value in record.items() if key != "firstKeptEntryIndex"}
        return {**rest, "firstKeptEntryId": first_kept}
    message = message_of(record)
    if message is None or record.get("type") != MESSAGE:
        return record
    mended = message
    role = text_of(message.get("role"))
    if role in EXTENSION and role != "custom":
        mended = {**message, "role": "custom"}
    elif role in (ASSISTANT, RESULT) and not isinstance(message.get("content"), list):
        mended = {**message, "content": blocks_of(message.get("content"))}
    if role == ASSISTANT and not _is_counted(message.get("usage")):
        mended = {**mended, "usage": NO_USAGE}
    return record if mended is message else {**record, "message": mended}


def _is_counted(usage: object) -> bool:
    """Whether the program can add up the figures; the first version had no total."""
    return isinstance(usage, dict) and isinstance(usage.get("cost"), dict)


def name_line(title: str, time: int) -> bytes:
    """The entry by which the program knows a session's name; `hang_name` says where it hangs."""
    about = {"parentId": None, "timestamp": format_millis(time), "name": " ".join(title.split())}
    return line_of({"type": INFO, "id": artifact_id(title.encode(errors="replace"))[:8], **about})


def hang_name(data: bytes) -> bytes:
    """A session that ends with a name of its own, which hangs from the entry before it: from the last entry on the
    program follows the conversation back."""
    lines = [line for line in iter_lines(data) if line.record is not None]
    last = lines[-1].record if len(lines) > 2 else None
    if last is None or last.get("type") != INFO or last.get("parentId") is not None:
        return data
    taken = {id_of(line.record) for line in lines[1:-1] if line.record}
    parent = id_of(lines[-2].record or {})
    name = entry_id(taken, parent.encode(), text_of(last.get("name")).encode(errors="replace"))
    return data[: lines[-1].start] + line_of({**last, "id": name, "parentId": parent})
